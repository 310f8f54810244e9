"""The runs of an eval in their order: the first question for each variant, then the next one.

So variants are compared on the same questions even if the eval ends early.
"""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.scores.answer_forms import answer_form
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, Truth

# Of the only agent of a bare run; the agents of a supervised run have 10 each, and are several.
BARE_TURNS = 30


Part = Literal["whole", "plan", "agent", "answer"]
"""What a run is asked for: all of its work, or a part alone.

These are its plan, the finding of one worker agent, or the answer that is made of given findings.
"""


class EvalVariant(Model):
    """A way to run the questions: the fields in `request` are added to the request of each run.

    A `bare` variant has an inline team of one role with all tools of the real team, and no
    supervisor. With the `part` "agent" the inline team has the roles of the real one, without
    people and nested teams, and each question goes to one of them.
    """

    label: str
    request: dict[str, JsonValue] = {}
    bare: bool = False
    part: Part = "whole"


class EvalSet(Model):
    """The questions and variants of an eval; each pair is run `repeat` times.

    `data` has an attachment for each file or folder in the questions.
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
        """Returns the run at `index`.

        With 2 variants and `repeat=2`, runs 0 to 3 are those of the first question: two of the
        first variant, then two of the second one.
        """
        rest, again = divmod(index, self.repeat)
        place, variant = divmod(rest, len(self.variants))
        return EvalCase(self, self.questions[place], variant, again)


class EvalCase(NamedTuple):
    """One run of an eval: a question for one of the variants of the set, `again` counted from 0."""

    eval_set: EvalSet
    question: EvalQuestion
    variant: int
    again: int

    @property
    def name(self) -> str:
        """The last part of the run's id, such as `q7~v2~r3`; v1 and r1 are left out."""
        parts = [self.question.id]
        parts += [f"v{self.variant + 1}"] if self.variant else []
        parts += [f"r{self.again + 1}"] if self.again else []
        return "~".join(parts)

    @property
    def is_bare(self) -> bool:
        """True if no supervisor is used."""
        return self.eval_set.variants[self.variant].bare

    @property
    def part(self) -> Part:
        """The part of a run's work that is tested."""
        return self.eval_set.variants[self.variant].part

    @property
    def is_alone(self) -> bool:
        """True if one worker agent gets the whole question. Its finding is the answer."""
        return self.is_bare or self.part == "agent"

    def request(self) -> dict[str, Any]:
        """Returns the fields of the run's request."""
        question, variant = self.question, self.eval_set.variants[self.variant]
        fields: dict[str, Any] = {**variant.request, "goal": question.goal}
        if question.data is not None:
            fields["attachments"] = [self.eval_set.data[question.data]]
        form = answer_form(question.answer)
        if variant.bare:
            (role,) = variant_roles(variant)
            return {"max_turns": BARE_TURNS, **alone_request(fields, role, question.answer)}
        if variant.part == "agent":
            return alone_request(fields, self.role(), question.answer)
        if question.strategy is not None:
            fields["strategy"] = question.strategy
        if variant.part == "plan":
            return fields
        if variant.part == "answer":
            fields["plan"] = {"subtasks": given_subtasks(question)}
        if form is not None:
            fields["answer_schema"] = form
        return fields

    def role(self) -> dict[str, Any]:
        """Returns the role of a single agent. Raises KeyError if the team has none of that name."""
        roles = variant_roles(self.eval_set.variants[self.variant])
        named = [role for role in roles if role["name"] == self.question.role]
        if not named and len(roles) == 1 and self.question.role is None:
            return roles[0]
        if not named:
            raise KeyError(self.question.role or "")
        return named[0]


def variant_roles(variant: EvalVariant) -> list[dict[str, Any]]:
    """Returns the roles of a variant's inline team."""
    team = variant.request.get("team")
    roles = team.get("roles") if isinstance(team, dict) else None
    return [role for role in roles if isinstance(role, dict)] if isinstance(roles, list) else []


def given_subtasks(question: EvalQuestion) -> list[dict[str, Any]]:
    """Returns the plan for a synthesis alone: a subtask for each given finding."""
    whole = f"Find out a part of the question: {question.question}"
    return [
        {
            "id": f"t{number}",
            "role": given.role,
            "description": given.about or cut(whole, limits.SUMMARY_BYTES),
        }
        for number, given in enumerate(question.findings, 1)
    ]


def alone_request(fields: dict[str, Any], role: dict[str, Any], truth: Truth) -> dict[str, Any]:
    """Returns the request of a run in which one worker agent gets the whole goal.

    Its finding is the answer.
    """
    form = answer_form(truth)
    role = role if form is None else {**role, "output_schema": form}
    # Every goal goes to the only role: no model plans, and the finding is the answer as it stands.
    routes = [{"pattern": "*", "role": role["name"]}]
    team = {**fields["team"], "generalist": role["name"], "roles": [role], "routes": routes}
    alone = {"strategy": "route", "team": team, "max_reviews": 0, "max_replans": 0}
    return {**fields, **alone}
