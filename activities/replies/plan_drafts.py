"""Plans as the planner writes them: the forms that are sent, and the Plan that a reply means."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import NewRole, Plan, Subtask
from supervision.planning.plan_graph import plan_problems
from supervision.text import cut


class SubtaskDraft(Model):
    """A subtask as the planner writes it. `new_role` names a role of the same plan, in place of `role`."""

    id: str
    description: str
    role: str
    new_role: str | None = None
    capabilities: list[str] = []
    depends_on: list[str] = []
    importance: Literal["required", "optional"] = "required"
    candidates: int = 1
    attachments: list[str] = []
    replaces: list[str] = []


class NewRoleDraft(Model):
    """A role that a plan defines, with nothing left out."""

    name: str
    description: str
    system_prompt: str
    tools: list[str]


class PlanDraft(Model):
    """A plan, or what is to be added to one; `finished` is for one step at a time."""

    finished: bool = False
    direct_answer: str | None = None
    strategy: Literal["plan", "step"] = "plan"
    subtasks: list[SubtaskDraft] = []
    new_roles: list[NewRole] = []
    final_instruction: str = ""


class RouteDraft(Model):
    """The choice of a role for the whole goal, and of one beside it."""

    role: str
    secondary_role: str | None = None
    description: str = ""


def route_form(roles: list[str]) -> type[Model]:
    """Returns the model whose schema asks for a route to one of `roles`."""
    names: Any = Literal[tuple(roles)]
    return _form("RouteDraft", {"role": names, "secondary_role": names | None, "description": str})


def plan_form(subtask: type[Model], *, instruction: bool = True, **first: Any) -> type[Model]:
    """Returns the model whose schema asks for a plan of such subtasks, with a final instruction or without.

    `first` are types of fields that come first.
    """
    item: Any = subtask
    fields: dict[str, Any] = {**first, "subtasks": list[item], "new_roles": list[NewRoleDraft]}
    if instruction:
        fields["final_instruction"] = str
    return _form("PlanDraft", fields)


def subtask_form(roles: list[str], capabilities: list[str], *, replaces: bool = False) -> type[Model]:
    """Returns the model whose schema asks for a subtask, its `role` one of `roles`."""
    known = ", ".join(capabilities) or "none"
    fields: dict[str, Any] = {
        "id": str,
        "description": str,
        "role": Literal[(*roles, "auto")],
        "new_role": Annotated[str | None, Field(description="a name of new_roles, in place of role")],
        "capabilities": Annotated[list[str], Field(description=f"what it needs, out of: {known}")],
        "depends_on": list[str],
        "importance": Literal["required", "optional"],
        "candidates": Annotated[
            int,
            Field(ge=1, le=limits.CANDIDATES, description="1; more independent attempts, of which the best is kept"),
        ],
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
        final_instruction=draft.final_instruction,
        subtasks=[_subtask_of(item) for item in draft.subtasks],
        new_roles=draft.new_roles,
        revision=revision,
    )


def routed_plan(draft: RouteDraft, goal: str, roles: list[str], generalist: str, revision: int) -> Plan:
    """Returns the plan of a route; the generalist gets the goal if the chosen role is none of `roles`."""
    if draft.role not in roles:
        draft = RouteDraft(role=generalist)
    *wanted, last = _descriptions(draft, goal)
    description = next((text for text in wanted if _is_concrete(text)), last)
    subtasks = [Subtask(id="t1", description=description, role=draft.role)]
    if draft.secondary_role in roles and draft.secondary_role != draft.role:
        beside = Subtask(id="t2", description=description, role=draft.secondary_role or "", importance="optional")
        subtasks.append(beside)
    return Plan(goal=goal, subtasks=subtasks, revision=revision)


def _descriptions(draft: RouteDraft, goal: str) -> list[str]:
    """Returns the descriptions that a route may have, best first; the last one holds the goal, whatever that is."""
    prefix = "Answer this goal: "
    text = cut(goal.strip(), limits.DESCRIPTION_CHARS - len(prefix))
    return [draft.description, text, prefix + text]


def _is_concrete(description: str) -> bool:
    return not plan_problems(Plan(subtasks=[Subtask(id="t1", description=description)]), 1)


def _subtask_of(draft: SubtaskDraft) -> Subtask:
    fields = draft.model_dump(exclude={"new_role"})
    return Subtask.model_validate(
        {
            **fields,
            "id": draft.id.strip(),
            "role": (draft.new_role or "").strip() or draft.role,
            "depends_on": list(dict.fromkeys(draft.depends_on)),
            "candidates": max(1, draft.candidates),
        }
    )
