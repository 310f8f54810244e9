"""The trace of a workflow: its latest events, and every type of them with its fields and its sentence.

The names of types and fields are public: the query `trace` returns them. Whatever shows an event to people, in the
terminal or in the Web UI, asks this table.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from supervision.base import limits
from supervision.base.text import one_line, size
from supervision.contract.status import TraceEvent, TracePage, Wait
from supervision.contract.updates import Update
from supervision.run.decisions import Decision

TRACE_PAGE_BYTES = 160 * 1024  # of one reply to `trace`: the rest comes with its cursor

Mood = Literal["plain", "good", "bad", "faint", "head"]
_Data = Mapping[str, JsonValue]
_OPTIONAL = re.compile(r"\[(!?)(\w+)\?([^][]*)\]")
_FIELD = re.compile(r"{(\w+)(?::(\w+))?}")


@dataclass(frozen=True)
class EventRow:
    """A type of event. Names in `fields` that end in `?` are of fields which are not always there.

    A `sentence` names fields in braces: a list is joined, and `{turns:turn}` counts (`1 turn`, `2 turns`). A part such
    as `[by?, by {by}]` is left out where its field says nothing, or is the number 1; `[!by?, by nobody]` stands then.
    """

    type: str
    fields: str
    sentence: str
    mood: Mood = "plain"

    def line(self, data: _Data) -> tuple[str, Mood]:
        """Returns the sentence of an event with this data, and its mood."""

        def optional(part: re.Match[str]) -> str:
            value = data.get(part[2])
            says = bool(value) and (value is True or value != 1)
            return part[3] if says is not bool(part[1]) else ""

        words = _FIELD.sub(lambda field: _shown(data.get(field[1]), field[2]), _OPTIONAL.sub(optional, self.sentence))
        return words, "bad" if data.get("is_error") else self.mood


def _shown(value: JsonValue, noun: str | None) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    if noun and isinstance(value, int):
        return f"{value:,} {noun}{'' if value == 1 else 's'}"
    return "?" if value is None else str(value)


_R = EventRow
_BY = "[by?, by {by}][why?: {why}]"  # who did it, and why

TABLE: tuple[EventRow, ...] = (
    # The run.
    _R("phase", "phase", "{phase}", "head"),
    _R("run_reset", "deadline_at", "the run was reset", "head"),
    _R("limits_extended", "limits", "new limits: {limits}", "good"),
    _R("deadline_reached", "", "the deadline is reached: writing the answer from what exists", "bad"),
    _R("waiting_provider", "why", "waits for `resume`: {why}", "bad"),
    _R(
        "decided",
        "id kind decision after? by? text?",
        "{id}: {decision}[by? by {by}][text?: {text}][after? ({after})]",
        "good",
    ),
    _R("paused", "now? by? why?", "the run is paused" + _BY, "head"),
    _R("resumed", "by? why?", "the run is resumed" + _BY, "head"),
    _R("steered", "word by? why?", "a person says: {word}" + _BY, "good"),
    _R("model_replaced", "model by why work? head?", "model {by} takes over from {model}: {why}", "bad"),
    # The plan.
    _R(
        "plan_requested",
        "attempt revision",
        "asking for a plan[revision?, revision {revision}][attempt? (try {attempt})]",
        "faint",
    ),
    _R(
        "plan_accepted",
        "subtasks revision strategy reasoning estimated_tokens expected",
        "plan with {subtasks:subtask}[revision? (revision {revision})][expected?, expected: {expected}]",
        "good",
    ),
    _R("plan_rejected", "attempt problems", "the plan can't run: {problems}", "bad"),
    _R("role_unknown", "role by", "the team has no role {role}: {by} does it", "bad"),
    _R("items_planned", "items found revision", "a subtask for {items} of {found:item}", "good"),
    _R("nothing_to_add", "revision", "the plan needs nothing more", "faint"),
    # Subtasks. `head` is where the attempt's conversation can be read, `trace_ref` a nested run's trace.
    _R("subtask_started", "attempt role reasoning?", "{role} starts[attempt? (attempt {attempt})]"),
    _R("subtask_completed", "turns head? trace_ref?", "completed after {turns:turn}", "good"),
    _R("subtask_failed", "error message attempts? head? trace_ref?", "failed: {error}", "bad"),
    _R(
        "subtask_retried",
        "error message role description head? trace_ref?",
        "failed: {error}, trying again with {role}",
        "bad",
    ),
    _R("subtask_reopened", "feedback warm", "done again[warm?, where it ended][!warm?, from the beginning]"),
    _R("retry_asked", "instruction? by? why?", "is to be done again" + _BY, "good"),
    _R("skip_asked", "by? why?", "is to be skipped" + _BY, "bad"),
    _R("subtask_skipped", "", "skipped: none of its dependencies succeeded", "bad"),
    _R("subtask_cancelled", "turns? head? trace_ref?", "stopped", "bad"),
    _R("subtask_held", "role", "waits: the breaker of role {role} is open", "bad"),
    _R("candidate_ended", "candidate head?", "candidate {candidate} has ended", "faint"),
    _R("candidate_chosen", "choice of reason", "candidate {choice} of {of} is the best"),
    # Worker agents.
    _R(
        "turn",
        "turn stop_reason preview tokens model cleared? withheld?",
        "turn {turn}[withheld?, without {withheld}]: [preview?{preview}][!preview?{stop_reason}]",
        "faint",
    ),
    _R("tool", "name arguments is_error preview after?", "{name} {arguments} → {preview}"),
    _R("note", "text", "message: {text}"),
    _R("finding_returned", "unsupported", "its finding goes back: {unsupported}", "bad"),
    # The answer.
    _R(
        "reviewed",
        "round flagged feedback missing",
        "review, round {round}: [flagged?{flagged} again][!flagged?all findings hold]",
    ),
    _R(
        "conflict",
        "subtasks description resolved resolution",
        "conflict between {subtasks}, [!resolved?not ]settled",
        "bad",
    ),
    _R("draft_written", "number findings", "a draft from {findings:finding}", "faint"),
    _R("draft_failed", "", "there is no draft", "faint"),
    _R("draft_outdated", "number", "a draft is dropped: a finding in it is done again", "faint"),
    _R("synthesis_started", "number findings mode", "writing the answer ({mode}) from {findings:finding}", "faint"),
    _R("answer_returned", "unsupported problems", "the answer goes back to its author", "bad"),
    _R("answer_chosen", "choice of reason", "its finding is the best of {of} answers"),
    _R("finding_adopted", "", "its finding is the answer, word for word"),
)

ROWS: dict[str, EventRow] = {row.type: row for row in TABLE}


def sentence(event: TraceEvent) -> tuple[str, Mood]:
    """Returns the sentence of an event and its mood; an unknown type, of a later version, is shown as it is."""
    if row := ROWS.get(event.type):
        return row.line(event.data)
    return f"{event.type} {event.data if event.data else ''}", "faint"


def said(update: Update, **data: JsonValue) -> dict[str, JsonValue]:
    """Returns the fields of what a person did: who, why, and the `data` that there are."""
    fields: dict[str, JsonValue] = {**data, "by": update.by, "why": update.comment}
    return {
        name: one_line(value, limits.SENTENCE_BYTES) if isinstance(value, str) else value
        for name, value in fields.items()
        if value
    }


def decided(wait: Wait, decision: Decision | None) -> dict[str, JsonValue]:
    """Returns the fields of `decided`; without a decision the time for it was over."""
    shown: dict[str, JsonValue] = {"id": wait.id, "kind": wait.kind, **({"after": wait.after} if wait.after else {})}
    if decision is None:
        return {**shown, "decision": "expired"}
    said = {"by": decision.by, "text": one_line(decision.text, limits.SENTENCE_BYTES)}
    return {**shown, "decision": decision.choice, **{name: text for name, text in said.items() if text}}


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
        """Adds an event: its type and fields are those of a row of the table."""
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
