"""The roles that can do a subtask, by the capabilities that they declare, which are compared letter by letter.

The generalist takes the place of an unknown role, and of `auto` without capabilities. For `auto` with capabilities the
roles that have all of them are able.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line, quoted
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.team import RoleCard, TeamCard


def able(roles: Iterable[RoleCard], capabilities: Collection[str]) -> list[RoleCard]:
    """Returns the roles that have all `capabilities`."""
    return [role for role in roles if set(capabilities) <= set(role.capabilities)]


def role_for(subtask: Subtask, team: TeamCard, in_flight: Mapping[str, int], free: Callable[[RoleCard], bool]) -> str:
    """Returns the role that takes a subtask at its dispatch: of the able ones, if possible `free`, the least loaded."""
    name = settled(subtask, team)
    if name != "auto":
        return name
    roles = able(team.roles, subtask.capabilities)
    return min([role for role in roles if free(role)] or roles, key=lambda role: in_flight.get(role.name, 0)).name


def settled(subtask: Subtask, team: TeamCard) -> str:
    """Returns the name of the subtask's role; `auto` if several are able, so that its dispatch decides.

    Falls back to the generalist if no role is able.
    """
    if subtask.role != "auto" or not subtask.capabilities:
        return team.role(subtask.role).name
    names = [role.name for role in able(team.roles, subtask.capabilities)] or [team.generalist]
    return names[0] if len(names) == 1 else "auto"


def assigned(plan: Plan, team: TeamCard, attachments: Set[str] = frozenset()) -> Plan:
    """Returns the plan, without `incapable` subtasks, with all roles that are certain.

    Of the roles able to do a subtask that lists some of these attachments it is the first that reads them.
    """
    subtasks = []
    for subtask in plan.subtasks:
        name = settled(subtask, team)
        if name == "auto" and not attachments.isdisjoint(subtask.attachments):
            roles = able(team.roles, subtask.capabilities)
            name = next((role for role in roles if role.reads_attachments), roles[0]).name
        subtasks.append(subtask.model_copy(update={"role": name}))
    return plan.model_copy(update={"subtasks": subtasks})


def incapable(plan: Plan, team: TeamCard) -> list[str]:
    """Returns a sentence for each subtask whose capabilities no role has."""
    listed = "; ".join(f"{role.name}: {', '.join(role.capabilities) or 'none'}" for role in team.roles)
    return [
        f"subtask {quoted(subtask.id)} needs the capabilities {one_line(', '.join(subtask.capabilities), 200)}, and no "
        f"role has all of them ({one_line(listed, limits.PARAGRAPH_BYTES)}): name a role, or split the subtask"
        for subtask in plan.subtasks
        if subtask.role == "auto" and not able(team.roles, subtask.capabilities)
    ]


def with_readers(plan: Plan, team: TeamCard, attachments: Set[str]) -> tuple[Plan, list[str]]:
    """Returns the plan in which subtasks with some of these attachments have a role that reads them.

    Where no role does, they are left out. The second value is a sentence for each change.
    """
    reader = next((role.name for role in team.roles if role.reads_attachments), None)
    subtasks, notes = [], []
    for subtask in plan.subtasks:
        listed = [name for name in subtask.attachments if name in attachments]
        if not listed or team.role(subtask.role).reads_attachments:
            subtasks.append(subtask)
            continue
        name = quoted(listed[0])
        if reader:
            notes.append(f"{subtask.id}: {reader} can read {name}, {subtask.role} cannot")
            changes: dict[str, object] = {"role": reader}
        else:
            notes.append(f"{subtask.id}: no role can read {name}")
            changes = {"attachments": [each for each in subtask.attachments if each not in attachments]}
        subtasks.append(subtask.model_copy(update=changes))
    return plan.model_copy(update={"subtasks": subtasks}), notes


def unreadable(plan: Plan, team: TeamCard, attachments: Set[str]) -> list[str]:
    """Returns a sentence for each subtask that lists some of these attachments and whose role cannot read them."""
    readers = ", ".join(role.name for role in team.roles if role.reads_attachments) or "none of this team"
    problems = []
    for subtask in plan.subtasks:
        listed = ", ".join(quoted(name) for name in subtask.attachments if name in attachments)
        if listed and not (role := team.role(subtask.role)).reads_attachments:
            problems.append(
                f"subtask {quoted(subtask.id)} lists {listed}, which the role {quoted(role.name)} has no tool to read; "
                f"roles that have one: {readers}"
            )
    return problems
