"""Long lists in payloads, packed: of a thousand findings the names of the fields alone would fill a payload."""

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializerFunctionWrapHandler, WrapSerializer

from supervision import limits
from supervision.contract.base import Model
from supervision.contract.plan import Plan

_SHORT = 20  # lists up to this length stay as people read them in the Web UI


class DependencyRef(Model):
    """A finding to build on; `complete` is False if its worker agent was stopped before it was done.

    `partial`: its author calls it that. `stale`: it rests on a finding that was changed after it. `record_ref` leads
    to its FindingRecord, in the same folder as its text.
    """

    subtask_id: str
    role: str
    text_ref: str
    bytes: int = 0
    weight: float = 0.5
    complete: bool = True
    partial: bool = False
    stale: bool = False
    record_ref: str = ""


def _pack_refs(refs: list[DependencyRef], dump: SerializerFunctionWrapHandler) -> Any:
    """Packs a long list: the folder and the roles once, of each finding one row."""
    if len(refs) <= _SHORT:
        return dump(refs)
    folders = sorted({_folder(ref.text_ref) for ref in refs})
    roles = sorted({ref.role for ref in refs})
    rows = [
        [
            ref.subtask_id,
            roles.index(ref.role),
            folders.index(_folder(ref.text_ref)),
            ref.text_ref.rpartition("/")[2],
            ref.bytes,
            ref.weight,
            ref.complete + 2 * ref.partial + 4 * ref.stale,
            ref.record_ref.rpartition("/")[2],
        ]
        for ref in refs
    ]
    return {"folders": folders, "roles": roles, "rows": rows}


def _unpack_refs(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    folders, roles = value["folders"], value["roles"]
    return [
        DependencyRef(
            subtask_id=subtask_id,
            role=roles[role],
            text_ref=folders[folder] + name,
            bytes=count,
            weight=weight,
            complete=bool(marks & 1),
            partial=bool(marks & 2),
            stale=bool(marks & 4),
            record_ref=folders[folder] + record if record else "",
        )
        for subtask_id, role, folder, name, count, weight, marks, record in value["rows"]
    ]


def _folder(key: str) -> str:
    head, slash, _ = key.rpartition("/")
    return head + slash


def _pack_plan(plan: Plan | None, dump: SerializerFunctionWrapHandler) -> Any:
    """Packs a long plan: without the fields that have their defaults, and dependencies by their places."""
    if plan is None or len(plan.subtasks) <= limits.STATUS_PAGE:
        return dump(plan)
    place = {subtask.id: number for number, subtask in enumerate(plan.subtasks)}
    rows = [subtask.model_dump(mode="json", exclude_defaults=True) for subtask in plan.subtasks]
    for row in rows:
        if "depends_on" in row:
            row["depends_on"] = [place[dependency] for dependency in row["depends_on"]]
    return {**plan.model_dump(mode="json", exclude={"subtasks"}), "packed": rows}


def _unpack_plan(value: Any) -> Any:
    if not isinstance(value, dict) or "packed" not in value:
        return value
    rows = value["packed"]
    subtasks = [{**row, "depends_on": [rows[place]["id"] for place in row.get("depends_on", ())]} for row in rows]
    return {**value, "subtasks": subtasks}


FindingRefs = Annotated[list[DependencyRef], BeforeValidator(_unpack_refs), WrapSerializer(_pack_refs)]
PackedPlan = Annotated[Plan | None, BeforeValidator(_unpack_plan), WrapSerializer(_pack_plan)]
