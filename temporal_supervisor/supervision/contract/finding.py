"""A finding: the result of a worker agent's subtask."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Annotated, Literal, Self

from pydantic import Field

from temporal_supervisor.supervision.contract.base import Model, Sentence, Summary


class ArtifactRef(Model):
    """A piece of stored content, known by reference. `bytes` is its size."""

    name: str
    media_type: str = "text/plain"
    bytes: int = 0
    ref: str
    subtask_id: str = ""


Outcome = Literal["done", "partial"]
Grounding = Literal["tools", "knowledge"]
"""What a finding is built on: outputs of tools and its brief, or the model's own knowledge, which code can't check.

The second is what a role declares, or what code finds where tools brought no data and the brief
held none.
"""


class Labels(Model, frozen=True):
    """The private data and untrusted texts that were read on the way to a text.

    `untrusted` is that call with its subtask, such as "web_fetch example.com in t1"; empty if there
    was none. `home` is the server that all private data came from, empty if they came from several
    places or from here.
    """

    private: bool = False
    untrusted: str = ""
    home: Annotated[str, Field(exclude_if=lambda home: not home)] = ""

    def __or__(self, other: Self) -> Self:
        """Returns the labels of a text that is made of two."""
        private, untrusted = self.private or other.private, self.untrusted or other.untrusted
        homes = {labels.home for labels in (self, other) if labels.private}
        home = homes.pop() if len(homes) == 1 else ""
        return self.model_copy(update={"private": private, "untrusted": untrusted, "home": home})

    @property
    def path(self) -> str:
        """The untrusted call behind a text, for people; empty if there was none."""
        return f"after reading {self.untrusted}{', and private data' * self.private}" if self.untrusted else ""

    @classmethod
    def of(cls, findings: "Iterable[Finding | None]") -> "Labels":
        """Returns the labels of what is made of all findings."""
        return reduce(or_, [finding.labels for finding in findings if finding], Labels())


Read = Annotated[Labels, Field(exclude_if=lambda labels: labels == Labels())]
"""Labels as a field that is left out where nothing is to be said."""


Readings = Annotated[list[str], Field(exclude_if=lambda readings: not readings)]
"""How columns of tables were read from the texts of a file, a line each."""


Doubts = Annotated[list[Sentence], Field(exclude_if=lambda doubts: not doubts)]
"""What the queries behind a finding leave undone of what its subtask asks for, a sentence each."""


class Evidence(Model):
    """A tool call behind a finding, its output by reference, and how the columns behind it were read from texts.

    The output of a query that asks for the date is `of_day`.
    """

    tool: str
    arguments: str = ""
    output_ref: str = ""
    readings: Readings = []
    of_day: Annotated[bool, Field(exclude_if=lambda is_so: not is_so)] = False


class CheckedClaim(Model):
    """A figure, name, quotation or address of a finding, and the `line` in which code found it.

    Without `source` it was found nowhere. `ref` leads to the output of a tool that has the line.
    `problem` says what speaks against a claim, such as "the row has 2002, not 1987".
    """

    text: str
    source: str = ""
    line: str = ""
    ref: str = ""
    problem: str = ""


class _Facts(Model):
    outcome: Outcome = "done"
    grounding: Grounding = "tools"
    summary: Summary = ""
    confidence: float | None = None
    limitations: list[Sentence] = []
    sources: list[str] = []
    supported: Annotated[int, Field(exclude_if=lambda claims: not claims)] = 0
    unsupported: list[Sentence] = []
    doubts: Doubts = []
    labels: Read = Labels()


class FindingRecord(_Facts):
    """The facts on a finding beside its text; stored once and read wherever the finding goes."""

    checked: list[CheckedClaim] = []
    evidence: list[Evidence] = []


class Finding(_Facts):
    """`summary` is at most 2 KB; `text_ref` leads to the whole text, of `text_bytes` bytes.

    `record_ref` leads to its FindingRecord, `items_ref` to the list of items that it names,
    `output_ref` to the JSON object that its role's `output_schema` asks for. Of the claims of its
    text some tool output has so many as are `supported`, and none has the `unsupported` ones. Its
    figures may be those of a query that asks for something else: `doubts` say so. `labels` say what
    its author had read.
    """

    summary: Summary
    text_ref: str
    text_bytes: int = 0
    artifacts: list[ArtifactRef] = []
    record_ref: str = ""
    items_ref: str = ""
    output_ref: str = ""
