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
"""The ground of a finding: outputs of tools and its brief, or the model's own knowledge.

Code cannot check knowledge. A role declares it, or code finds it where tools brought no data and
the brief held none.
"""


class Labels(Model, frozen=True):
    """The private data and untrusted texts that were read on the way to a text.

    `untrusted` names that call with its subtask, such as "web_fetch example.com in t1"; it is empty
    without one. `home` is the server that all private data came from. It is empty if the data is
    local, or came from several places.
    """

    private: bool = False
    untrusted: str = ""
    home: Annotated[str, Field(exclude_if=lambda home: not home)] = ""

    def __or__(self, other: Self) -> Self:
        """Returns the labels of a text that is made from two texts."""
        private, untrusted = self.private or other.private, self.untrusted or other.untrusted
        homes = {labels.home for labels in (self, other) if labels.private}
        home = homes.pop() if len(homes) == 1 else ""
        return self.model_copy(update={"private": private, "untrusted": untrusted, "home": home})

    @property
    def path(self) -> str:
        """The untrusted call behind a text, for people; empty without one."""
        return (
            f"after reading {self.untrusted}{', and private data' * self.private}"
            if self.untrusted
            else ""
        )

    @classmethod
    def of(cls, findings: "Iterable[Finding | None]") -> "Labels":
        """Returns the combined labels of findings."""
        return reduce(or_, [finding.labels for finding in findings if finding], Labels())


Read = Annotated[Labels, Field(exclude_if=lambda labels: labels == Labels())]
"""Labels as a field that is left out where nothing is to be said."""


Readings = Annotated[list[str], Field(exclude_if=lambda readings: not readings)]
"""How columns of tables were read from the texts of a file, a line each."""


FoundNothing = Literal["no_rows", "no_such_value", "conditions_unmet"]
"""Why a query found nothing. Only the first one has no row: the others count or add up nothing."""


class QueryFacts(Model, frozen=True):
    """Facts about the result of a query, which its output tells a model in words.

    `nothing` is the reason why it found nothing: no rows, a compared value that is nowhere, or
    conditions that no row meets. `is_cut` is True if there are more rows than are shown, `is_tied`
    if LIMIT leaves out a row that ties with the last one, `adds_total` if the query adds up a row
    that is the sum of others.
    """

    nothing: FoundNothing | None = None
    is_cut: bool = False
    is_tied: bool = False
    adds_total: bool = False

    @property
    def has_data(self) -> bool:
        """True unless the query may ask for a value that is written otherwise.

        Conditions that no row meets are data: the answer is a count of 0.
        """
        return self.nothing not in ("no_rows", "no_such_value")


OptionalFacts = Annotated[QueryFacts | None, Field(exclude_if=lambda facts: facts is None)]
"""Facts about an output; None if it is not that of a query, or was stored before there were any."""


Doubts = Annotated[list[Sentence], Field(exclude_if=lambda doubts: not doubts)]
"""What the queries behind a finding leave undone of what its subtask asks for, a sentence each."""


class Evidence(Model):
    """A tool call behind a finding: its output by reference, readings of columns, and facts.

    `of_day` is True for the output of a query that uses the current date.
    """

    tool: str
    arguments: str = ""
    output_ref: str = ""
    readings: Readings = []
    facts: OptionalFacts = None
    of_day: Annotated[bool, Field(exclude_if=lambda is_so: not is_so)] = False


class CheckedClaim(Model):
    """A figure, name, quotation or URL in a finding, and the `line` in which code found it.

    `source` is empty if it was found nowhere. `ref` leads to the tool output with the line.
    `problem` is evidence against the claim, such as "the row has 2002, not 1987".
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
    """The facts on a finding apart from its text, stored once and read wherever it is used."""

    checked: list[CheckedClaim] = []
    evidence: list[Evidence] = []


class Finding(_Facts):
    """The result of a subtask: a `summary` of at most 2 KB, and references to the rest.

    `text_ref` leads to the whole text, of `text_bytes` bytes, `record_ref` to its FindingRecord,
    `items_ref` to the items that it names, and `output_ref` to the JSON object for its role's
    `output_schema`. `supported` claims of the text were found in tool outputs, `unsupported` ones
    were not. `doubts` are reasons to think that a query behind it does not fit the question.
    `labels` tell what its author had read.
    """

    summary: Summary
    text_ref: str
    text_bytes: int = 0
    artifacts: list[ArtifactRef] = []
    record_ref: str = ""
    items_ref: str = ""
    output_ref: str = ""
