"""Plans as the planner writes them: the forms that are sent, and the Plan that a reply means."""

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from supervision.base import limits
from supervision.base.text import cut
from supervision.contract.base import Model
from supervision.contract.plan import Aggregation, NewRole, Plan, Subtask
from supervision.contract.team import Team
from supervision.planning.plan_graph import description_problems

_REASON = Annotated[str, Field(description="why this way: one short sentence")]


class SubtaskDraft(Subtask):
    """A subtask as the planner writes it. `new_role` names a role of the same plan, in place of `role`."""

    role: str
    new_role: str | None = None


class NewRoleDraft(NewRole):
    """A role that a plan defines, with nothing left out."""

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

    `first` are types of fields that come first, after the reasoning. The subtasks are its first list of objects, as in
    the contract: model servers that fill a form without understanding it rely on that.
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
    """Returns the model whose schema asks for a subtask, its `role` one of `roles` or a new one."""
    known = ", ".join(capabilities) or "none"
    names: Any = Literal[roles]
    new = {"new_role": Annotated[str | None, Field(description="a name of new_roles, in place of role")]}
    fields: dict[str, Any] = {
        "id": str,
        "description": str,
        "reasoning": Annotated[str, Field(description="why this role: a few words")],
        "role": Literal[(*roles, "auto")],
        **(new if new_roles else {}),
        "capabilities": Annotated[list[str], Field(description=f"what it needs, out of: {known}")],
        "depends_on": list[str],
        "importance": Literal["required", "optional"],
        "weight": Annotated[float, Field(ge=0, le=1, description="0 to 1: how much the answer rests on it")],
        "candidates": Annotated[
            int,
            Field(ge=1, le=limits.CANDIDATES, description="independent attempts, of which the best is kept"),
        ],
        **({"candidate_roles": list[names]} if len(roles) > 1 else {}),
        "estimated_tokens": Annotated[int, Field(ge=0, description="a guess at what it takes")],
        "timeout_seconds": Annotated[float | None, Field(description="null, or when it is no longer of use")],
        "attachments": list[str],
    }
    if replaces:
        fields["replaces"] = Annotated[list[str], Field(description="ids that this subtask stands in for")]
    return _form("SubtaskDraft", fields)


def _form(name: str, types: dict[str, Any]) -> type[Model]:
    """Returns a model of which every field must be given: constrained output leaves nothing out."""
    fields: dict[str, Any] = {field: (kind, ...) for field, kind in types.items()}
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
            "weight": min(max(draft.weight, 0.0), 1.0),
            "estimated_tokens": min(max(draft.estimated_tokens, 0), limits.MAX_BUDGET_TOKENS),
            "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
        }
    )
