"""Plans as the planner writes them: the schema sent for each way of planning, and how a reply becomes a Plan."""

from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from activities.contracts.planning_contracts import PlanInput
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import NewRole, Plan, Subtask
from supervision.planning.plan_graph import problems
from supervision.text import cut

Mode = Literal["auto", "plan", "revision", "step", "route"]


class SubtaskDraft(Model):
    """A subtask as the planner writes it. `new_role` names a role of the same plan's, in place of `role`."""

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


def mode_of(input: PlanInput) -> Mode:
    """How this call plans: a plan that has been worked on is added to, unless it goes step by step."""
    if input.strategy == "step":
        return "step"
    return "revision" if input.previous_ref else input.strategy


def sent_model(mode: Mode, roles: list[str], capabilities: list[str]) -> type[Model]:
    """The model whose schema is sent: what a reply must hold in this mode, with `role` narrowed to `roles`."""
    if mode == "route":
        names: Any = Literal[tuple(roles)]
        return create_model(
            "RouteDraft", __base__=Model, role=(names, ...), secondary_role=(names | None, ...), description=(str, ...)
        )
    parts: dict[str, Any] = {}
    if mode == "step":
        parts["finished"] = (bool, ...)
    if mode == "auto":
        parts |= {"direct_answer": (str | None, ...), "strategy": (Literal["plan", "step"], ...)}
    subtask: Any = _subtask_model(mode, roles, capabilities)
    parts |= {"subtasks": (list[subtask], ...), "new_roles": (list[NewRoleDraft], ...)}
    if mode != "revision":  # the plan that is added to has one
        parts["final_instruction"] = (str, ...)
    return create_model("PlanDraft", __base__=Model, **parts)


def _subtask_model(mode: Mode, roles: list[str], capabilities: list[str]) -> type[Model]:
    known = ", ".join(capabilities) or "none"
    fields: dict[str, Any] = {
        "id": (str, ...),
        "description": (str, ...),
        "role": (Literal[(*roles, "auto")], ...),
        "new_role": (Annotated[str | None, Field(description="a name of new_roles, in place of role")], ...),
        "capabilities": (Annotated[list[str], Field(description=f"what it needs, out of: {known}")], ...),
        "depends_on": (list[str], ...),
        "importance": (Literal["required", "optional"], ...),
        "candidates": (
            Annotated[
                int,
                Field(
                    ge=1, le=limits.CANDIDATES, description="1; more independent attempts, of which the best is kept"
                ),
            ],
            ...,
        ),
        "attachments": (list[str], ...),
    }
    if mode == "revision":
        fields["replaces"] = (Annotated[list[str], Field(description="ids that this subtask stands in for")], ...)
    return create_model("SubtaskDraft", __base__=Model, **fields)


def plan_of(draft: PlanDraft, goal: str, revision: int) -> Plan:
    """The plan that a draft means."""
    answer = draft.direct_answer if draft.direct_answer and draft.direct_answer.strip() else None
    return Plan(
        goal=goal,
        direct_answer=answer,
        final_instruction=draft.final_instruction,
        subtasks=[_subtask(item) for item in draft.subtasks],
        new_roles=draft.new_roles,
        revision=revision,
    )


def routed(draft: RouteDraft | None, goal: str, roles: list[str], generalist: str, revision: int) -> Plan:
    """The plan of a route; without a draft, or with a role that may not be had, the generalist gets the goal."""
    if draft is None or draft.role not in roles:
        draft = RouteDraft(role=generalist)
    description = next(text for text in _descriptions(draft, goal) if not _plan_problems(text))
    subtasks = [Subtask(id="t1", description=description, role=draft.role)]
    if draft.secondary_role in roles and draft.secondary_role != draft.role:
        beside = Subtask(id="t2", description=description, role=draft.secondary_role or "", importance="optional")
        subtasks.append(beside)
    return Plan(goal=goal, subtasks=subtasks, revision=revision)


def _descriptions(draft: RouteDraft, goal: str) -> list[str]:
    whole = cut(goal.strip(), limits.DESCRIPTION_CHARS - 100)
    return [draft.description, whole, f"Answer this goal: {whole}"]


def _plan_problems(description: str) -> list[str]:
    return problems(Plan(subtasks=[Subtask(id="t1", description=description)]), 1)


def _subtask(item: SubtaskDraft) -> Subtask:
    fields = item.model_dump(exclude={"new_role"})
    return Subtask.model_validate(
        {
            **fields,
            "id": item.id.strip(),
            "role": (item.new_role or "").strip() or item.role,
            "depends_on": list(dict.fromkeys(item.depends_on)),
            "candidates": max(1, item.candidates),
        }
    )


def shortened(plan: Plan) -> Plan:
    """`plan` small enough for history: long texts give way to their beginnings, the stored plan has all."""
    small = plan.model_copy(update={"goal": cut(plan.goal, limits.SUMMARY_BYTES)})
    for size in (limits.DESCRIPTION_CHARS, 1000, 400, 160, 80, 40):
        small = small.model_copy(
            update={
                "direct_answer": cut(plan.direct_answer, limits.ANSWER_INLINE_BYTES) if plan.direct_answer else None,
                "final_instruction": cut(plan.final_instruction, max(size, 200)),
                "subtasks": [s.model_copy(update={"description": cut(s.description, size)}) for s in plan.subtasks],
                "new_roles": [
                    r.model_copy(
                        update={"description": cut(r.description, size), "system_prompt": cut(r.system_prompt, size)}
                    )
                    for r in plan.new_roles
                ],
            }
        )
        if len(small.model_dump_json()) <= limits.PAYLOAD_AIM_BYTES:
            break
    return small
