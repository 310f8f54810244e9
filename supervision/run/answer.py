"""The answer of a run, as it was written."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from supervision.contract.result import Citation


@dataclass(frozen=True)
class Answer:
    """`text` may be shortened: `ref` leads to all of it.

    `is_findings` is True if the findings stand in for an answer that could not be written.
    """

    text: str = ""
    ref: str | None = None
    as_json: JsonValue = None
    confidence: float | None = None
    citations: list[Citation] = field(default_factory=list)
    is_findings: bool = False
