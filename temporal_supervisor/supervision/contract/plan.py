"""The plan, as the planner returns it and the query `plan` shows it, and its estimate."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    field_serializer,
)

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model, Summary

Importance = Literal["required", "optional"]
Aggregation = Literal["merge", "select", "reduce", "finding"]


class Subtask(Model):
    """One unit of delegation.

    `role` is a role of the team or `auto`; `timeout_seconds` None is the default. `weight`, from 0
    to 1, decides which findings are kept when there is not room for all. Of several `candidates`
    the first has the `role`, the others those of `candidate_roles` and the `role` again, in turn.
    `estimated_tokens` (0 is no estimate) weighs its share of the budget. `replaces` names failed or
    skipped subtasks of earlier revisions.

    A subtask with `taken_from` is the finding of that subtask of an earlier run, `RUN/t2`; a
    template's are those of the earlier items that are the same.

    A subtask with `for_each` is a template: `items:t1`, `rows:NAME`, `lines:NAME` or `files:*.pdf`.
    Once its items are known, one subtask for each, of at most `max_items`, takes its place: `t2.1`,
    `t2.2`, ..., each with its `item`.
    """

    id: str
    description: str
    role: str = "auto"
    capabilities: list[str] = []
    depends_on: list[str] = []
    importance: Importance = "required"
    weight: float = 0.5
    reasoning: str = ""
    candidates: int = 1
    candidate_roles: list[str] = []
    estimated_tokens: int = 0
    timeout_seconds: float | None = None
    attachments: list[str] = []
    replaces: list[str] = []
    taken_from: Annotated[str | None, Field(exclude_if=lambda place: place is None)] = None
    for_each: str | None = None
    max_items: int | None = None
    item: str = ""

    @property
    def whole(self) -> str:
        """The description with the item."""
        return f"{self.item}: {self.description}" if self.item else self.description

    @property
    def template(self) -> str | None:
        """The template of an item's subtask; None for a subtask that the plan itself lists."""
        return template_of(self.id)

    @property
    def names_items_of(self) -> str | None:
        """The subtask whose finding names the items; None if they have another source, or none."""
        kind, _, name = (self.for_each or "").partition(":")
        return name if kind == "items" else None


def template_of(subtask_id: str) -> str | None:
    """Returns the template of an item's subtask: `t2` for `t2.1`, None for `t2`."""
    template, dot, _ = subtask_id.partition(".")
    return template if dot else None


def folded(subtask_ids: Iterable[str]) -> list[str]:
    """Returns ids without duplicates, with items replaced by their templates."""
    return list(dict.fromkeys(template_of(subtask_id) or subtask_id for subtask_id in subtask_ids))


class NewRole(Model):
    """A role that a plan defines, with tools from the team's toolbox."""

    name: str
    description: str
    system_prompt: str
    tools: list[str] = []


class Plan(Model):
    """A graph of subtasks, or a direct answer without any.

    `aggregation` is the way to the answer: from all findings, from the best one, from condensed
    groups of them, or the finding of the subtask `answer_from` word for word.
    """

    goal: Summary = ""
    direct_answer: str | None = None
    reasoning: str = ""
    aggregation: Aggregation = "merge"
    answer_from: str | None = None
    final_instruction: str = ""
    subtasks: list[Subtask] = []
    new_roles: list[NewRole] = []
    revision: int = 1

    @field_serializer("subtasks", mode="wrap", when_used="json")
    def _lean(self, subtasks: list[Subtask], dump: SerializerFunctionWrapHandler) -> Any:
        """Omits unset fields of long lists: otherwise 1,000 subtasks would not fit a payload."""
        if len(subtasks) <= limits.STATUS_PAGE:
            return dump(subtasks)
        return [subtask.model_dump(mode="json", exclude_defaults=True) for subtask in subtasks]

    @property
    def named(self) -> list[Subtask]:
        """The subtasks that the plan lists, without those made for items."""
        return [subtask for subtask in self.subtasks if subtask.template is None]

    @property
    def importance(self) -> dict[str, Importance]:
        """The importance of subtasks by id, without replaced ones; items under their template."""
        replaced = {old for subtask in self.named for old in subtask.replaces}
        kept = [subtask for subtask in self.named if subtask.id not in replaced]
        return {subtask.id: subtask.importance for subtask in kept}

    @property
    def answer_subtask(self) -> str | None:
        """The subtask whose finding is the answer word for word; None for other answers.

        If there is only one subtask, `answer_from` may be empty.
        """
        if self.aggregation != "finding":
            return None
        only = self.named[0].id if len(self.named) == 1 else None
        return self.answer_from or only

    def folded(self) -> "Plan":
        """Returns the plan with each template in place of its items."""
        subtasks = [
            subtask.model_copy(update={"depends_on": folded(subtask.depends_on)})
            for subtask in self.named
        ]
        return self.model_copy(update={"subtasks": subtasks})

    def subtask(self, subtask_id: str) -> Subtask:
        """Returns the subtask with that id. Raises KeyError if there is none."""
        return {subtask.id: subtask for subtask in self.subtasks}[subtask_id]


