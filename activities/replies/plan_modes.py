"""The modes of planning: what each sends to the planner, and how it reads the reply."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from activities.contracts.planning_contracts import PlanInput, Strategy
from activities.model.port import ModelMessage
from activities.prompts import planning_prompts as prompts
from activities.replies.plan_drafts import (
    PlanDraft,
    RouteDraft,
    plan_form,
    plan_of,
    route_form,
    routed_plan,
    subtask_form,
)
from activities.replies.structured_reply import read_reply
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import Plan
from supervision.contract.team import Role, Route, Team


@dataclass(frozen=True)
class PlanContext:
    """The context of a planning call: the planner's input, the run's team, the text of its goal, tools and data."""

    call: PlanInput
    team: Team
    goal: str
    tools: dict[str, str] = field(default_factory=dict)
    catalogue: str = ""

    @property
    def roles(self) -> list[Role]:
        """The roles that a plan may name: those that are teams only while nesting is possible."""
        return [role for role in self.team.roles if self.call.nesting_left > 0 or role.team is None]

    @property
    def role_names(self) -> list[str]:
        """The names of `roles`."""
        return [role.name for role in self.roles]

    @property
    def capabilities(self) -> list[str]:
        """The capabilities of `roles`, each once, sorted."""
        return sorted({capability for role in self.roles for capability in role.capabilities})

    @property
    def new_roles(self) -> bool:
        """True if a plan is asked for roles of its own: without tools for them they could only recall, not find out."""
        return bool(self.team.toolbox)

    def subtask_form(self, *, replaces: bool = False) -> type[Model]:
        """Returns the model of a subtask for one of `roles`."""
        return subtask_form(
            tuple(self.role_names), tuple(self.capabilities), new_roles=self.new_roles, replaces=replaces
        )


@dataclass(frozen=True)
class PlanReading:
    """A planner's reply, parsed: a plan, or that nothing more is needed, or the problems with it.

    `plan` is only the addition if there is a plan already. `routed` is True if code made it out of a route: what does
    not fit is left out then, there is nobody to send it back to.
    """

    strategy: Strategy
    plan: Plan | None = None
    routed: bool = False
    finished: bool = False
    problems: list[str] = field(default_factory=list)


class PlanMode:
    """A graph of subtasks, planned up front; the base of the other modes."""

    strategy: Strategy = "plan"
    last_words = prompts.PLAN_WORDS

    def rules(self, context: PlanContext) -> str:
        """Returns the rules of planning, for the system prompt."""
        return prompts.plan_rules(context.team, context.call.max_subtasks)

    def form(self, context: PlanContext) -> type[Model]:
        """Returns the model whose schema is sent."""
        return plan_form(context.subtask_form(), new_roles=context.new_roles)

    def read(self, message: ModelMessage, context: PlanContext) -> PlanReading:
        """Returns the reply as a plan, or as the problems that keep it from being one."""
        try:
            draft = read_reply(PlanDraft, message, root="plan")
        except ValueError as error:
            return PlanReading(self.strategy, problems=[str(error)])
        return self._read_draft(draft, context)

    def _read_draft(self, draft: PlanDraft, context: PlanContext) -> PlanReading:
        if draft.direct_answer and draft.direct_answer.strip():
            return PlanReading(self.strategy, problems=["a direct answer is not wanted here: plan subtasks"])
        return PlanReading(self.strategy, plan_of(draft, context.goal, context.call.revision))


class AutoMode(PlanMode):
    """The planner chooses: a direct answer, a graph, or one step at a time."""

    last_words = ""

    def rules(self, context: PlanContext) -> str:
        """Returns the rules of planning with those of the choice."""
        return prompts.auto_rules(context.team, context.call.max_subtasks)

    def form(self, context: PlanContext) -> type[Model]:
        """Returns the model of a plan with a direct answer and a strategy."""
        return plan_form(
            context.subtask_form(),
            new_roles=context.new_roles,
            direct_answer=str | None,
            strategy=Literal["plan", "step"],
        )

    def _read_draft(self, draft: PlanDraft, context: PlanContext) -> PlanReading:
        return PlanReading(draft.strategy, plan_of(draft, context.goal, context.call.revision))


class RevisionMode(PlanMode):
    """Additions to a plan that has been worked on."""

    last_words = prompts.REVISION_WORDS

    def rules(self, context: PlanContext) -> str:
        """Returns the rules of adding to a plan."""
        return prompts.revision_rules(context.team, context.call.max_subtasks)

    def form(self, context: PlanContext) -> type[Model]:
        """Returns the model of an addition: its subtasks may replace others, the final instruction stays."""
        return plan_form(context.subtask_form(replaces=True), new_roles=context.new_roles, whole=False)

    def _read_draft(self, draft: PlanDraft, context: PlanContext) -> PlanReading:
        if not draft.subtasks:
            return PlanReading(self.strategy, finished=True)
        return super()._read_draft(draft, context)


class StepMode(PlanMode):
    """One subtask at a time, chosen after each finding."""

    strategy: Strategy = "step"
    last_words = prompts.STEP_WORDS

    def rules(self, context: PlanContext) -> str:
        """Returns the rules of one step."""
        return prompts.step_rules(context.team, context.call.max_subtasks)

    def form(self, context: PlanContext) -> type[Model]:
        """Returns the model of a plan that may say that nothing more is needed."""
        return plan_form(context.subtask_form(), new_roles=context.new_roles, finished=bool)

    def _read_draft(self, draft: PlanDraft, context: PlanContext) -> PlanReading:
        if not draft.subtasks and draft.finished and context.call.done:
            return PlanReading(self.strategy, finished=True)
        reading = super()._read_draft(draft, context)
        if reading.problems or len(draft.subtasks) == 1:
            return reading
        if draft.subtasks:
            problem = f"give exactly one subtask, the next one, not {len(draft.subtasks)}"
        elif draft.finished:
            problem = "nothing has been done yet: give the first subtask"
        else:
            problem = "give the next subtask, or set finished to true"
        return PlanReading(self.strategy, problems=[problem])


class RouteMode(PlanMode):
    """One role for the whole goal, perhaps a second one beside it."""

    strategy: Strategy = "route"
    last_words = prompts.ROUTE_WORDS

    def rules(self, context: PlanContext) -> str:
        """Returns the rules of choosing a role."""
        return prompts.route_rules()

    def form(self, context: PlanContext) -> type[Model]:
        """Returns the model of a choice between the roles."""
        return route_form(tuple(context.role_names))

    def read(self, message: ModelMessage, context: PlanContext) -> PlanReading:
        """Returns the route as a plan; the last try always gives one, for the generalist if need be."""
        call, team = context.call, context.team
        try:
            draft = read_reply(RouteDraft, message)
        except ValueError as error:
            if call.attempt < limits.PLAN_TRIES:
                return PlanReading(self.strategy, problems=[str(error)])
            draft = RouteDraft(role=team.generalist)
        plan = routed_plan(draft, context.goal, team, context.role_names, call.revision)
        plan.subtasks = plan.subtasks[: call.max_subtasks]
        return PlanReading(self.strategy, plan, routed=True)


_BY_STRATEGY: dict[Strategy, PlanMode] = {
    "auto": AutoMode(),
    "plan": PlanMode(),
    "step": StepMode(),
    "route": RouteMode(),
}
_REVISION = RevisionMode()


def mode_of(call: PlanInput) -> PlanMode:
    """Returns how this call plans: a plan that has been worked on is added to, unless it goes step by step."""
    if call.previous_ref and call.strategy != "step":
        return _REVISION
    return _BY_STRATEGY[call.strategy]


def fixed_route(context: PlanContext) -> PlanReading | None:
    """Returns the first plan of a goal that one of the team's fixed routes fits; None if none does."""
    call, team = context.call, context.team
    if call.strategy not in ("auto", "route") or call.revision > 1 or call.head is not None:
        return None
    route = matching_route(team.routes, context.goal)
    if route is None or route.role not in context.role_names:
        return None
    draft = RouteDraft(role=route.role, reasoning=f"the team's route for goals such as: {route.pattern}")
    return PlanReading("route", routed_plan(draft, context.goal, team, context.role_names, call.revision), routed=True)


def matching_route(routes: Iterable[Route], goal: str) -> Route | None:
    """Returns the first route whose pattern fits the goal, None if none does."""
    text = _plain(goal)
    return next((route for route in routes if fits(_plain(route.pattern), text)), None)


def fits(pattern: str, text: str) -> bool:
    """True if `text` fits `pattern`; both are lower-case with single spaces."""
    if "*" not in pattern:
        return bool(pattern) and f" {_words(pattern)} " in f" {_words(text)} "
    first, *middle, last = pattern.split("*")
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return text.endswith(last)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> str:
    """Returns the words of a text without the punctuation between them."""
    return " ".join("".join(char if char.isalnum() else " " for char in text).split())
