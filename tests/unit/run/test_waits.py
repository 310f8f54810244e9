"""What a run waits for, and the Markdown for the Web UI that shows it."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from supervision.contract.finding import Finding
from supervision.contract.progress import Counts
from supervision.contract.result import Problem, SubtaskReport
from supervision.contract.status import Flags, Wait
from supervision.contract.usage import Usage
from supervision.run.waits import Waits
from supervision.run.web_details import breaker_note, markdown
from tests.unit.shapes import START, Clock, any_text

LATER = "2026-01-01T00:01:00+00:00"
SOON = datetime.fromisoformat(LATER)
TIMED = Wait(
    id="t1/1",
    kind="provider",
    workflow_id="r",
    subtask_id="t1",
    prompt_preview="overloaded",
    since=START.isoformat(),
    expires_at=LATER,
    model="m",
)
FOR_A_PERSON = TIMED.model_copy(
    update={"id": "t2/1", "subtask_id": "t2", "kind": "resume", "prompt_preview": "no credit"}
)


def waits(*below: Wait) -> Waits:
    return Waits(Clock(), lambda: [*below])


def fail(some: Waits, role: str, times: int) -> None:
    for _ in range(times):
        ticket = some.breaker(role).admit()
        assert ticket
        some.breaker(role).failed(ticket)


def test_a_wait_is_shown_until_its_end_with_its_latest_time() -> None:
    some, same = waits(), TIMED.model_copy()
    some.show(TIMED, START)
    some.show(same, SOON)
    some.show(TIMED, SOON + timedelta(minutes=1))
    assert [wait.expires_at for wait in some.current] == ["2026-01-01T00:02:00+00:00", LATER]
    some.end(TIMED)
    some.end(TIMED)
    assert some.current == [TIMED]
    some.end(same)
    assert some.current == []


def test_one_wait_for_a_provider_or_a_person_among_others_is_enough() -> None:
    asked = FOR_A_PERSON.model_copy(update={"kind": "question"})
    shown = [(some.for_provider, some.for_person) for some in (waits(TIMED, asked), waits(TIMED), waits(asked))]
    assert shown == [(True, True), (True, False), (False, True)]


def test_cards_are_of_roles_that_failed_and_of_providers_that_are_tried_again() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    some.breaker("finder")
    fail(some, "digger", 1)
    role, provider = some.cards()
    assert (role["role"], role["state"], role["failures"]) == ("digger", "closed", 1)
    assert provider == {"provider": "m", "state": "open", "waiting": "t1", "retry_at": LATER, "why": "overloaded"}


def test_each_wait_has_a_note_and_a_closed_breaker_has_none() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    fail(some, "digger", 3)
    fail(some, "finder", 2)
    role, provider, person = some.notes()
    assert "digger" in role
    assert "t1" in provider
    assert person == "t2 waits for resume: no credit"


REPORTS = [
    SubtaskReport(id="t1", role="analyst", description="Sum the sales", state="completed", attempts=2, turns=3),
    SubtaskReport(id="t2", role="writer", state="skipped", depends_on=["t1"], error=Problem(type="X", message="why")),
]
awkward = any_text | st.text("a|\\\n`*")


def shown(goal: str = "Which region?", reports: list[SubtaskReport] = REPORTS, notes: list[str] | None = None) -> str:
    counts = Counts(total=len(reports), completed=1)
    usage = Usage(model_calls=4, tool_calls=2, input_tokens=1500, usd=0.25)
    return markdown(goal, "executing", Flags(paused=True), counts, reports, usage, notes or [])


def test_a_run_reads_at_a_glance() -> None:
    assert shown(notes=["the stand-in model answers"]).splitlines() == [
        "**Which region?**",
        "",
        "Phase **executing** (paused) · 1 of 2 subtasks · 4 model calls, 2 tool calls"
        " · 1,500 input tokens, 0 output tokens · $0.2500",
        "",
        "| subtask | role | state | after | turns | what |",
        "|---|---|---|---|---|---|",
        "| t1 | analyst | ✔ completed (attempt 2) |  | 3 | Sum the sales |",
        "| t2 | writer | – skipped | t1 |  | why |",
        "",
        "> the stand-in model answers",
    ]


def test_an_answer_comes_first_and_leads_nowhere() -> None:
    partial = Finding(outcome="partial", summary="Half.", text_ref="r")
    report = SubtaskReport(id="t1", state="completed", finding=partial)
    answer = "# Yes\n\n![x](https://a.example/?q) and [t1] <b>\n"
    lines = markdown("G", "done", Flags(), Counts(), [report], Usage(), [], "an extract", answer).split("\n")
    assert lines[:3] == ["> an extract", "", "**G**"]
    assert lines[4:7] == ["# Yes", "", r"!\[x\](https://a.example/?q) and \[t1\] \<b\>"]
    assert "| t1 |  | ◐ partial |" in lines[-1]


@given(awkward, awkward, awkward)
def test_no_text_breaks_the_table(goal: str, description: str, note: str) -> None:
    report = SubtaskReport(id="t1", role="analyst", description=description)
    lines = shown(goal, [report], [note]).split("\n")
    assert len(lines) == 9
    row = lines[6]
    assert len(re.sub(r"\\.", "", row).split("|")) == 8
    "\n".join(lines).encode("utf-8")


# --- notes on breakers ----------------------------------------------------------------------------

ROLE: dict[str, JsonValue] = {"role": "digger", "state": "open", "failures": 3, "retry_at": "10:00"}
PROVIDER: dict[str, JsonValue] = {"provider": "m", "state": "open", "waiting": "t1", "retry_at": "10:00", "why": ""}


@pytest.mark.parametrize(
    ("card", "words"),
    [(ROLE, ("digger", "3 failed attempts", "10:00")), (PROVIDER, ("t1", "provider of m", "10:00"))],
)
def test_a_note_says_who_rests_or_waits_why_and_until_when(card: dict[str, JsonValue], words: tuple[str, ...]) -> None:
    assert all(word in breaker_note(card) for word in words)


MARKUP = [
    "<img src=x>",
    "[here](http://evil)",
    "**done**",
    "`x`",
    "# all is well",
    "a | b",
    "![x](y)",
    "&lt;b&gt;",
    "_x_",
]


@pytest.mark.parametrize("text", MARKUP)
def test_foreign_text_is_shown_as_it_is(text: str) -> None:
    reports = [
        SubtaskReport(id="t1", role="analyst", description=text),
        SubtaskReport(id="t2", role="analyst", state="failed", error=Problem(type="X", message=text)),
    ]
    lines = shown(text, reports, [text]).splitlines()
    for line in (lines[0], lines[6], lines[7], lines[9]):
        ours = line.removeprefix("**").removesuffix("**").removeprefix("> ").replace(" | ", "  ")
        assert not re.search(r"(?<!\\)[`*_\[\]<>!#~&]", ours), line
        assert text in re.sub(r"\\(.)", r"\1", line)
