"""The picture of a followed run, and the story of one: the tree, widths, foreign text."""

import io
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from temporal_supervisor.console.base.command import hint
from temporal_supervisor.console.base.terminal import print_rows
from temporal_supervisor.console.run.standstill import Standstill, grouped, waits_of_status
from temporal_supervisor.console.view.event_lines import Line, event_line
from temporal_supervisor.console.view.live_view import (
    LiveAgent,
    Picture,
    draw,
    fit_rows,
    log_line,
    story_rows,
    tree_rows,
)
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.contract.status import RunLimits, Status, TraceEvent, Wait
from temporal_supervisor.supervision.contract.usage import Usage
from tests.unit.shapes import acyclic_plans

NASTY = "[bold]markup[/bold] [link=https://evil.example]x[/link] \x1b[31mred\x1b]8;;https://evil.example\x07 :smile:"


graphs = st.just(list[SubtaskReport]()) | acyclic_plans(25).map(
    lambda plan: [SubtaskReport(id=subtask.id, depends_on=subtask.depends_on) for subtask in plan.subtasks]
)


@given(graphs)
def test_every_subtask_is_in_the_tree_once_and_below_a_dependency(reports: list[SubtaskReport]) -> None:
    tree = tree_rows(reports)
    assert sorted(row.report.id for row in tree) == sorted(report.id for report in reports)
    seen: list[tuple[int, str]] = []
    for row in tree:
        if row.report.depends_on:
            above = [subtask_id for depth, subtask_id in seen if depth == row.depth - 1]
            assert above[-1] == row.report.depends_on[-1]
        else:
            assert row.depth == 0
        seen.append((row.depth, row.report.id))


@given(graphs, st.integers(0, 30))
def test_a_low_screen_keeps_the_order_and_counts_what_it_leaves_out(reports: list[SubtaskReport], height: int) -> None:
    tree = tree_rows(reports)
    shown, left_out = fit_rows(tree, height)
    assert len(shown) + len(left_out) == len(tree)
    assert len(shown) <= height or not left_out
    assert [row for row in tree if row in shown] == shown


def test_the_subtasks_of_a_nested_supervisor_stand_under_the_one_it_works_on() -> None:
    deep = SubtaskReport(id="t2", workflow_id="w1/w2")
    crew = SubtaskReport(id="t1", workflow_id="w1")
    nested = {"w1": {"t1": SubtaskReport(id="t1"), "t2": deep}, "w1/w2": {"t1": SubtaskReport(id="t1")}}
    tree = tree_rows([crew, SubtaskReport(id="t2", depends_on=["t1"])], nested)
    shape = [("t1", 0), ("t1/t1", 1), ("t1/t2", 1), ("t1/t2/t1", 2), ("t2", 1)]
    assert [(row.path, row.depth) for row in tree] == shape


def picture(subtasks: int = 6) -> Picture:
    """A run in the middle of things, with foreign text everywhere."""
    began = datetime.now(UTC).isoformat()
    states = ["completed", "failed", "skipped", "cancelled", "running", "waiting"]
    shown = Picture("run-1", "http://127.0.0.1:8233/namespaces/default/workflows/run-1", datetime.now(UTC))
    for n in range(subtasks):
        report = SubtaskReport.model_validate(
            {"id": f"t{n}{'x' * 60 if n == 1 else ''}", "role": NASTY, "description": NASTY * 9, "started_at": began}
            | {"state": states[n % 6], "workflow_id": f"w{n}", "depends_on": [f"t{n - 2}"] if n > 3 else []}
        )
        shown.reports[report.id] = report
        shown.agents[f"w{n}"] = LiveAgent(turn=2, tail=NASTY * 5 + "日本語" * 30)
    at = "2030-01-01T00:00:00+00:00"
    card = {"state": "open", "retry_at": at}
    waits = {"workflow_id": "w", "prompt_preview": NASTY, "since": at}
    shown.status = Status(
        goal="g",
        team="t",
        phase="executing",
        counts=Counts(total=subtasks, completed=1, running=1),
        limits=RunLimits(max_subtasks=1, max_parallel=1, max_turns=1, deadline_seconds=1),
        deadline_at="",
        model_notice=NASTY,
        breakers=[{**card, "role": NASTY, "failures": 3}, {**card, "provider": NASTY, "waiting": "t5"}],
        waiting=[Wait(id="t4/1", subtask_id="t4", kind="resume", **waits)],
    )
    shown.notice = NASTY
    return shown


def printed(columns: int, lines: int, shown: Picture) -> str:
    out = io.StringIO()
    console = Console(file=out, width=columns, height=lines, force_terminal=True, color_system="truecolor")
    console.print(draw(shown, columns, lines, "hint"))
    return out.getvalue()


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    written = printed(columns, 40, picture())
    shown = Text.from_ansi(written).plain
    assert hint("resume", "run-1").strip("`") in " ".join(shown.split())
    assert "\x1b]8" not in written
    assert max(cell_len(line.rstrip()) for line in shown.splitlines()) <= columns


