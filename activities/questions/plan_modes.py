"""The modes of planning: the form that each asks the planner for, and the plan that a reply means."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from activities.contracts.run_contracts import PlanInput
from activities.model.port import ModelMessage
from activities.questions import planning_prompts as prompts
from activities.questions.question import read_reply
from supervision.base import limits
from supervision.base.text import cut
from supervision.contract.base import Model
from supervision.contract.plan import Aggregation, NewRole, Plan, Subtask
from supervision.contract.strategy import STRATEGIES, StrategyName
from supervision.contract.team import Role, Route, Team
from supervision.planning.plan_graph import description_problems
from supervision.results.payload_fit import cut_to

_ESTIMATE = (
    "What its agent reads and writes in all: about 6000 for a lookup, 20000 for some documents, 60000 for a broad "
    "search. Leave it out if you cannot tell."
)
_FOR_EACH = (
    "Makes one subtask of this one for each item, when there are several of a kind or their number is not known yet. "
    'Write "files:*.pdf" for the attached files whose names fit the pattern, "rows:NAME" for the rows of an attached '
    'table, "lines:NAME" for the lines of an attached text, or "items:t1" for the items that subtask t1, listed in '
    "depends_on, is to find and name. The description then says what to do with one item, and estimated_tokens is that "
    "of one. Leave it out for a single subtask."
)
_REASON = Annotated[str, Field(description="Why you plan it this way, in one short sentence.")]


class SubtaskDraft(Subtask):
    """A subtask as the planner writes it. `new_role` names a role of the same plan, in place of `role`."""

    role: str
    new_role: str | None = None


class NewRoleDraft(NewRole):
    """A role that a plan defines, all of its fields required."""

    tools: list[str]


class PlanDraft(Model):
    """A plan, or what is to be added to one; `finished` is for one step at a time."""

    reasoning: str = ""
    finished: bool = False
    direct_answer: str | None = None
    strategy: Literal["plan", "step"] = "plan"
    subtasks: list[SubtaskDraft] = []
    new_roles: list[NewRole] = []
    aggregation: Aggregation = "merge"
    final_instruction: str = ""


class RouteDraft(Model):
    """The choice of a role for the whole goal, and of one beside it."""

    role: str
    secondary_role: str | None = None
    description: str = ""
    reasoning: str = ""


@lru_cache(limits.KNOWN_FORMS)
def route_form(roles: tuple[str, ...]) -> type[Model]:
    """Returns the model whose schema asks for a route to one of `roles`."""
    names: Any = Literal[roles]
    fields = {"reasoning": _REASON, "role": names, "secondary_role": names | None, "description": str}
    return _form("RouteDraft", fields)


@lru_cache(limits.KNOWN_FORMS)
def plan_form(subtask: type[Model], *, new_roles: bool, whole: bool = True, **first: Any) -> type[Model]:
    """Returns the model whose schema asks for a plan of such subtasks, or for an addition to one if it is not `whole`.

    `first` are types of fields that come first, after the reasoning. The subtasks are its first list of objects, as
    model servers expect that fill a form without understanding it.
    """
    item: Any = subtask
    fields: dict[str, Any] = {"reasoning": _REASON, **first, "subtasks": list[item]}
    if new_roles:
        fields["new_roles"] = list[NewRoleDraft]
    if whole:
        fields |= {"aggregation": Aggregation, "final_instruction": str}
    return _form("PlanDraft", fields)


@lru_cache(limits.KNOWN_FORMS)
def subtask_form(
    roles: tuple[str, ...], capabilities: tuple[str, ...], *, new_roles: bool, replaces: bool = False
) -> type[Model]:
    """Returns the model whose schema asks for a subtask, its `role` one of `roles` or a new one.

    A field that has a usual value may be left out: a plan of many subtasks would pay for each of them.
    """
    names: Any = Literal[roles]
    known: Any = Literal[capabilities] if capabilities else None
    required: dict[str, Any] = {
        "id": str,
        "description": str,
        "reasoning": Annotated[str, Field(description="Why this role, in a few words.")],
        "role": Literal[(*roles, "auto")],
        "depends_on": list[str],
    }
    if replaces:
        required["replaces"] = Annotated[list[str], Field(description="The ids that this subtask replaces.")]
    optional: dict[str, tuple[Any, str]] = {
        **({"new_role": (str, "The name of one of new_roles, in place of role.")} if new_roles else {}),
        **({"capabilities": (list[known], 'Only with role "auto": what the subtask needs.')} if known else {}),
        "importance": (Literal["required", "optional"], "Leave it out if it is required."),
        "weight": (float, "From 0 to 1, how much the answer depends on it. Leave it out for 0.5."),
        "candidates": (int, f"Independent attempts, at most {limits.CANDIDATES}. Leave it out for one."),
        **({"candidate_roles": (list[names], "Other roles for these attempts.")} if len(roles) > 1 else {}),
        "estimated_tokens": (int, _ESTIMATE),
        "attachments": (list[str], "The attachments that the subtask must read, by name."),
        "for_each": (str, _FOR_EACH),
        "max_items": (int, "The largest number of items for which for_each makes a subtask. Leave it out for all."),
    }
    return _form("SubtaskDraft", required, optional)


def _form(name: str, required: dict[str, Any], optional: dict[str, tuple[Any, str]] | None = None) -> type[Model]:
    """Returns a model whose schema has these fields; of the `optional` ones each has a description, too."""
    fields: dict[str, Any] = {field: (kind, ...) for field, kind in required.items()}
    for key, (kind, description) in (optional or {}).items():
        # A factory leaves no default in the schema; a reply is read by `PlanDraft`, which has the defaults.
        fields[key] = (kind, Field(default_factory=lambda: None, description=description))
    return create_model(name, __base__=Model, **fields)


def plan_of(draft: PlanDraft, goal: str, revision: int) -> Plan:
    """Returns the plan that a draft means."""
    answer = draft.direct_answer if draft.direct_answer and draft.direct_answer.strip() else None
    return Plan(
        goal=goal,
        direct_answer=answer,
        reasoning=cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        aggregation=draft.aggregation,
        final_instruction=draft.final_instruction,
        subtasks=[_subtask_of(item) for item in draft.subtasks],
        new_roles=draft.new_roles,
        revision=revision,
    )


def shortened(plan: Plan) -> Plan:
    """Returns the plan cut to a size that fits into history; the stored plan keeps whole texts.

    Descriptions of items begin with the item, so that they differ when they are cut.
    """
    subtasks = [
        subtask.model_copy(update={"description": cut(subtask.whole, limits.LINE_BYTES), "item": ""})
        if subtask.item
        else subtask
        for subtask in plan.subtasks
    ]
    plan = plan.model_copy(update={"subtasks": subtasks})
    return cut_to(plan.model_copy(update={"goal": cut(plan.goal, limits.SUMMARY_BYTES)}), limits.PAYLOAD_AIM_BYTES)


def routed_plan(draft: RouteDraft, goal: str, team: Team, roles: list[str], revision: int) -> Plan:
    """Returns the plan of a route; the generalist gets the goal if the chosen role is none of `roles`."""
    if draft.role not in roles:
        draft = RouteDraft(role=team.generalist, reasoning=draft.reasoning)
    reasoning = cut(draft.reasoning.strip(), limits.SENTENCE_BYTES)
    *wanted, last = _descriptions(draft, goal)
    description = next((text for text in wanted if not description_problems(Subtask(id="t1", description=text))), last)
    subtasks = [Subtask(id="t1", description=description, role=draft.role, reasoning=reasoning)]
    if draft.secondary_role in roles and draft.secondary_role != draft.role:
        beside = Subtask(id="t2", description=description, role=draft.secondary_role or "", importance="optional")
        subtasks.append(beside)
    labels = [(subtask.id, team.role(subtask.role).label) for subtask in subtasks]
    shown = ", ".join(f"{label} for {subtask_id}" for subtask_id, label in labels if label)
    instruction = f"Set what each of them says under its label: {shown}." if shown and len(subtasks) > 1 else ""
    return Plan(goal=goal, reasoning=reasoning, final_instruction=instruction, subtasks=subtasks, revision=revision)


def _descriptions(draft: RouteDraft, goal: str) -> list[str]:
    """Returns the descriptions that a route may have, best first; the last one holds the goal, whatever that is."""
    prefix = "Answer this goal: "
    text = cut(goal.strip(), limits.DESCRIPTION_CHARS - len(prefix))
    return [draft.description, text, prefix + text]


def _subtask_of(draft: SubtaskDraft) -> Subtask:
    fields = draft.model_dump(exclude={"new_role"})
    return Subtask.model_validate(
        {
            **fields,
            "id": draft.id.strip(),
            "role": (draft.new_role or "").strip() or draft.role,
            "depends_on": list(dict.fromkeys(draft.depends_on)),
            "candidates": max(1, draft.candidates),
            "timeout_seconds": None,  # a model's guess would end honest work: only a caller's plan sets one
            "weight": min(max(draft.weight, 0.0), 1.0),
            "estimated_tokens": min(max(draft.estimated_tokens, 0), limits.MAX_BUDGET_TOKENS),
            "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
            "for_each": (draft.for_each or "").strip() or None,
            "item": "",
        }
    )


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

    def form(self, *, replaces: bool = False, whole: bool = True, **first: Any) -> type[Model]:
        """Returns the model of a plan of subtasks for `roles`; see `plan_form`."""
        able = tuple(sorted({capability for role in self.roles for capability in role.capabilities}))
        new_roles = bool(self.team.toolbox)  # without tools for them they could only recall, not find out
        subtask = subtask_form(tuple(self.role_names), able, new_roles=new_roles, replaces=replaces)
        return plan_form(subtask, new_roles=new_roles, whole=whole, **first)

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
    if not draft.subtasks and context.call.plan_ref:  # nothing is to be added
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


_MODES = {
    "auto": PlanMode(
        "auto",
        prompts.AUTO_RULES,
        "",
        lambda context: context.form(direct_answer=str | None, strategy=Literal["plan", "step"]),
        _read_auto,
    ),
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
    _read_plan,
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
