"""The trace of a workflow: its latest events, and the sentence for each type of event.

The names of types and fields are public: the query `trace` returns them. Everything that describes
an event to people uses this table.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.plan import Plan
from temporal_supervisor.supervision.contract.status import TraceEvent, TracePage, Wait
from temporal_supervisor.supervision.contract.updates import Update
from temporal_supervisor.supervision.results.payload_fit import pages
from temporal_supervisor.supervision.run.decisions import Decision

_PLANNED_SHOWN = 100  # subtasks of a plan in its event, and dependencies of one
_PLANNED_BYTES = 16 * limits.KIB  # of descriptions in the event of a plan
TRACE_PAGE_BYTES = 160 * 1024  # of one reply to `trace`: the rest comes with its cursor

Mood = Literal["plain", "good", "bad", "faint", "head"]
_OPTIONAL = re.compile(r"\[(!?)(\w+)\?([^][]*)\]")  # "[by?, by {by}]", "[!by?, by nobody]"
_FIELD = re.compile(r"{(\w+)(?::(\w+))?}")  # "{by}", "{turns:turn}"


def _field_text(value: JsonValue, noun: str | None) -> str:
    """Returns the value of a field in words; a number with its noun."""
    if isinstance(value, list):
        return "; ".join(map(str, value))
    if noun and isinstance(value, int):
        return f"{value:,} {noun}{'' if value == 1 else 's'}"
    return "?" if value is None else str(value)


_BY = "[by?, by {by}][why?: {why}]"  # who did it, and why

SENTENCES: dict[str, tuple[str, Mood]] = {
    # The run.
    "phase": ("{phase}", "head"),
    "run_reset": ("the run was reset", "head"),
    "limits_extended": ("new limits: {limits}", "good"),
    "deadline_reached": ("the deadline is reached: writing the answer from what exists", "bad"),
    "waiting_provider": ("waits for `resume`: {why}", "bad"),
    "waiting_store": ("waits for the artifact store: {why}", "bad"),
    "decided": ("{id}: {decision}[by? by {by}][text?: {text}][after? ({after})]", "good"),
    "decision_refused": ("a decision was refused[id?, on {id}]: {why}", "bad"),
    "paused": ("the run is paused" + _BY, "head"),
    "resumed": ("the run is resumed" + _BY, "head"),
    "steered": ("a person says: {word}" + _BY, "good"),
    "model_replaced": ("model {by} takes over from {model}: {why}", "bad"),
    # The plan.
    "plan_requested": (
        "asking for a plan[revision?, revision {revision}][attempt? (try {attempt})]",
        "faint",
    ),
    "plan_accepted": (
        "plan with {subtasks:subtask}[revision? (revision {revision})]"
        "[expected?, expected: {expected}]",
        "good",
    ),
    "plan_rejected": ("the plan can't run: {problems}", "bad"),
    "role_unknown": ("the team has no role {role}: {by} does it", "bad"),
    "plan_put_right": ("names of the plan that were none, or did not fit: {changes}", "bad"),
    "items_planned": ("a subtask for {items} of {found:item}", "good"),
    "replan_brought": ("the revision brought {added:subtask}", "faint"),
    "step_left_out": ("no {step}: it is switched off for {model}", "faint"),
    "nothing_to_add": ("the plan needs nothing more", "faint"),
    # Subtasks. The field `head` is where an attempt's conversation can be read, `trace_ref` a
    # nested run's trace.
    "subtask_started": (
        "delegating to {role}[attempt? (attempt {attempt})][description?: {description}]",
        "plain",
    ),
    "subtask_completed": ("completed after {turns:turn}", "good"),
    "findings_looked_up": (
        "[is_new?no work of an earlier run is the same: all of it is done]"
        "[!is_new?{findings:finding} of earlier runs can be taken]",
        "plain",
    ),
    "subtask_reused": ("found before: {place}[calls?, which saves {calls:call}]", "good"),
    "subtask_failed": ("failed: {error}", "bad"),
    "subtask_retried": ("failed: {error}, trying again with {role}", "bad"),
    "subtask_reopened": ("done again[warm?, where it ended][!warm?, from the beginning]", "plain"),
    "retry_asked": ("is to be done again" + _BY, "good"),
    "skip_asked": ("is to be skipped" + _BY, "bad"),
    "subtask_skipped": ("skipped: none of its dependencies succeeded", "bad"),
    "subtask_cancelled": ("stopped", "bad"),
    "subtask_diverted": ("goes to {role}: {why}", "plain"),
    "subtask_held": ("waits: the breaker of role {role} is open", "bad"),
    "candidate_ended": ("candidate {candidate} has ended", "faint"),
    "candidate_chosen": ("candidate {choice} of {of} is the best", "plain"),
    # Worker agents.
    "turn": (
        "turn {turn}[withheld?, without {withheld}]: [preview?{preview}][!preview?{stop_reason}]",
        "faint",
    ),
    "tool": ("{name} {arguments} → {preview}", "plain"),
    "note": ("message: {text}", "plain"),
    "other_query": ("another query for it[arguments?: {arguments} → {preview}]", "faint"),
    "finding_returned": ("its finding goes back[why?: {why}][unsupported?: {unsupported}]", "bad"),
    "refine_brought": ("the rewritten description brought {brought}", "plain"),
    "begun_anew": (
        "it repeats itself: its conversation begins anew, with what tools returned",
        "faint",
    ),
    "finding_kept": ("of its findings the {which} one is kept", "plain"),
    # The answer.
    "review_left_out": (
        "no review: {model} made the findings itself, and its window is small",
        "faint",
    ),
    "reviewed": (
        "review, round {round}: [flagged?{flagged} again][!flagged?all findings hold]"
        "[without_effect?, nothing to see in what it says of {without_effect}]",
        "plain",
    ),
    "review_brought": ("the review changed [changed?{changed}][!changed?nothing]", "plain"),
    "conflict": ("conflict between {subtasks}, [!resolved?not ]settled", "bad"),
    "draft_written": ("a draft from {findings:finding}[preview?: {preview}]", "faint"),
    "draft_failed": ("there is no draft", "faint"),
    "synthesis_started": ("writing the answer ({mode}) from {findings:finding}", "faint"),
    "answer_returned": ("the answer goes back to its author", "bad"),
    "answer_kept": ("of two answers the {which} one is kept", "plain"),
    "no_answer": ("there is no answer: {error}", "bad"),
    "answer_chosen": ("its finding is the best of {of} answers", "plain"),
    "finding_adopted": ("its finding is the answer, word for word", "plain"),
}
"""Of each type of event the sentence and its mood.

