"""The modes of planning: what each sends to the planner, and how it reads the reply."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from activities.contracts.planning_contracts import PlanInput
from activities.model.port import ModelMessage
from activities.questions import planning_prompts as prompts
from activities.questions.plan_drafts import (
    PlanDraft,
    RouteDraft,
    plan_form,
    plan_of,
    route_form,
    routed_plan,
    subtask_form,
)
from activities.questions.question import read_reply
from supervision.base import limits
from supervision.contract.base import Model
from supervision.contract.plan import Plan
from supervision.contract.strategy import STRATEGIES, StrategyName
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

    def form(self, *, replaces: bool = False, whole: bool = True, **first: Any) -> type[Model]:
        """Returns the model of a plan of subtasks for `roles`; see `plan_form`."""
        names, capabilities = tuple(self.role_names), tuple(self.capabilities)
        subtask = subtask_form(names, capabilities, new_roles=self.new_roles, replaces=replaces)
        return plan_form(subtask, new_roles=self.new_roles, whole=whole, **first)

    def plan_of(self, draft: PlanDraft) -> Plan:
        """Returns the plan that a draft means."""
        return plan_of(draft, self.goal, self.call.revision)


@dataclass(frozen=True)
class PlanReading:
    """A planner's reply, parsed: a plan, or that nothing more is needed, or the problems with it.

    `plan` is only the addition if there is a plan already. `routed` is True if code made it out of a route: what does
    not fit is left out then, because no reply can be sent back.
    """

    strategy: StrategyName
    plan: Plan | None = None
    routed: bool = False
    finished: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class PlanMode:
    """One way of planning: its rules and last words in the prompt, the model whose schema is sent, how to read a reply.

    `read` raises ValueError with what keeps a reply from being a plan.
    """

    strategy: StrategyName
    rules: tuple[str, ...]
    last_words: str
    form: Callable[[PlanContext], type[Model]]
    read: Callable[[ModelMessage, PlanContext], PlanReading]


def _read_auto(message: ModelMessage, context: PlanContext) -> PlanReading:
    draft = _draft(message)
    return PlanReading(draft.strategy, context.plan_of(draft))


def _read_plan(message: ModelMessage, context: PlanContext) -> PlanReading:
    draft = _draft(message)
    _refuse_direct_answer(draft)
    return PlanReading("plan", context.plan_of(draft))


def _read_addition(message: ModelMessage, context: PlanContext) -> PlanReading:
    draft = _draft(message)
    if not draft.subtasks:
        return PlanReading("plan", finished=True)
    _refuse_direct_answer(draft)
    return PlanReading("plan", context.plan_of(draft))


def _read_step(message: ModelMessage, context: PlanContext) -> PlanReading:
    draft = _draft(message)
    if not draft.subtasks and draft.finished and context.call.done:
        return PlanReading("step", finished=True)
    _refuse_direct_answer(draft)
    if len(draft.subtasks) == 1:
        return PlanReading("step", context.plan_of(draft))
    if draft.subtasks:
        raise ValueError(f"give exactly one subtask, the next one, not {len(draft.subtasks)}")
    if draft.finished:
        raise ValueError("nothing has been done yet: give the first subtask")
    raise ValueError("give the next subtask, or set finished to true")


def _read_route(message: ModelMessage, context: PlanContext) -> PlanReading:
    """Returns the route as a plan; the last try always gives one, for the generalist if need be."""
    call, team = context.call, context.team
    try:
        draft = read_reply(RouteDraft, message)
    except ValueError:
        if call.attempt < limits.PLAN_TRIES:
            raise
        draft = RouteDraft(role=team.generalist)
    plan = routed_plan(draft, context.goal, team, context.role_names, call.revision)
    plan.subtasks = plan.subtasks[: call.max_subtasks]
    return PlanReading("route", plan, routed=True)


def _draft(message: ModelMessage) -> PlanDraft:
    return read_reply(PlanDraft, message, root="plan")


def _refuse_direct_answer(draft: PlanDraft) -> None:
    if draft.direct_answer and draft.direct_answer.strip():
        raise ValueError("a direct answer is not wanted here: plan subtasks")


def _auto_form(context: PlanContext) -> type[Model]:
    return context.form(direct_answer=str | None, strategy=Literal["plan", "step"])


_MODES = {
    "auto": PlanMode("auto", prompts.AUTO_RULES, "", _auto_form, _read_auto),
    "plan": PlanMode("plan", prompts.PLAN_RULES, prompts.PLAN_WORDS, PlanContext.form, _read_plan),
    "step": PlanMode(
        "step", prompts.STEP_RULES, prompts.STEP_WORDS, lambda context: context.form(finished=bool), _read_step
    ),
    "route": PlanMode(
        "route",
        prompts.ROUTE_RULES,
        prompts.ROUTE_WORDS,
        lambda context: route_form(tuple(context.role_names)),
        _read_route,
    ),
}
_REVISION = PlanMode(
    "plan",
    prompts.REVISION_RULES,
    prompts.REVISION_WORDS,
    lambda context: context.form(replaces=True, whole=False),  # the final instruction stays
    _read_addition,
)


def mode_of(call: PlanInput) -> PlanMode:
    """Returns how this call plans: a plan that has been worked on is added to, unless it goes step by step."""
    return _REVISION if call.plan_ref and not STRATEGIES[call.strategy].plans_steps else _MODES[call.strategy]


def fixed_route(context: PlanContext) -> PlanReading | None:
    """Returns the first plan of a goal that one of the team's fixed routes fits; None if none does."""
    call, team = context.call, context.team
    if not STRATEGIES[call.strategy].fixed_routes or call.revision > 1 or call.head is not None:
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
    return fnmatchcase(text, re.sub(r"[?[]", r"[\g<0>]", pattern))  # linear in the text: it never tries again


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> str:
    """Returns the words of a text without the punctuation between them."""
    return " ".join("".join(char if char.isalnum() else " " for char in text).split())
