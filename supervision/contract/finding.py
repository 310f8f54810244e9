"""A finding: the result of a worker agent's subtask."""

from typing import Literal

from supervision.contract.base import Model


class ArtifactRef(Model):
    """A piece of stored content, known by reference. `bytes` is its size."""

    name: str
    media_type: str = "text/plain"
    bytes: int = 0
    ref: str
    subtask_id: str = ""


Outcome = Literal["done", "partial"]
Grounding = Literal["tools", "knowledge"]
"""What a finding is built on: outputs of tools and its brief, or the model's own knowledge, which code can't check."""


class Evidence(Model):
    """A tool call behind a finding, its output by reference."""

    tool: str
    arguments: str = ""
    output_ref: str = ""


class CheckedClaim(Model):
    """A figure, quotation or address of a finding, and the `line` in which code found it; without `source`: nowhere."""

    text: str
    source: str = ""
    line: str = ""


class FindingRecord(Model):
    """The facts on a finding beside its text; stored once and read wherever the finding goes."""

    outcome: Outcome = "done"
    grounding: Grounding = "tools"
    summary: str = ""
    confidence: float | None = None
    limitations: list[str] = []
    sources: list[str] = []
    unsupported: list[str] = []
    checked: list[CheckedClaim] = []
    evidence: list[Evidence] = []


class Finding(Model):
    """`summary` is at most 2 KB; `text_ref` leads to the whole text, of `text_bytes` bytes.

    `record_ref` leads to its FindingRecord, `items_ref` to the list of items that it names, `output_ref` to the JSON
    object that its role's `output_schema` asks for. `unsupported` are the claims of its text that no tool output has.
    """

    outcome: Outcome = "done"
    summary: str
    text_ref: str
    text_bytes: int = 0
    confidence: float | None = None
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    limitations: list[str] = []
    unsupported: list[str] = []
    record_ref: str = ""
    items_ref: str = ""
    output_ref: str = ""
    grounding: Grounding = "tools"