def _strict(plan: object) -> object:
    return Plan.model_validate(plan, extra="forbid") if isinstance(plan, dict) else plan


WrittenPlan = Annotated[Plan, BeforeValidator(_strict)]
"""A plan that a person wrote: a misspelt field is refused; one of a model's is only ignored."""


_Rounded = Annotated[
    float, PlainSerializer(lambda number: float(f"{number:.4g}"), when_used="json")
]


class Range(Model):
    """A range that should contain 90 % of cases; JSON has four significant digits."""

    low: _Rounded
    high: _Rounded

    def times(self, least: float, most: float) -> "Range":
        """Returns the range for `least` to `most` repetitions."""
        return Range(low=self.low * least, high=self.high * most)

    def minus(self, others: "list[Range]") -> "Range":
        """Returns the range reduced by `others`."""
        low = self.low - sum(other.low for other in others)
        high = self.high - sum(other.high for other in others)
        return Range(low=max(0.0, low), high=max(0.0, high))

    def __contains__(self, number: float) -> bool:
        """True if the number is in the range."""
        return self.low <= number <= self.high


class Shares(Model):
    """The expected usage of one part of a run.

    `tokens` are all of them, cached ones included; `usd` None is an unknown price. `id` is the
    subtask's, `supervisor` for all that is no subtask of the plan (planning, reviews, subtasks of
    later revisions, the answer), or `total`.
    """

    id: str
    calls: Range
    tokens: Range
    usd: Range | None = None
    seconds: Range

    def minus(self, parts: "list[Shares]") -> "Shares":
        """Returns a total without these parts; its seconds stay, as parts may run in parallel."""
        prices = [part.usd for part in parts if part.usd is not None]
        changes = {
            "calls": self.calls.minus([part.calls for part in parts]),
            "tokens": self.tokens.minus([part.tokens for part in parts]),
            "usd": self.usd and self.usd.minus(prices),
        }
        return self.model_copy(update=changes)

    @property
    def line(self) -> str:
        """Calls and dollars in words."""
        usd = f", ${self.usd.low:.2f}-{self.usd.high:.2f}" if self.usd else ""
        return f"{self.calls.low:.0f}-{self.calls.high:.0f} calls{usd}"


class Estimate(Model):
    """The ranges of a plan: of its first 100 subtasks, of the supervisor, and of all in `total`.

    The seconds of the total are those of the longest chain of subtasks. `samples` counts the
    earlier runs that it is made from: without any, the ranges are the limits of the request. Of the
    last `of` estimates of the team, `held` held the calls and the tokens of their runs. Findings of
    earlier runs have no part in it: `saved` says which subtasks take one.
    """

    parts: list[Shares] = []
    total: Shares
    samples: int = 0
    held: int = 0
    of: int = 0
    saved: Annotated[dict[str, str], Field(exclude_if=lambda saved: not saved)] = {}
