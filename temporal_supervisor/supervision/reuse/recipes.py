"""Recipes of subtasks: hashes of everything that a finding is made from.

Two subtasks with the same recipe ask for the same work, whatever their ids and runs. Work without a
recipe is never taken from an earlier run: work with effects, work of people, and work on data that
no hash can identify. A team within a team counts as one tool that reads all files.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.finding import Grounding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask

Stays = Literal["always", "day", "never"]
"""How long the same call of a tool has the same output."""
ReadsFiles = Literal["none", "named", "all"]
"""The files of its run that a tool's output rests on: none, those that its sources name, all."""

_FILES = "files:"
_ASKS_FOR_TODAY = re.compile(
    r"\b((current_(date|time|timestamp)|local(time|timestamp))\b|"
    r"(now|today|age|get_current_\w++)\s*+\()",
    re.IGNORECASE,
)
_WITH_TABLES = ", table"  # behind a file's name, in the text of an item with tables


class ToolState(Model):
    """A tool in a run: the hash of its definition, its rights and its own data."""

    sha256: str
    stays: Stays = "never"
    reads: ReadsFiles = "none"


class RoleState(Model):
    """The part of a role that its worker agents' work depends on.

    A role without worker agents (a person, a team) has no `tools`, and `is_agent` is False. For a
    team it is the state of that `team`, if known.
    """

    prompt: str = ""
    grounding: Grounding = "tools"
    output_schema: dict[str, JsonValue] | None = None
    asks: bool = False
    efforts: JsonValue = None
    models: list[str] = []
    capabilities: list[str] = []
    tools: dict[str, ToolState] = {}
    is_agent: bool = True
    team: ToolState | None = None

    @property
    def works_with(self) -> dict[str, ToolState]:
        """The states of its tools by name, or of its team's."""
        return self.tools if self.team is None else {"its team": self.team}


class RunParts(Model):
    """The parts of a run that its subtasks share: roles, effort, and data by hash.

    `extracts` is True if the run's model is the stand-in, `from_others` if others wrote its data.
    """

    roles: dict[str, RoleState]
    generalist: str
    effort: str | None = None
    extracts: bool = False
    from_others: bool = False
    day: str = ""
    attachments: dict[str, str] = {}
    files: dict[str, str] = {}


def sha256_of(value: Any) -> str:
    """Returns the hash of a value as sorted-key compact JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_sum(digests: Sequence[str]) -> str:
    """Returns a hash of hashes, independent of their order; empty without any."""
    return sha256_of(sorted(digests)) if digests else ""


def recipes(plan: Plan, parts: RunParts, taken: Mapping[str, str]) -> dict[str, str]:
    """Returns the recipes of the subtasks that have one.

    A subtask whose finding is `taken` by name from an earlier run has the hash of that finding.
    """
    subtasks = {subtask.id: subtask for subtask in plan.subtasks}
    graph = {subtask.id: subtask.depends_on for subtask in plan.subtasks}
    named = {subtask.names_items_of for subtask in plan.subtasks}
    found = dict[str, str]()
    for subtask_id in TopologicalSorter(graph).static_order():
        if subtask_id in taken:
            found[subtask_id] = sha256_of(["taken", taken[subtask_id]])
            continue

        subtask = subtasks.get(subtask_id)
        if subtask is None or why_never(subtask, parts) is not None:
            continue
        before = [found.get(dependency) for dependency in subtask.depends_on]
        if None in before:
            continue

        content = _content(subtask, parts, [each for each in before if each])
        content["file"] = _own_file(subtask, subtasks, parts)
        content["names_items"] = (subtask.template or subtask.id) in named
        found[subtask_id] = sha256_of(content)
    return found


def why_never(subtask: Subtask, parts: RunParts) -> str | None:
    """Returns the reason why a subtask is always done again; None if there is none."""
    if subtask.for_each is not None:
        return "its items are compared one by one"
    for role in _roles_of(subtask, parts):
        if role is None:
            return "its role is not known"
        reason = why_never_of(role)
        if reason:
            return reason
    if any(name not in parts.attachments for name in subtask.attachments):
        return "an attachment is not there"
    return None


def why_never_of(role: RoleState) -> str | None:
    """Returns the reason why a role's work is always done again; None if there is none."""
    if not role.is_agent and role.team is None:
        return "its role is a person, or a team that is not known"
    live = [name for name, tool in role.works_with.items() if tool.stays == "never"]
    return f"{live[0]} has effects, or reads what changes" if live else None


def asks_for_today(sql: str) -> bool:
    """True if the output of a query depends on the day."""
    return _ASKS_FOR_TODAY.search(sql) is not None


def _content(subtask: Subtask, parts: RunParts, before: Sequence[str]) -> dict[str, Any]:
    """Returns the contents of a recipe: the subtask's own, and its run's."""
    roles = [role for role in _roles_of(subtask, parts) if role is not None]
    is_dated = any(tool.stays == "day" for role in roles for tool in role.works_with.values())
    return {
        "description": subtask.description,
        "item": subtask.item,
        "candidates": subtask.candidates,
        "roles": [role.model_dump(mode="json", exclude={"capabilities"}) for role in roles],
        "effort": parts.effort,
        "extracts": parts.extracts,
        "from_others": parts.from_others,
        "day": parts.day if is_dated else "",
        "attachments": {name: parts.attachments[name] for name in subtask.attachments},
        "depends_on": sorted(before),
    }


def _roles_of(subtask: Subtask, parts: RunParts) -> list[RoleState | None]:
    """Returns the roles that may do a subtask; None for an unknown one."""
    return [parts.roles.get(name) for name in names_of_roles(subtask, parts)]


def names_of_roles(subtask: Subtask, parts: RunParts) -> list[str]:
    """Returns the names of the roles that may do a subtask, candidates included.

    Which of several able roles does an `auto` subtask depends on the load, not on the work.
    """
    if subtask.role == "auto" and subtask.capabilities:
        wanted = set(subtask.capabilities)
        able = [name for name, role in parts.roles.items() if wanted <= set(role.capabilities)]
        first = able or [""]
    else:
        first = [subtask.role if subtask.role in parts.roles else parts.generalist]
    return first if subtask.candidates < 2 else [*first, *subtask.candidate_roles]


def _own_file(subtask: Subtask, subtasks: Mapping[str, Subtask], parts: RunParts) -> str:
    """Returns the hash of the file that is the subtask's item; empty for other subtasks."""
    template = subtasks.get(subtask.template or "")
    if template is None or not (template.for_each or "").startswith(_FILES):
        return ""
    return parts.files.get(file_of_item(subtask.item, parts.files), "")


def file_of_item(item: str, files: Mapping[str, str]) -> str:
    """Returns the name of the file at the beginning of an item; empty without one."""
    name = item
    while name not in files:
        name, mark, _ = name.rpartition(_WITH_TABLES)
        if not mark:
            return ""
    return name
