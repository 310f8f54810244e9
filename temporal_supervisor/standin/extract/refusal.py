"""The refusal of a question that the stand-in can't answer."""

from temporal_supervisor.standin.extract.standin_words import (
    NEEDS_MODEL,
    STANDIN_LIMITS,
    ways_to_a_model,
)
from temporal_supervisor.standin.lookup.word_forms import clip

_ASKED_CHARS = 200


def refusal(asked: str) -> str:
    """Returns the whole refusal of a question, as Markdown, with the ways to a model."""
    first, *ways, last = ways_to_a_model()
    return "\n\n".join([refusal_line(asked), first, "\n".join(ways), last])


def refusal_line(asked: str) -> str:
    """Returns the refusal alone, on one line."""
    return f"{NEEDS_MODEL}: “{clip(asked, _ASKED_CHARS)}”. {STANDIN_LIMITS}"
