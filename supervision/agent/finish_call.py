"""The tool `finish`, by which a worker agent concludes: what it takes, and reading a call of it."""

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, WithJsonSchema

from supervision import limits
from supervision.agent.closing_lines import Conclusion
from supervision.contract.base import Model
from supervision.prompt_marks import FINISH_TOOL
from supervision.text import cut

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
