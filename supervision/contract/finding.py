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


class Finding(Model):
    """`summary` is at most 2 KB; `text_ref` leads to the whole text, of `text_bytes` bytes.

    A `partial` one is what there was when the work had to end.
    """

    summary: str
    text_ref: str
    text_bytes: int = 0
    confidence: float | None = None
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []
    limitations: list[str] = []
    outcome: Literal["done", "partial"] = "done"
