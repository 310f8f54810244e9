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
    for field, (kind, description) in (optional or {}).items():
        # A factory leaves no default in the schema; a reply is read by `PlanDraft`, which has the defaults.
        fields[field] = (kind, Field(default_factory=lambda: None, description=description))
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
            "timeout_seconds": None,  # a model's guess would end honest work: only a caller's plan sets one
            "weight": min(max(draft.weight, 0.0), 1.0),
            "estimated_tokens": min(max(draft.estimated_tokens, 0), limits.MAX_BUDGET_TOKENS),
            "reasoning": cut(draft.reasoning.strip(), limits.SENTENCE_BYTES),
            "for_each": (draft.for_each or "").strip() or None,
            "item": "",
        }
    )
