"""Trace events as lines for people."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from temporal_supervisor.supervision.contract.status import TraceEvent
from temporal_supervisor.supervision.run.events import Mood, sentence


@dataclass(frozen=True)
class Line:
    """An event; `subject` is its subtask, "" for the run. Its texts are not made safe yet.

    `why` has the reasons, which only `trace` shows.
    """

    at: datetime
    subject: str
    text: str
    mood: Mood = "plain"
    why: tuple[str, ...] = ()


def now_line(text: str, mood: Mood = "plain") -> Line:
    """Returns a line by the command itself, at the present time."""
    return Line(datetime.now(UTC), "", text, mood)


def event_line(event: TraceEvent) -> Line:
    """Returns the line of an event of a run or a worker agent."""
    text, mood = sentence(event)
    at = datetime.fromisoformat(event.at)
    return Line(at, event.subtask_id or "", text, mood, tuple(_reasons(event)))


def _reasons(event: TraceEvent) -> Iterator[str]:
    """Yields the texts behind an event, each with its label."""
    data = dict(event.data)
    if event.type == "subtask_started":  # its sentence says it
        data.pop("description", None)
    for name, label in _REASONS.items():
        value = data.get(name)
        if isinstance(value, dict):
            yield from (f"{label} for {key}: {text}" for key, text in value.items())
        elif isinstance(value, list):
            yield from (f"{label}: {text}" for text in value)
        elif value:
            yield f"{label}: {value}"


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