def test_foreign_text_is_shown_as_it_is_and_never_obeyed() -> None:
    event = log_line(Line(datetime.now(UTC), "t1\x1b[2J", NASTY)).plain
    assert "\x1b" not in event
    for shown in (printed(200, 60, picture()), event):
        assert "[bold]markup[/bold]" in shown
        assert "\x1b]8" not in shown
        assert ":smile:" in shown


LONG = "supervise-" + "how-did-life-expectancy-change-" * 4 + "3fa2b1"
HELP = f"/home/somebody/supervisor/.venv/bin/temporal-supervisor --namespace far resume {LONG}"
PAGE = f"http://127.0.0.1:8233/namespaces/default/workflows/{LONG}"


@pytest.mark.parametrize("columns", [80, len(HELP), len(PAGE) - 1, 250])
def test_a_command_and_an_address_wider_than_the_screen_are_shown_whole(columns: int) -> None:
    waits = Standstill("person", ("t4",), "resume (no credit)", f"fix the account, then `{HELP}`; nothing is lost")
    shown = picture(2)
    shown.web, shown.observed = PAGE, [waits]
    shown.status, shown.notice = None, None
    rows = Text.from_ansi(printed(columns, 40, shown)).plain.splitlines()
    assert max(map(cell_len, rows)) <= columns
    together = "".join("".join(rows).split())
    for piece in (HELP, PAGE):
        assert together.count("".join(piece.split())) == 1


def test_the_screen_shows_each_subtask_what_is_written_and_what_the_run_waits_for() -> None:
    broken = Problem(type=ErrorKind.CANNOT_DO, message="no table has prices of pears")
    role, after = {"role": "analyst"}, ["t1", "t2", "t3"]
    reports = [
        SubtaskReport(id="t1", role="researcher", description="Which pears are grown?", state="completed", turns=3),
        SubtaskReport(id="t2", description="Count them", state="running", attempts=2, workflow_id="w", **role),
        SubtaskReport(id="t3", description="What did they cost?", state="failed", error=broken, **role),
        SubtaskReport(id="t4", description="Write the report.", depends_on=after, **role),
    ]
    late = Standstill("provider", ("t2", "t5"), "the model provider: 529, attempt 3", "it continues when it answers")
    shown = Picture("run-1", observed=[late], reports={report.id: report for report in reports})
    shown.agents["w"] = LiveAgent("t2", turn=2, tail="SELECT sum(pears) FROM crops")
    shown.status = picture().status
    assert shown.status is not None
    shown.status.counts = Counts(total=4, completed=1, running=1, failed=1, waiting=1)
    shown.status.usage = Usage(input_tokens=9_000, cache_read_tokens=3_000, output_tokens=900, usd=0.0123)
    shown.status.waiting, shown.status.breakers, shown.status.model_notice = [], [], None
    rows = [" ".join(row.split()) for row in Text.from_ansi(printed(100, 30, shown)).plain.splitlines()]
    assert rows[1:] == [
        "✔ t1 researcher turn 3 Which pears are grown?",
        "▶ t2 analyst turn 2 attempt 2 · Count them",
        "SELECT sum(pears) FROM crops",
        "✘ t3 analyst CannotDo: no table has prices of pears",
        "└ · t4 analyst after t1, t2, t3 · Write the report.",
        "executing · 1/4 done, 1 running · 1 failed · 12,900 tokens, 25% cached · $0.0123",
        "⏸ t2, t5 wait for the model provider: 529, attempt 3: it continues when it answers",
        "hint",
    ]


def test_each_role_with_an_open_breaker_is_named() -> None:
    shown = picture().status
    assert shown is not None
    card: dict[str, JsonValue] = {"state": "open", "failures": 3, "retry_at": None}
    shown.breakers = [{**card, "role": "finder"}, {**card, "role": "writer"}]
    causes = [cause.cause for cause in grouped(waits_of_status(shown, "run-1")) if cause.waits_for == "tool"]
    waits = "waits for its breaker, open after 3 failed attempts in a row, it is being tried"
    assert causes == [f"role finder {waits}", f"role writer {waits}"]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_story_has_the_reasons_behind_each_event(is_terminal: bool) -> None:
    said = {"round": 1, "flagged": ["t1"], "feedback": {"t1": "say which year"}, "missing": ["the price"]}
    chosen = {"choice": 2, "of": 3, "reason": "it names its source"}
    console = Console(file=io.StringIO(), width=80, force_terminal=is_terminal, color_system=None)
    for subtask, kind, data in ((None, "reviewed", said), ("t1", "candidate_chosen", chosen)):
        event = TraceEvent(seq=1, at="2026-01-01T10:00:00+00:00", type=kind, subtask_id=subtask, data=data)
        print_rows(console, story_rows(event_line(event)))
    assert isinstance(console.file, io.StringIO)
    rows = console.file.getvalue().splitlines()
    assert [row[9:].rstrip() for row in rows] == [
        "review, round 1: t1 again",
        "feedback for t1: say which year",
        "missing from the plan: the price",
        "t1 candidate 2 of 3 is the best",
        "why: it names its source",
    ]
