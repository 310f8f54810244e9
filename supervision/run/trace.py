"""The trace of one workflow: what happened, numbered, the latest events only."""

from collections import deque
from collections.abc import Callable
from datetime import datetime

from pydantic import JsonValue

from supervision.base import limits
from supervision.base.text import size
from supervision.contract.status import TraceEvent, TracePage
from supervision.run.events import sentence

TRACE_PAGE_BYTES = 160 * 1024  # of one reply to `trace`: the rest comes with its cursor


class Trace:
    """The last TRACE_EVENTS events. `now` is the workflow's clock; numbers continue from `last_seq`.

    `seen` gets each event when it is added.
    """

    def __init__(self, now: Callable[[], datetime], last_seq: int = 0) -> None:
        self._now = now
        self._events: deque[TraceEvent] = deque(maxlen=limits.TRACE_EVENTS)
        self.last_seq = last_seq
        self.seen: Callable[[TraceEvent], None] = lambda event: None

    def note(self, event: str, subtask_id: str | None = None, /, **data: JsonValue) -> None:
        """Adds an event: its type and fields are those of a row of `supervision.run.events`."""
        self.last_seq += 1
        at = self._now().isoformat()
        self._events.append(TraceEvent(seq=self.last_seq, at=at, type=event, subtask_id=subtask_id, data=data))
        self.seen(self._events[-1])

    @property
    def last_line(self) -> str:
        """The latest event as people read it; empty before the first."""
        if not self._events:
            return ""
        event = self._events[-1]
        return " ".join(filter(None, [event.subtask_id, sentence(event)[0]]))

    def page(self, cursor: int = 0) -> TracePage:
        """Returns the events after `cursor` that fit into a payload, and how many of these are not kept any more."""
        cursor, events, used = max(0, cursor), list[TraceEvent](), 0
        first = self._events[0].seq if self._events else self.last_seq + 1
        page = TracePage(next_cursor=self.last_seq, dropped=max(0, first - 1 - cursor))
        for event in self._events:
            if event.seq <= cursor:
                continue
            used += size(event.model_dump_json())
            if events and used > TRACE_PAGE_BYTES:
                page.next_cursor = events[-1].seq
                break
            events.append(event)
        page.events = events
        return page

    def recent(self, limit: int) -> list[TraceEvent]:
        """Returns the latest events in at most about `limit` bytes of JSON."""
        count, used = 0, 0
        for event in reversed(self._events):
            used += size(event.model_dump_json())
            if used > limit:
                break
            count += 1
        return list(self._events)[len(self._events) - count :]
