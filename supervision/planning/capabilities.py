"""The roles that can do a subtask, by the capabilities that they declare, which are compared letter by letter.

The generalist takes the place of an unknown role, and of `auto` without capabilities. For `auto` with capabilities the
roles that have all of them are able; if no single role has them all, a combination of roles is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set

from supervision.base import limits
from supervision.base.text import cut, one_line, quoted
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import RoleCard, TeamCard

_NOTE_BYTES = limits.DESCRIPTION_CHARS // 4


def able(roles: Iterable[RoleCard], capabilities: Collection[str]) -> list[RoleCard]:
    """Returns the roles that have all `capabilities`."""
    return [role for role in roles if set(capabilities) <= set(role.capabilities)]


def role_for(
    subtask: Subtask,
    team: TeamCard,
    in_flight: Mapping[str, int],
    free: Callable[[RoleCard], bool] = lambda _: True,
) -> str:
    """Returns the role that takes a subtask at its dispatch: of the able ones, if possible `free`, the least loaded."""
    name = settled(subtask, team)
    if name != "auto":
        return name
    roles = able(team.roles, subtask.capabilities)
    return min([role for role in roles if free(role)] or roles, key=lambda role: in_flight.get(role.name, 0)).name


def settled(subtask: Subtask, team: TeamCard) -> str:
    """Returns the name of the subtask's role; `auto` if several are able, so that its dispatch decides.

    Falls back to the generalist if no role is able: call `missing` and `expand` before.
    """
    if subtask.role != "auto" or not subtask.capabilities:
        return team.role(subtask.role).name
    names = [role.name for role in able(team.roles, subtask.capabilities)] or [team.generalist]
    return names[0] if len(names) == 1 else "auto"


def shares(roles: Sequence[RoleCard], capabilities: Collection[str]) -> list[tuple[RoleCard, list[str]]]:
    """Returns a combination of roles that has all `capabilities`, each role with its share; empty if there is none.

    The role with most of the remaining capabilities comes next, of several the first.
    """
    remaining, found = list(dict.fromkeys(capabilities)), []
    while remaining:
        role = max(roles, key=lambda role: len({*remaining} & {*role.capabilities}))
        share = [capability for capability in remaining if capability in role.capabilities]
        if not share:
            return []
        found.append((role, share))
        remaining = [capability for capability in remaining if capability not in share]
    return found


def expand(plan: Plan, team: TeamCard, taken: Iterable[str] = ()) -> Plan:
    """Returns the plan with all roles that are certain; subtasks that need several roles are split among them.

    The first part keeps the id, the others get new ids that are neither in the plan nor `taken`; dependents wait for
    all parts. Subtasks with `missing` capabilities go to the generalist.
    """
    used = {*taken, *(subtask.id for subtask in plan.subtasks)}
    parts = [_parts(subtask, team, used) for subtask in plan.subtasks]
    ids = {split[0].id: [part.id for part in split] for split in parts}
    subtasks = [
        part.model_copy(update={"depends_on": [new for old in part.depends_on for new in ids.get(old, [old])]})
        for split in parts
        for part in split
    ]
    return plan.model_copy(update={"subtasks": subtasks})


def missing(plan: Plan, team: TeamCard) -> list[str]:
    """Returns a sentence for each capability that no role has."""
    known = list(dict.fromkeys(capability for role in team.roles for capability in role.capabilities))
    listed = one_line(", ".join(known), limits.PARAGRAPH_BYTES) or "none"
    return [
        f"subtask {quoted(subtask.id)} needs the capability {quoted(capability)}, which no role has (known: {listed})"
        for subtask in plan.subtasks
        if subtask.role == "auto"
        for capability in dict.fromkeys(subtask.capabilities)
        if capability not in known
    ]


def for_readers(plan: Plan, team: TeamCard, attachments: Set[str]) -> Plan:
    """Returns the plan with roles for its `auto` subtasks that list some of these attachments: able to read, too."""
    subtasks = []
    for subtask in plan.subtasks:
        if subtask.role == "auto" and not attachments.isdisjoint(subtask.attachments):
            readers = [role for role in able(team.roles, subtask.capabilities) if role.reads_attachments]
            if subtask.capabilities and readers:
                subtask = subtask.model_copy(update={"role": readers[0].name})
        subtasks.append(subtask)
    return plan.model_copy(update={"subtasks": subtasks})


def unreadable(plan: Plan, team: TeamCard, attachments: Set[str]) -> list[str]:
    """Returns a sentence for each subtask that lists some of these attachments and whose role cannot read them."""
    readers = ", ".join(role.name for role in team.roles if role.reads_attachments) or "none of this team"
    problems = []
    for subtask in plan.subtasks:
        # `auto` is left where several are able, and none of them reads: see `for_readers`.
        role = team.role(subtask.role) if subtask.role != "auto" else able(team.roles, subtask.capabilities)[0]
        listed = ", ".join(quoted(name) for name in subtask.attachments if name in attachments)
        if listed and not role.reads_attachments:
            problems.append(
                f"subtask {quoted(subtask.id)} lists {listed}, which the role {quoted(role.name)} has no tool to read; "
                f"roles that have one: {readers}"
            )
    return problems


def _parts(subtask: Subtask, team: TeamCard, used: set[str]) -> list[Subtask]:
    """Returns the subtask with its role, or a part for each role of the combination. Adds new ids to `used`."""
    split = shares(team.roles, subtask.capabilities) if subtask.role == "auto" else []
    if len(split) < 2:
        return [subtask.model_copy(update={"role": settled(subtask, team)})]
    ids = [subtask.id, *(_new_id(subtask.id, used) for _ in split[1:])]
    work = {part_id: ", ".join(share) for part_id, (_, share) in zip(ids, split, strict=True)}
    parts = []
    for part_id, (role, share) in zip(ids, split, strict=True):
        others = [f"{other} does {theirs}" for other, theirs in work.items() if other != part_id]
        note = cut(f"\n\nYour part of this: {work[part_id]}. Leave the rest: {'; '.join(others)}.", _NOTE_BYTES)
        description = subtask.description[: limits.DESCRIPTION_CHARS - len(note)] + note
        parts.append(
            subtask.model_copy(
                update={"id": part_id, "role": role.name, "capabilities": share, "description": description}
            )
        )
    return parts


def _new_id(subtask_id: str, used: set[str]) -> str:
    number = 2
    while (new_id := f"{subtask_id[:56]}-{number}") in used:
        number += 1
    used.add(new_id)
    return new_id
