"""Trace events as lines for people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import JsonValue

from console.terminal import counted
from supervision.contract.status import TraceEvent

Mood = Literal["plain", "good", "bad", "faint", "head"]


@dataclass(frozen=True)
class Line:
    """One thing that happened; `subject` is the subtask it is about, "" for the run. Not yet safe to print.

    `why` are the reasons and words behind it, which only the whole story shows.
    """

    at: datetime
    subject: str
    text: str
    mood: Mood = "plain"
    why: tuple[str, ...] = ()


def now_line(text: str, mood: Mood = "plain") -> Line:
    """Returns a line of the command line's own, at the present time."""
    return Line(datetime.now(UTC), "", text, mood)


def line(event: TraceEvent) -> Line:
    """Returns the line of an event of a run or of a worker agent."""
    text, mood = _wording(event)
    return Line(datetime.fromisoformat(event.at), event.subtask_id or "", text, mood, tuple(_reasons(event)))


def _wording(event: TraceEvent) -> tuple[str, Mood]:
    if event.type not in _WORDS:
        return f"{event.type} {event.data if event.data else ''}", "faint"
    wording, mood = _WORDS[event.type]
    return wording(event.data), "bad" if event.data.get("is_error") else mood


def _reasons(event: TraceEvent) -> Iterator[str]:
    """Yields the words behind an event, each with what they are."""
    data = event.data
    for name, label in _REASONS.items():
        value = data.get(name)
        if isinstance(value, dict):
            yield from (f"{label} for {key}: {text}" for key, text in value.items())
        elif isinstance(value, list):
            yield from (f"{label}: {text}" for text in value)
        elif value:
            yield f"{label}: {value}"


def _numbered(text: str, number: object, word: str) -> str:
    return f"{text} ({word} {number})" if isinstance(number, int) and number > 1 else text


def _joined(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(value: object, noun: str) -> str:
    return counted(value, noun) if isinstance(value, int) else f"{value} {noun}s"


def _requested(data: dict[str, JsonValue]) -> str:
    return "asking for a plan" if data.get("revision") in (None, 1) else "asking what to add to the plan"


def _counted(data: dict[str, JsonValue]) -> str:
    return f"plan with {_number(data.get('subtasks'), 'subtask')}"


def _reviewed(data: dict[str, JsonValue]) -> str:
    flagged = _joined(data.get("flagged"))
    return f"review, round {data.get('round')}: " + (f"{flagged} again" if flagged else "all findings hold")


def _settled(data: dict[str, JsonValue]) -> str:
    return ", settled" if data.get("resolved") else ", not settled"


def _started(data: dict[str, JsonValue]) -> str:
    return f"{data.get('role') or 'a nested supervisor'} starts"


def _retried(data: dict[str, JsonValue]) -> str:
    better = ", better described" if data.get("description") else ""
    return f"failed: {data.get('error')}, trying again with {data.get('role')}{better}"


def _reopened(data: dict[str, JsonValue]) -> str:
    return "done again" + (", where it ended" if data.get("warm") else ", from the beginning")


def _replaced(data: dict[str, JsonValue]) -> str:
    return f"model {data.get('by')} takes over from {data.get('model')}: {data.get('why')}"


def _chosen(data: dict[str, JsonValue]) -> str:
    return f"candidate {data.get('choice')} of {data.get('of')} is the best"


def _written(data: dict[str, JsonValue]) -> str:
    return "condensing" if data.get("mode") == "digest" else "writing the answer"


_WORDS: dict[str, tuple[Callable[[dict[str, JsonValue]], str], Mood]] = {
    "phase": (lambda data: str(data.get("phase")), "head"),
    "plan_requested": (lambda data: _numbered(_requested(data), data.get("attempt"), "try"), "faint"),
    "plan_accepted": (lambda data: _numbered(_counted(data), data.get("revision"), "revision"), "good"),
    "plan_rejected": (lambda data: f"the plan can't run: {_joined(data.get('problems'))}", "bad"),
    "subtask_started": (lambda data: _numbered(_started(data), data.get("attempt"), "attempt"), "plain"),
    "subtask_completed": (lambda data: f"completed after {_number(data.get('turns'), 'turn')}", "good"),
    "subtask_failed": (lambda data: f"failed: {data.get('error')}", "bad"),
    "subtask_retried": (_retried, "bad"),
    "subtask_reopened": (_reopened, "plain"),
    "subtask_skipped": (lambda _: "skipped: none of its dependencies succeeded", "bad"),
    "subtask_cancelled": (lambda _: "stopped", "bad"),
    "subtask_held": (lambda data: f"waits: the breaker of role {data.get('role')} is open", "bad"),
    "subtask_diverted": (
        lambda data: f"goes to {data.get('role')}: pool {data.get('pool')} is {data.get('waited_seconds')} s behind",
        "plain",
    ),
    "candidate_ended": (lambda data: f"candidate {data.get('candidate')} has ended", "faint"),
    "candidate_chosen": (_chosen, "plain"),
    "answer_chosen": (_chosen, "plain"),
    "finding_adopted": (lambda _: "its finding is the answer, word for word", "plain"),
    "finding_returned": (lambda _: "its finding goes back: some claims have no support", "bad"),
    "answer_returned": (lambda _: "the answer goes back to its author", "bad"),
    "model_replaced": (_replaced, "bad"),
    "run_reset": (lambda _: "the run was reset", "head"),
    "cancel_requested": (lambda _: "somebody cancels the run", "bad"),
    "note": (lambda data: f"is told: {data.get('text')}", "plain"),
    "nothing_to_add": (lambda _: "the plan needs nothing more", "faint"),
    "reviewed": (lambda data: _reviewed(data), "plain"),
    "conflict": (lambda data: f"conflict between {_joined(data.get('subtasks'))}{_settled(data)}", "bad"),
    "draft_written": (lambda data: f"a draft from {_number(data.get('findings'), 'finding')}", "faint"),
    "draft_failed": (lambda _: "there is no draft", "faint"),
    "draft_outdated": (lambda _: "a draft is dropped: a finding in it is done again", "faint"),
    "waiting_provider": (lambda data: f"waits for `resume`: {data.get('why')}", "bad"),
    "limits_extended": (lambda data: f"new limits: {data.get('limits')}", "good"),
    "deadline_reached": (lambda _: "the deadline is reached: writing the answer from what exists", "bad"),
    "synthesis_started": (lambda data: f"{_written(data)} from {_number(data.get('findings'), 'finding')}", "faint"),
    "turn": (lambda data: f"turn {data.get('turn')}: {data.get('preview') or data.get('stop_reason')}", "faint"),
    "tool": (lambda data: f"{data.get('name')} {data.get('arguments')} → {data.get('preview')}", "plain"),
}

_REASONS = {
    "reasoning": "why",
    "reason": "why",
    "message": "error",
    "description": "now",
    "feedback": "feedback",
    "missing": "missing from the plan",
    "unsupported": "no support",
    "resolution": "settled",
}
"""The fields of events that hold words to read, each with what they are called."""
