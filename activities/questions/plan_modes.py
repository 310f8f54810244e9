"""The modes of planning: the form that each asks the planner for, and the plan that a reply means."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from activities.contracts.run_contracts import PlanInput
from activities.model.port import ModelMessage
from activities.questions.planning_prompts import planner_system
from activities.questions.question import read_reply
from activities.teams.team_files import LoadedTeam
from supervision.base import limits
from supervision.base.text import cut
from supervision.contract.base import Model
from supervision.contract.plan import Aggregation, NewRole, Plan, Subtask
from supervision.contract.strategy import STRATEGIES, StrategyName
from supervision.contract.team import Role, Route
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
_FIRST: dict[str, Any] = {
    "reasoning": Annotated[str, Field(description="Why you plan it this way, in one short sentence.")]
}
_MODE_FIELDS: dict[str, dict[str, Any]] = {
    "auto": {"direct_answer": str | None, "strategy": Literal["plan", "step"]},
    "step": {"finished": bool},
}


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
def reply_form(mode: str, roles: tuple[str, ...], able: tuple[str, ...], *, new_roles: bool) -> type[Model]:
    """Returns the model whose schema asks for a plan, an addition to one, or a route; see `Planner`.

    The subtasks are its first list of objects, as model servers expect that fill a form without understanding it.
    """
    names: Any = Literal[roles]
    if mode == "route":
        return _form("RouteDraft", _FIRST | {"role": names, "secondary_role": names | None, "description": str})
    subtask: Any = _subtask_form(mode, roles, able, new_roles=new_roles)
    fields = _FIRST | _MODE_FIELDS.get(mode, {}) | {"subtasks": list[subtask]}
    if new_roles:
        fields["new_roles"] = list[NewRoleDraft]
    if mode != "revision":  # the final instruction stays
        fields |= {"aggregation": Aggregation, "final_instruction": str}
    return _form("PlanDraft", fields)


def _subtask_form(mode: str, roles: tuple[str, ...], able: tuple[str, ...], *, new_roles: bool) -> type[Model]:
    """Returns the model of a subtask, its `role` one of `roles` or a new one.

    A field that has a usual value may be left out: a plan of many subtasks would pay for each of them.
    """
    names: Any = Literal[roles]
    known: Any = Literal[able] if able else None
    required: dict[str, Any] = {
        "id": str,
        "description": str,
        "reasoning": Annotated[str, Field(description="Why this role, in a few words.")],
        "role": Literal[(*roles, "auto")],
        "depends_on": list[str],
    }
    if mode == "revision":
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
    # A factory leaves no default in the schema; a reply is read by `PlanDraft`, which has the defaults.
    left_out = {
        key: (kind, Field(default_factory=lambda: None, description=words)) for key, (kind, words) in optional.items()
    }
    return _form("SubtaskDraft", required, left_out)


def _form(name: str, required: dict[str, Any], more: dict[str, Any] | None = None) -> type[Model]:
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in required.items()} | (more or {})
    return create_model(name, __base__=Model, **fields)


def plan_of(draft: PlanDraft, goal: str, revision: int) -> Plan:
    """Returns the plan that a draft means."""
    return Plan(
        goal=goal,
        direct_answer=draft.direct_answer if (draft.direct_answer or "").strip() else None,
        reasoning=cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        aggregation=draft.aggregation,
        final_instruction=draft.final_instruction,
        subtasks=[_subtask_of(item) for item in draft.subtasks],
        new_roles=draft.new_roles,
        revision=revision,
    )


def _subtask_of(draft: SubtaskDraft) -> Subtask:
    return Subtask.model_validate(
        draft.model_dump(exclude={"new_role"})
        | {
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


@dataclass(frozen=True)
class Planner:
    """One way to a plan: the planner's input, the run's team, the text of its goal, and its data.

    Its `mode` is the strategy, or "revision": a plan that has been worked on is added to, unless it goes step by step.
    """

    call: PlanInput
    loaded: LoadedTeam
    goal: str
    catalogue: str

    @property
    def mode(self) -> str:
        """The mode of planning, one of `planning_prompts.MODES`."""
        call = self.call
        return "revision" if call.plan_ref and not STRATEGIES[call.strategy].plans_steps else call.strategy

    @property
    def roles(self) -> list[Role]:
        """The roles that a plan may name: those that are teams only while nesting is possible."""
        return [role for role in self.loaded.team.roles if self.call.nesting_left > 0 or role.team is None]

    def system(self) -> str:
        """Returns the planner's instructions."""
        return planner_system(self.mode, self.loaded.team, self.roles, self.loaded.toolbox, self.catalogue, self.call)

    def form(self) -> type[Model]:
        """Returns the model whose schema is sent."""
        able = tuple(sorted({capability for role in self.roles for capability in role.capabilities}))
        new_roles = bool(self.loaded.team.toolbox)  # without tools for them they could only recall, not find out
        return reply_form(self.mode, tuple(role.name for role in self.roles), able, new_roles=new_roles)

    def read(self, message: ModelMessage) -> tuple[StrategyName, Plan | None]:
        """Returns how the run plans, and the plan, None if nothing more is needed. ValueError says why not."""
        call, mode = self.call, self.mode
        if mode == "route":
            return "route", self._read_route(message)
        draft = read_reply(PlanDraft, message, root="plan")
        plan = plan_of(draft, self.goal, call.revision)
        if mode == "auto":
            return draft.strategy, plan
        strategy: StrategyName = "step" if mode == "step" else "plan"
        may_end = draft.finished and call.done if mode == "step" else call.plan_ref
        if not plan.subtasks and may_end:
            return strategy, None
        if plan.direct_answer:
            raise ValueError("a direct answer is not wanted here: plan subtasks")
        if mode == "step" and not plan.subtasks:
            nothing_done = "nothing has been done yet: give the first subtask"
            raise ValueError(nothing_done if draft.finished else "give the next subtask, or set finished to true")
        if mode == "step" and len(plan.subtasks) > 1:
            raise ValueError(f"give exactly one subtask, the next one, not {len(plan.subtasks)}")
        return strategy, plan

    def _read_route(self, message: ModelMessage) -> Plan:
        """Returns the route as a plan; the last try always gives one, for the generalist if need be."""
        try:
            draft = read_reply(RouteDraft, message)
        except ValueError:
            if self.call.attempt < limits.PLAN_TRIES:
                raise
            draft = RouteDraft(role=self.loaded.team.generalist)
        plan = self._routed(draft)
        plan.subtasks = plan.subtasks[: self.call.max_subtasks]
        return plan

    def fixed_route(self) -> Plan | None:
        """Returns the first plan of a goal that one of the team's fixed routes fits; None if none does."""
        call, team = self.call, self.loaded.team
        if not STRATEGIES[call.strategy].fixed_routes or call.revision > 1 or call.head is not None:
            return None
        route = matching_route(team.routes, self.goal)
        if route is None or route.role not in [role.name for role in self.roles]:
            return None
        return self._routed(
            RouteDraft(role=route.role, reasoning=f"the team's route for goals such as: {route.pattern}")
        )

    def _routed(self, draft: RouteDraft) -> Plan:
        """Returns the plan of a route; the generalist gets the goal if the chosen role may not be named."""
        team, names = self.loaded.team, [role.name for role in self.roles]
        if draft.role not in names:
            draft = RouteDraft(role=team.generalist, reasoning=draft.reasoning)
        reasoning = cut(draft.reasoning.strip(), limits.SENTENCE_BYTES)
        prefix = "Answer this goal: "
        text = cut(self.goal.strip(), limits.DESCRIPTION_CHARS - len(prefix))
        wanted = (t for t in (draft.description, text) if not description_problems(Subtask(id="t1", description=t)))
        description = next(wanted, prefix + text)
        subtasks = [Subtask(id="t1", description=description, role=draft.role, reasoning=reasoning)]
        if draft.secondary_role in names and draft.secondary_role != draft.role:
            beside = Subtask(id="t2", description=description, role=draft.secondary_role or "", importance="optional")
            subtasks.append(beside)
        labels = [(subtask.id, team.role(subtask.role).label) for subtask in subtasks]
        shown = ", ".join(f"{label} for {subtask_id}" for subtask_id, label in labels if label)
        return Plan(
            goal=self.goal,
            reasoning=reasoning,
            final_instruction=f"Set what each of them says under its label: {shown}." if shown and subtasks[1:] else "",
            subtasks=subtasks,
            revision=self.call.revision,
        )


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
