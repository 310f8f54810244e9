"""Screens of a moment, drawn from fixed states: a run that is followed, one that stands still, `doctor`."""

import pytest
from pydantic import JsonValue
from rich.console import Console

from console.run.standstill import Standstill
from console.view.event_lines import line
from console.view.live_view import LiveAgent, Picture, draw, log_line, story
from supervision.base.errors import ErrorKind
from supervision.contract.progress import Counts
from supervision.contract.result import Problem, SubtaskReport
from supervision.contract.status import Flags, RunLimits, Status, TraceEvent
from supervision.contract.usage import Spend, Usage
from tests.console.transcripts import compare

COLUMNS = 80
AT = "2026-01-01T10:00:00+00:00"
BROKEN = Problem(type=ErrorKind.CANNOT_DO, message="no table has prices of pears")
REPORTS = [
    SubtaskReport(id="t1", role="researcher", description="Which pears are grown?", state="completed", turns=3),
    SubtaskReport(id="t2", role="analyst", description="How many were there in 1990?", state="running", attempts=2),
    SubtaskReport(id="t3", role="analyst", description="What did they cost?", state="failed", error=BROKEN),
    SubtaskReport(id="t4", role="writer", description="Write the report.", depends_on=["t1", "t2", "t3"]),
]
SPEND = [
    Spend(role="analyst", model="claude-haiku-5-5", usage=Usage(model_calls=4, input_tokens=7_000, usd=0.01)),
    Spend(role="supervisor", model="claude-opus-5-5", usage=Usage(model_calls=1, cache_read_tokens=900, usd=None)),
]
LATE = Standstill(
    "provider",
    ("t2", "t5"),
    "the model provider: claude-haiku-5-5 is overloaded (529: too many requests), attempt 3 in 8 s",
    "it continues when the provider answers; try that from here: `temporal-supervisor doctor`",
    since=None,
)
ALONE = Standstill(
    "worker", ("t6",), "a Worker of pool east: there is none", "start one with `temporal-supervisor worker --pool east`"
)
EVENTS: list[tuple[str, str | None, dict[str, JsonValue]]] = [
    ("plan_requested", None, {"attempt": 1, "revision": 1}),
    ("plan_accepted", None, {"subtasks": 4, "revision": 1, "reasoning": "One subtask for each question."}),
    ("subtask_started", "t2", {"role": "analyst", "attempt": 1, "reasoning": "It has the tables."}),
    ("turn", "t2", {"turn": 1, "preview": "Calling list_tables."}),
    ("tool", "t2", {"name": "query_data", "arguments": "SELECT pears", "preview": "no such table", "is_error": True}),
    ("note", "t2", {"text": "two turns are left"}),
    (
        "subtask_retried",
        "t2",
        {"error": "CannotDo", "message": BROKEN.message, "role": "analyst", "description": "Count the pears of 1990."},
    ),
    ("model_replaced", "t2", {"model": "claude-haiku-5-5", "by": "claude-opus-5-5", "why": "Overloaded"}),
    ("reviewed", None, {"round": 1, "flagged": ["t1"], "feedback": {"t1": "say which year"}, "missing": ["the price"]}),
    ("subtask_reopened", "t1", {"feedback": "say which year", "warm": True}),
    ("candidate_chosen", "t1", {"choice": 2, "of": 3, "reason": "it names its source"}),
    ("conflict", None, {"subtasks": ["t1", "t2"], "resolved": True, "resolution": "the table is newer"}),
    ("answer_returned", None, {"unsupported": ["44 pears"]}),
]


def picture(causes: list[Standstill]) -> Picture:
    """A run in the middle."""
    status = Status(
        goal="How many pears are there?",
        team="default",
        phase="executing",
        flags=Flags(waiting_provider=bool(causes)),
        counts=Counts(total=4, completed=1, running=1, failed=1, waiting=1),
        usage=Usage(model_calls=9, input_tokens=9_000, cache_read_tokens=3_000, output_tokens=900, usd=0.0123),
        spend=SPEND,
        limits=RunLimits(max_subtasks=12, max_parallel=8, max_turns=10, deadline_seconds=1800),
        deadline_at=AT,
        model_notice="answers come from the stand-in model: it extracts, it does not reason",
    )
    web = "http://127.0.0.1:8233/namespaces/default/workflows/supervise-how-many-pears-are-there-3fa2b1"
    shown = Picture("supervise-how-many-pears-are-there-3fa2b1", web, status=status, observed=causes)
    shown.reports = {report.id: report for report in REPORTS}
    REPORTS[1].workflow_id = "child"
    shown.agents["child"] = LiveAgent("t2", turn=2, tail="SELECT sum(pears) FROM crops")
    return shown


def drawn() -> Console:
    return Console(width=COLUMNS, height=30, record=True, force_terminal=True, color_system=None)


@pytest.mark.parametrize("causes", [[], [LATE, ALONE]], ids=["going on", "standing still"])
def test_the_screen_of_a_followed_run_is_the_one_that_is_kept(causes: list[Standstill]) -> None:
    console = drawn()
    console.print(draw(picture(causes), COLUMNS, 30, "Ctrl-C leaves the run going"))
    compare(f"live {'waits' if causes else 'runs'}.{COLUMNS}", console.export_text().splitlines())


def test_the_screen_of_events_is_the_one_that_is_kept() -> None:
    console = drawn()
    lines = [
        line(TraceEvent(seq=seq, at=AT, type=kind, subtask_id=subtask, data=data))
        for seq, (kind, subtask, data) in enumerate(EVENTS, 1)
    ]
    for each in lines:
        console.print(log_line(each), no_wrap=True, overflow="ellipsis", crop=True)
    console.print()
    console.print(*(row for each in lines for row in story(each, console)), sep="\n")
    compare(f"events.{COLUMNS}", console.export_text().splitlines())
