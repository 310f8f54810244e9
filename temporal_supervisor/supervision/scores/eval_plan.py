"""The order of an eval: each question for every variant in turn.

So variants are compared on the same questions, also in a partial eval.
"""

from typing import Annotated, Any, NamedTuple

from pydantic import Field, JsonValue

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.scores.answer_forms import answer_form
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, Truth

BARE_TURNS = 30  # of one agent with the whole goal: a supervisor has several, with 10 turns each


class EvalVariant(Model):
    """A way to ask the questions: fields of the request beside the question.

    A `bare` variant's request has an inline team of one role with all tools of the team.
    """

    label: str
    request: dict[str, JsonValue] = {}
    bare: bool = False


class EvalSet(Model):
    """The questions and the variants, each of which is asked each question `repeat` times.

    `data` has an attachment for each file or folder that questions name.
    """

    name: str
    questions: list[EvalQuestion]
    variants: Annotated[list[EvalVariant], Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1)] = 1
    data: dict[str, dict[str, JsonValue]] = {}

    @property
    def total(self) -> int:
        """The number of runs."""
        return len(self.questions) * len(self.variants) * self.repeat

    def case(self, index: int) -> "EvalCase":
        """Returns the run at a place in the order."""
        rest, again = divmod(index, self.repeat)
        place, variant = divmod(rest, len(self.variants))
        return EvalCase(self, self.questions[place], variant, again)


class EvalCase(NamedTuple):
    """One question, to be asked of one variant for the `again`th time, from 0 on."""

    of: EvalSet
    question: EvalQuestion
    variant: int
    again: int

    @property
    def name(self) -> str:
        """The last part of the run's id."""
        parts = [self.question.id]
        parts += [f"v{self.variant + 1}"] if self.variant else []
        parts += [f"r{self.again + 1}"] if self.again else []
        return "~".join(parts)

    @property
    def is_bare(self) -> bool:
        """True if no supervisor is asked."""
        return self.of.variants[self.variant].bare

    def request(self) -> dict[str, Any]:
        """Returns the fields of the run's request."""
        question, variant = self.question, self.of.variants[self.variant]
        fields: dict[str, Any] = {**variant.request, "goal": question.goal}
        if question.data is not None:
            fields["attachments"] = [self.of.data[question.data]]
        form = answer_form(question.answer)
        if variant.bare:
            return bare_request(fields, question.answer)
        if question.strategy is not None:
            fields["strategy"] = question.strategy
        if form is not None:
            fields["answer_schema"] = form
        return fields


def bare_request(fields: dict[str, Any], truth: Truth) -> dict[str, Any]:
    """Returns the request of a run in which one worker agent has the whole goal.

    Its finding is the answer.
    """
    (role,) = fields["team"]["roles"]
    form = answer_form(truth)
    role = role if form is None else {**role, "output_schema": form}
    # Every goal goes to the only role: no model plans, and the finding is the answer as it stands.
    routes = [{"pattern": "*", "role": role["name"]}]
    team = {**fields["team"], "roles": [role], "routes": routes}
    alone = {"strategy": "route", "team": team, "max_reviews": 0, "max_replans": 0}
    return {"max_turns": BARE_TURNS, **fields, **alone}
