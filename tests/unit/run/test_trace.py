"""The trace of a workflow: what is kept of it, and how numbers go on over continue-as-new."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.run.trace import TRACE_PAGE_BYTES, Trace
from tests.unit.shapes import Clock


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