A sentence names fields in braces: a list is joined, and `{turns:turn}` counts (`1 turn`, `2
turns`). A part such as `[by?, by {by}]` is left out where its field says nothing, or is the number
1; `[!by?, by nobody]` stands then.
"""


_STOPS: Mapping[str, str] = {
    "tool_use": "calls tools",
    "end_turn": "no text",
    "max_tokens": "cut at its limit",
    "refusal": "refuses",
}
"""Why a turn without text ended, in words; what else an endpoint says is shown as it is."""


def sentence(event: TraceEvent) -> tuple[str, Mood]:
    """Returns the sentence and the mood of an event.

    An unknown type, from a later version, is its own sentence.
    """
    if event.type not in SENTENCES:
        return f"{event.type} {event.data or ''}", "faint"
    text, mood = SENTENCES[event.type]
    data = event.data

    def optional(part: re.Match[str]) -> str:
        value = data.get(part[2])
        has_content = bool(value) and (value is True or value != 1)
        is_negated = bool(part[1])
        return part[3] if has_content is not is_negated else ""

    reason = data.get("stop_reason")
    read = {**data, "stop_reason": _STOPS.get(str(reason), reason)}
    left = _OPTIONAL.sub(optional, text)
    words = _FIELD.sub(lambda field: _field_text(read.get(field[1]), field[2]), left)
    return words, "bad" if data.get("is_error") else mood


def plan_fields(plan: Plan) -> list[JsonValue]:
    """Returns the first subtasks of a plan, for the plan's event.

    The whole plan is at the event's `plan_ref`.
    """
    shown = plan.named[:_PLANNED_SHOWN]
    share = min(limits.SENTENCE_BYTES, _PLANNED_BYTES // max(1, len(shown)))
    return [
        {
            "id": subtask.id,
            "role": subtask.role,
            "description": one_line(subtask.description, share),
            "depends_on": [*subtask.depends_on[:_PLANNED_SHOWN]],
        }
        for subtask in shown
    ]


def update_fields(update: Update, **data: JsonValue) -> dict[str, JsonValue]:
    """Returns the fields of a person's update: by whom, why, and the non-empty `data`."""
    fields: dict[str, JsonValue] = {**data, "by": update.by, "why": update.comment}
    return {
        name: one_line(value, limits.SENTENCE_BYTES) if isinstance(value, str) else value
        for name, value in fields.items()
        if value
    }


def decision_fields(wait: Wait, decision: Decision | None) -> dict[str, JsonValue]:
    """Returns the fields of the event `decided`; without a decision the wait has expired."""
    shown: dict[str, JsonValue] = {"id": wait.id, "kind": wait.kind}
    if wait.after:
        shown["after"] = wait.after
    if decision is None:
        return {**shown, "decision": "expired"}

    shown["decision"] = decision.choice
    if decision.by:
        shown["by"] = decision.by
    text = one_line(decision.text, limits.SENTENCE_BYTES)
    if text:
        shown["text"] = text
    return shown


class Trace:
    """The last TRACE_EVENTS events, numbered from `last_seq` on.

    `note` is the only way to add one. Methods that change the state of a run are named otherwise:
    they add, set or mark something. `seen` is called with each new event.
    """

    def __init__(self, now: Callable[[], datetime], last_seq: int = 0) -> None:
        self._now = now
        self._events: deque[TraceEvent] = deque(maxlen=limits.TRACE_EVENTS)
        self.last_seq = last_seq
        self.seen: Callable[[TraceEvent], None] = lambda event: None

    def set_listener(self, seen: Callable[[TraceEvent], None]) -> None:
        """Sets the function that is called with each new event."""
        self.seen = seen

    def note(self, event: str, subtask_id: str | None = None, /, **data: JsonValue) -> None:
        """Adds an event of a type that is in SENTENCES."""
        self.last_seq += 1
        noted = TraceEvent(
            seq=self.last_seq,
            at=self._now().isoformat(),
            type=event,
            subtask_id=subtask_id,
            data=data,
        )
        self._events.append(noted)
        self.seen(noted)

    def page(self, cursor: int = 0) -> TracePage:
        """Returns the events after `cursor` that fit into a payload."""
        following = [event for event in self._events if event.seq > cursor]
        fitting, *rest = pages(following, TRACE_PAGE_BYTES)
        return TracePage(events=fitting, next_cursor=fitting[-1].seq if rest else self.last_seq)

    def recent(self, limit: int) -> list[TraceEvent]:
        """Returns at least the latest event, and more within about `limit` bytes of JSON."""
        return pages(list(reversed(self._events)), limit)[0][::-1]
