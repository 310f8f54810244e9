"""The trace of a workflow, and the table of its events: each has its fields and a sentence."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from supervision.base import limits
from supervision.run.events import ROWS, TABLE, EventRow, plan_accepted, reviewed
from supervision.run.trace import TRACE_PAGE_BYTES, Trace
from tests.unit.shapes import Clock, plan, subtask


def filled(count: int, last_seq: int = 0) -> Trace:
    trace = Trace(Clock(), last_seq)
    for number in range(count):
        trace.note("turn", "t1", turn=number)
    return trace


@given(st.integers(0, 2500), st.integers(0, 100_000))
def test_the_latest_events_that_fit_are_recent(count: int, limit: int) -> None:
    trace = filled(count)
    recent = trace.recent(limit)
    assert [event.seq for event in recent] == list(range(count - len(recent) + 1, count + 1))
    assert sum(len(event.model_dump_json()) for event in recent) <= limit
    assert len(recent) <= limits.TRACE_EVENTS


def test_numbers_go_on_from_an_earlier_run_whose_events_are_dropped() -> None:
    trace = filled(2, last_seq=40)
    page = trace.page()
    assert ([event.seq for event in page.events], page.next_cursor, page.dropped) == ([41, 42], 42, 40)
    assert filled(0, last_seq=40).page(38).dropped == 2


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


def test_an_event_larger_than_a_page_is_a_page() -> None:
    trace = Trace(Clock())
    for _ in range(2):
        trace.note("tool", "t1", text="x" * 2 * TRACE_PAGE_BYTES)
    page = trace.page()
    assert ([event.seq for event in page.events], page.next_cursor) == ([1], 1)


ROOT = Path(__file__).resolve().parents[3]
NOTED = ("workflows", "supervision", "console/run")
SAMPLE: dict[str, JsonValue] = {
    "subtasks": 3,
    "findings": 1,
    "turns": 2,
    "problems": ["no role"],
    "flagged": ["t1"],
    "is_error": False,
}


def fields(row: EventRow) -> set[str]:
    """All fields of a row."""
    return {name.removesuffix("?") for name in row.fields.split()}


def required(row: EventRow) -> set[str]:
    """The fields that are always there."""
    return {name for name in row.fields.split() if not name.endswith("?")}


def notes() -> Iterator[tuple[str, ast.Call, str]]:
    """Every call of `note`, `_note` or `_said` with a type of event: where it stands, and that type."""
    for path in (path for folder in NOTED for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                given = [item for item in node.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
                if node.func.attr in ("note", "_note", "_said") and given:
                    yield f"{path.name}:{node.lineno}", node, str(given[0].value)


def misfit(node: ast.Call, kind: str) -> str:
    """What of a noted event is not as its row says; "" if all is."""
    if kind not in ROWS:
        return f"{kind} has no row"
    named = {keyword.arg for keyword in node.keywords if keyword.arg is not None}
    spread = len(named) < len(node.keywords)
    unknown = named - fields(ROWS[kind])
    missing = set() if spread else required(ROWS[kind]) - named
    return f"{kind}: unknown {sorted(unknown)}, missing {sorted(missing)}" if unknown or missing else ""


def test_every_event_that_is_noted_has_a_row_and_its_fields() -> None:
    found = list(notes())
    assert {f"{where} {wrong}" for where, node, kind in found if (wrong := misfit(node, kind))} == set()
    noted_elsewhere = {"note"}  # by the replies of a conversation
    assert {kind for _, _, kind in found} | noted_elsewhere == set(ROWS)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.type)
def test_every_row_has_a_sentence_of_its_own_fields(row: EventRow) -> None:
    data: dict[str, JsonValue] = {name: SAMPLE.get(name, name.upper()) for name in fields(row)}
    words, mood = row.line(data)
    assert words.strip()
    assert mood == row.mood
    if isinstance(row.sentence, str):
        with_all = row.line({name: "x" for name in fields(row)})[0]
        assert "?" not in with_all, "it names a field that the row does not have"


def test_counts_and_lists_are_written_out() -> None:
    assert ROWS["subtask_completed"].line({"turns": 1})[0] == "completed after 1 turn"
    assert ROWS["subtask_completed"].line({"turns": 2_000})[0] == "completed after 2,000 turns"
    assert ROWS["subtask_completed"].line({"turns": None})[0] == "completed after None turns"
    assert ROWS["plan_rejected"].line({"problems": ["no role", "a cycle"]})[0] == "the plan can't run: no role; a cycle"


def test_braces_in_foreign_text_are_only_text() -> None:
    assert ROWS["note"].line({"text": "{why} {0} {"})[0] == "message: {why} {0} {"


def test_what_a_program_makes_of_a_plan_and_a_review_are_the_fields_of_their_rows() -> None:
    assert set(plan_accepted(plan(subtask("a")), "plan")) == fields(ROWS["plan_accepted"])
    assert set(reviewed(1, {"t1": "say when"}, ["the price"])) == fields(ROWS["reviewed"])
