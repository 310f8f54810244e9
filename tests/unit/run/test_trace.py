"""The trace of a workflow, and the table of its events: each has its fields and a sentence."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import TraceEvent, Wait
from temporal_supervisor.supervision.contract.updates import Update
from temporal_supervisor.supervision.run.decisions import Decision
from temporal_supervisor.supervision.run.events import (
    SENTENCES,
    TRACE_PAGE_BYTES,
    Trace,
    decision_fields,
    sentence,
    update_fields,
)
from tests.unit.shapes import Clock


def filled(count: int, last_seq: int = 0) -> Trace:
    trace = Trace(Clock(), last_seq)
    for number in range(count):
        trace.note("turn", "t1", turn=number)
    return trace


@given(st.integers(0, 2500), st.integers(0, 2500))
@example(3, 2)
def test_the_latest_events_that_fit_are_recent(count: int, shown: int) -> None:
    trace = filled(count)
    kept = trace.recent(10**9)
    assert [event.seq for event in kept] == list(range(max(0, count - limits.TRACE_EVENTS) + 1, count + 1))
    latest = kept[len(kept) - min(shown, len(kept)) :]
    room = sum(len(event.model_dump_json()) + 1 for event in latest)
    assert trace.recent(room) == latest or len(latest) < 2
    assert trace.recent(room - 1) == latest[1:] or len(latest) < 2


def test_numbers_go_on_from_an_earlier_run_whose_events_are_dropped() -> None:
    page = filled(2, last_seq=40).page()
    assert ([event.seq for event in page.events], page.next_cursor) == ([41, 42], 42)


def test_a_page_fits_into_a_payload_and_its_cursor_leads_to_the_rest() -> None:
    trace = Trace(Clock())
    for number in range(limits.TRACE_EVENTS):
        trace.note("tool", "t1", number=number, preview="x" * 500)
    seen, cursor = [], 0
    while (page := trace.page(cursor)).events:
        assert len(page.model_dump_json()) < limits.PAYLOAD_HARD_BYTES
        seen += [event.data["number"] for event in page.events]
        cursor = page.next_cursor
    assert seen == list(range(limits.TRACE_EVENTS))
    assert cursor == trace.last_seq


@pytest.mark.parametrize(("surplus", "shown"), [(0, [1, 2]), (1, [1]), (3 * TRACE_PAGE_BYTES, [1])])
def test_a_page_has_what_fits_and_at_least_one_event(surplus: int, shown: list[int]) -> None:
    trace, other = Trace(Clock()), Trace(Clock())
    other.note("tool", "t1", text="")
    without_text = len(other.page().events[0].model_dump_json())
    for _ in range(2):
        trace.note("tool", "t1", text="x" * (TRACE_PAGE_BYTES // 2 - 1 - without_text + surplus))
    page = trace.page()
    assert ([event.seq for event in page.events], page.next_cursor) == (shown, shown[-1])


ROOT = Path(__file__).resolve().parents[3]
NOTED = ("workflows", "temporal_supervisor/supervision", "temporal_supervisor/console/run")


def notes() -> Iterator[tuple[str, ast.Call, str]]:
    """Yields every call of `note` with a type of event: its place, and that type."""
    for path in (path for folder in NOTED for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                given = [item for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
                if node.func.attr == "note" and given:
                    yield f"{path.name}:{node.lineno}", node, str(given[0].value)


def test_every_event_that_is_noted_has_a_sentence_of_its_own_fields() -> None:
    named: dict[str, set[str | None]] = {}
    for _, node, kind in notes():
        named.setdefault(kind, set()).update(keyword.arg for keyword in node.keywords)
    assert named.keys() | {"note"} == SENTENCES.keys()  # "note" is noted by the replies of a conversation
    for kind, fields in named.items():
        missing = set(re.findall(r"{(\w+)", re.sub(r"\[[^][]*\]", "", SENTENCES[kind][0]))) - fields
        assert None in fields or not missing, kind  # None: fields of a dictionary; optional parts may lack theirs


def test_an_event_with_an_error_is_bad() -> None:
    events = [TraceEvent(seq=1, at="", type="tool", data={"is_error": wrong}) for wrong in (False, True)]
    assert [sentence(event)[1] for event in events] == ["plain", "bad"]


LINES: list[tuple[str, dict[str, JsonValue], str]] = [
    ("plan_requested", {"attempt": 1, "revision": 1}, "asking for a plan"),
    ("plan_accepted", {"subtasks": 2, "revision": 3, "expected": 9}, "plan with 2 subtasks (revision 3), expected: 9"),
    ("subtask_started", {"role": "hand", "attempt": 1, "description": "Weigh"}, "delegating to hand: Weigh"),
    ("subtask_started", {"role": "hand", "attempt": 2}, "delegating to hand (attempt 2)"),
    ("subtask_completed", {"turns": 1}, "completed after 1 turn"),
    ("reviewed", {"round": 1, "flagged": ["t1", "t2"]}, "review, round 1: t1; t2 again"),
    ("reviewed", {"round": 2, "flagged": []}, "review, round 2: all findings hold"),
    ("conflict", {"subtasks": ["t1", "t2"], "resolved": True}, "conflict between t1; t2, settled"),
    ("conflict", {"subtasks": ["t1", "t2"]}, "conflict between t1; t2, not settled"),
    ("synthesis_started", {"findings": 2, "mode": "digest"}, "writing the answer (digest) from 2 findings"),
    ("decided", {"id": "q", "decision": "reply", "by": "Ann", "text": "6", "after": "x"}, "q: reply by Ann: 6 (x)"),
    ("paused", {}, "the run is paused"),
    ("turn", {"turn": 3, "preview": "so", "withheld": ["a", "b"]}, "turn 3, without a; b: so"),
    ("model_replaced", {"by": "b"}, "model b takes over from ?: ?"),
    ("subtask_completed", {"turns": 2_000}, "completed after 2,000 turns"),
    ("subtask_completed", {"turns": None}, "completed after ?"),
    ("note", {"text": "{why} {0} { [{text}]"}, "message: {why} {0} { [{text}]"),
    ("of a later version", {}, "of a later version "),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "data", "line"), LINES)
def test_an_event_is_a_sentence(kind: str, data: dict[str, JsonValue], line: str) -> None:
    assert sentence(TraceEvent(seq=1, at="", type=kind, data=data))[0] == line


def test_what_a_person_did_has_only_what_there_is() -> None:
    fields = update_fields(Update(by="Ann"), now=False, word="go\non", warm=True)
    assert fields == {"word": "go on", "by": "Ann", "warm": True}
    wait = Wait(id="q", kind="question", workflow_id="w", since="", after="page")
    assert decision_fields(wait, None) == {"id": "q", "kind": "question", "after": "page", "decision": "expired"}
    reply = Decision(id="q", choice="reply", about=("question",), by="Ann")
    assert decision_fields(wait.model_copy(update={"after": ""}), reply) == {
        "id": "q", "kind": "question", "decision": "reply", "by": "Ann"
    }  # fmt: skip


@pytest.mark.parametrize(("reason", "shown"), [("tool_use", "calls tools"), ("pause_turn", "pause_turn")])
def test_a_turn_without_text_says_in_words_why_it_ended(reason: str, shown: str) -> None:
    event = TraceEvent(seq=1, at="", type="turn", data={"turn": 1, "stop_reason": reason, "preview": ""})
    assert sentence(event) == (f"turn 1: {shown}", "faint")
