"""What a worker agent concludes: by the tool finish, or in a message without a call of it."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, WithJsonSchema

from supervision.base import limits
from supervision.base.prompt_marks import FINISH_TOOL
from supervision.base.text import cut, size
from supervision.contract.base import Model

_MARKUP = str.maketrans("", "", "*_>#")
_CLOSING = re.compile(r"(confidence|limitations?) ?:(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"(\d?\.?\d{1,6}) ?(%?)\.?")
_NOTHING = {"", "none", "none.", "n/a", "no", "-", "nothing"}


@dataclass(frozen=True)
class Conclusion:
    """`text` is the message without its closing lines; `confidence` is None when the agent gave none.

    A plain message is `done`, and has no summary of its own.
    """

    text: str
    confidence: float | None
    limitations: list[str]
    outcome: Literal["done", "partial", "impossible"] = "done"
    summary: str = ""


def conclude(message: str) -> Conclusion:
    """Returns a message without its last lines `Confidence: 0.8` and `Limitations: ...; ...`, and what these say.

    A line that says more than that stays in the text. A message of nothing but closing lines is its own text.
    """
    lines = message.strip().splitlines(keepends=True)
    confidence, limitations = None, list[str]()
    while lines:
        match = _CLOSING.fullmatch(lines[-1].translate(_MARKUP).strip(" -\r\n"))
        if match and match[1].lower() == "confidence" and (share := _share(match[2].strip())) is not None:
            confidence = share
        elif match and match[1].lower() != "confidence" and size(match[2]) <= limits.SENTENCE_BYTES:
            limitations = [part for part in map(str.strip, match[2].split(";")) if part.lower() not in _NOTHING]
        elif not lines[-1].isspace():
            break
        lines.pop()
    return Conclusion("".join(lines).strip() or message.strip(), confidence, limitations)


def _share(said: str) -> float | None:
    match = _NUMBER.fullmatch(said)
    value = float(match[1]) / (100 if match[2] else 1) if match else None
    return value if value is not None and value <= 1 else None


_MEANINGS = "partial: some is missing. impossible: your tools and sources cannot do it; summary says why"
_SHARE = {"type": "number", "description": "that it is right, 0 to 1"}


class FinishCall(Model):
    """The arguments of `finish` as the model writes them."""

    outcome: Annotated[Literal["done", "partial", "impossible"], Field(description=_MEANINGS)]
    summary: Annotated[str, Field(description="one to three sentences, with figures and units")]
    finding: Annotated[
        str,
        Field(description="all that is passed on, in Markdown: some paragraphs, figures with unit, period and source"),
    ] = ""
    confidence: Annotated[float | None, WithJsonSchema(_SHARE)] = None  # left out where the model can't say
    limitations: Annotated[list[str], Field(description="what is missing or uncertain")] = []


def finish_tool() -> dict[str, Any]:
    """Returns the definition of `finish` for the model."""
    description = "Concludes your subtask: call it once, alone."
    return {"name": FINISH_TOOL, "description": description, "input_schema": _schema()}


@cache
def _schema() -> dict[str, Any]:
    return {**FinishCall.model_json_schema(), "additionalProperties": False}


def read_finish(arguments: object) -> Conclusion | None:
    """Returns the conclusion of a call of `finish`; None if its arguments say nothing that can be used.

    What is slightly wrong is put right: a model that has concluded is not asked again for a form.
    """
    if not isinstance(arguments, dict):
        return None
    usable = {name: value for name, value in arguments.items() if value is not None}
    if isinstance(usable.get("limitations"), str):
        usable["limitations"] = [usable["limitations"]]
    try:
        call = FinishCall.model_validate(usable)
    except ValidationError:
        return None
    finding, summary = call.finding.strip(), call.summary.strip()
    if not finding and not summary:
        return None
    confidence = call.confidence / 100 if call.confidence and call.confidence > 1 else call.confidence
    return Conclusion(
        text=finding or summary,
        confidence=None if confidence is None else min(1.0, max(0.0, confidence)),
        limitations=[item for item in call.limitations if item.strip()],
        outcome=call.outcome,
        summary=cut(summary or finding, limits.SUMMARY_BYTES),
    )
