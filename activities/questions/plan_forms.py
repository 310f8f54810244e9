"""The forms of the planner's reply, by mode of planning; they lack fields that cannot apply."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.plan import Aggregation, NewRole

_ESTIMATE = (
    "Tokens that its agent reads and writes in all: some thousand for a lookup, ten times that "
    "for a broad search. Leave it out if you cannot tell."
)
_FOR_EACH = (
    "Makes one subtask of this one for each item, when there are several of a kind or their "
    "number is not known yet. Write {}. The description then says what to do with one item, and "
    "estimated_tokens is that of one. Leave it out for a single subtask."
)
_ANSWER_FROM = 'Only with aggregation "finding": the id of the subtask whose text is the answer.'
_SHORT_FOR_EACH = "leave it out, or to do the same for each of many: {}"
_ITEMS = {  # words in capitals stand for names: one that is copied names nothing
    "files": '"files:PATTERN" for those of the user\'s files whose names fit PATTERN, '
    "in which * is any text",
    "rows": '"rows:NAME" for the rows of one of the user\'s tables',
    "lines": '"lines:NAME" for the lines of one of the user\'s texts',
    "items": '"items:ID" for the items that subtask ID, listed in depends_on, is to find and name',
}
_REASONING = Annotated[str, Field(description="Why you plan it this way, in one short sentence.")]
_MODE_FIELDS: dict[str, dict[str, Any]] = {
    "auto": {"direct_answer": str | None, "strategy": Literal["plan", "step"]},
    "step": {"finished": bool},
}


@dataclass(frozen=True)
class PlanFields:
    """The parts of a plan that can apply to one run: a form has no others.

    `items` are the usable kinds of `for_each`: `files`, `rows`, `lines`, `items`. Without `several`
    there is room for one subtask only. `short` is the form for models with a small window. A route
    `describes` a goal that is too long for a description; any other goal is used word for word.
    """

    roles: tuple[str, ...]
    capabilities: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    attachments: bool = False
    new_roles: bool = False
    replaces: bool = False
    several: bool = True
    short: bool = False
    describes: bool = False

    @property
    def chooses(self) -> bool:
        """True if the planner may leave the choice of a role to the dispatch."""
        return len(self.roles) > 1 and not self.short


@lru_cache(limits.KNOWN_FORMS)
def reply_form(mode: str, fields: PlanFields) -> type[Model]:
    """Returns the form of a plan, of an addition to one, or of a route; see `Planner`.

    Subtasks are the first list of objects, because model servers that fill a form without
    understanding it expect that.
    """
    if mode == "route":
        return _route_form(fields)
    subtask: Any = _short_subtask(fields) if fields.short else _subtask(fields)
    if fields.short:
        ends: dict[str, Any] = {"finished": bool} if mode == "step" else {}
        return _form("PlanDraft", **ends, subtasks=list[subtask])
    more: dict[str, Any] = {"new_roles": list[NewRole]} if fields.new_roles else {}
    if mode != "revision":  # the final instruction stays
        if fields.several:
            more["aggregation"] = Aggregation
            more["answer_from"] = _optional(str, _ANSWER_FROM)
        more |= {"final_instruction": str}
    of_mode = _MODE_FIELDS.get(mode, {})
    return _form("PlanDraft", reasoning=_REASONING, **of_mode, subtasks=list[subtask], **more)


def _route_form(fields: PlanFields) -> type[Model]:
    names: Any = Literal[fields.roles]
    described = {}
    if fields.describes:
        described["description"] = _described_field(str, "all of the goal, in your words")
    if fields.short:
        return _form("RouteDraft", role=names, **described)
    beside: dict[str, Any] = {}
    if fields.several and len(fields.roles) > 1:
        beside["secondary_role"] = names | None
    return _form("RouteDraft", reasoning=_REASONING, role=names, **beside, **described)


def _short_subtask(fields: PlanFields) -> type[Model]:
    """Returns the model of a subtask with only the necessary fields."""
    names: Any = Literal[fields.roles]
    more: dict[str, Any] = {}
    if fields.several:
        needed = "ids of the subtasks whose findings it needs, mostly none"
        more["depends_on"] = _described_field(list[str], needed)
    if fields.replaces:
        replaced = "ids of the failed subtasks that it replaces"
        more["replaces"] = _described_field(list[str], replaced)
    if fields.attachments:
        more["attachments"] = _optional(list[str], "names of the attachments that it must read")
    if fields.items:
        more["for_each"] = _optional(str, _SHORT_FOR_EACH.format(_kinds(fields)))
    what = "what to find out, of which things and period, from which table or document"
    return _form(
        "SubtaskDraft",
        id=_described_field(str, "t and a number"),
        role=names,
        description=_described_field(str, what),
        **more,
    )


def _subtask(fields: PlanFields) -> type[Model]:
    """Returns the model of a subtask; its `role` is one of the roles or a new one."""
    names: Any = Literal[fields.roles]
    known: Any = Literal[fields.capabilities] if fields.capabilities else None
    more: dict[str, Any] = {}
    if fields.replaces:
        more["replaces"] = _described_field(list[str], "The ids that this subtask replaces.")
    if fields.new_roles:
        more["new_role"] = _optional(str, "The name of one of new_roles, in place of role.")
    if known and fields.chooses:
        needed = 'Only with role "auto": what the subtask needs.'
        more["capabilities"] = _optional(list[known], needed)
    if len(fields.roles) > 1:
        more["candidate_roles"] = _optional(list[names], "Other roles for the candidates.")

    if fields.several:
        importance: Any = Literal["required", "optional"]
        more["importance"] = _optional(importance, "Leave it out if it is required.")
        weight = "From 0 to 1, how much the answer depends on it. Leave it out for 0.5."
        more["weight"] = _optional(float, weight)
    candidates = f"Independent attempts, at most {limits.CANDIDATES}. Leave it out for one."
    more["candidates"] = _optional(int, candidates)
    more["estimated_tokens"] = _optional(int, _ESTIMATE)

    if fields.attachments:
        read = "The attachments that the subtask must read, by name."
        more["attachments"] = _optional(list[str], read)
    if fields.items:
        most = "The most items for which for_each makes a subtask. Leave it out for all."
        more["for_each"] = _optional(str, _FOR_EACH.format(_kinds(fields)))
        more["max_items"] = _optional(int, most)

    return _form(
        "SubtaskDraft",
        id=str,
        description=str,
        reasoning=_described_field(str, "Why this role, in a few words."),
        role=Literal[(*fields.roles, "auto")] if fields.chooses else names,
        depends_on=list[str],
        **more,
    )


def _kinds(fields: PlanFields) -> str:
    """Returns the usable ways to name items, as a list in words."""
    *first, last = [_ITEMS[kind] for kind in fields.items]
    return f"{', '.join(first)} or {last}" if first else last


def _described_field(kind: Any, words: str) -> Any:
    """Returns a field of that kind with its description."""
    return Annotated[kind, Field(description=words)]


def _optional(kind: Any, words: str) -> Any:
    """Returns a field that may be left out: a plan of many subtasks would pay for each usual value.

    A factory leaves no default in the schema, which would be asked for; `PlanDraft`, which reads
    replies, has the defaults.
    """
    return (kind, Field(default_factory=lambda: None, description=words))


def _form(name: str, **fields: Any) -> type[Model]:
    typed: dict[str, Any] = {}
    for key, kind in fields.items():
        typed[key] = kind if isinstance(kind, tuple) else (kind, ...)
    form: type[Model] = create_model(name, __base__=Model, **typed)
    return form
