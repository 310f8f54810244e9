"""The Markdown for the Web UI: one row a subtask, whatever the texts hold."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from supervision.contract.finding import Finding
from supervision.contract.progress import Counts
from supervision.contract.result import Problem, SubtaskReport
from supervision.contract.status import Flags
from supervision.contract.usage import Usage
from supervision.run.web_details import breaker_note, markdown
from tests.unit.shapes import any_text

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


def test_a_note_on_a_role_says_who_rests_after_how_many_failures_and_until_when() -> None:
    note = breaker_note(ROLE)
    assert all(word in note for word in ("digger", "3 failed attempts", "10:00"))


def test_a_note_on_a_provider_says_who_waits_for_which_model_and_until_when() -> None:
    note = breaker_note(PROVIDER)
    assert all(word in note for word in ("t1", "provider of m", "10:00"))


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
