"""The roles that can do a subtask, by their declared capabilities.

Capabilities are compared letter by letter. The generalist takes the place of an unknown role, and
of `auto` without capabilities. `auto` with capabilities means the roles that have all of them. If
no single role does, the subtask is split among several roles.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import chain
from types import MappingProxyType

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import cut, one_line, quoted
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.team import RoleCard, TeamCard

_NOTE_CHARS = limits.DESCRIPTION_CHARS // 4  # of a part's description, about its share
_ID_CHARS = 56  # of a subtask's id, in that of a further part


def able_roles(roles: Iterable[RoleCard], capabilities: Collection[str]) -> list[RoleCard]:
    """Returns the roles that have all `capabilities`."""
    return [role for role in roles if set(capabilities) <= set(role.capabilities)]


def role_for(
    subtask: Subtask,
    team: TeamCard,
    in_flight: Mapping[str, int],
    free: Callable[[RoleCard], bool],
) -> str:
    """Returns the role that gets a subtask now: the least loaded of the able roles.

    Roles in `free` are preferred.
    """
    name = settled_role(subtask, team)
    if name != "auto":
        return name
    roles = able_roles(team.roles, subtask.capabilities)
    candidates = [*filter(free, roles)] or roles
    return min(candidates, key=lambda role: in_flight.get(role.name, 0)).name


def settled_role(subtask: Subtask, team: TeamCard) -> str:
    """Returns the role of a subtask, or `auto` if several roles are able.

    Of those, one is chosen when the subtask starts. Without an able role it is the generalist.
    """
    if subtask.role != "auto" or not subtask.capabilities:
        return team.role(subtask.role).name
    able = able_roles(team.roles, subtask.capabilities)
    if not able:
        return team.generalist
    return able[0].name if len(able) == 1 else "auto"


def with_assigned_roles(
    plan: Plan, team: TeamCard, attachments: Set[str] = frozenset(), taken: Collection[str] = ()
) -> Plan:
    """Returns the plan with a role for each subtask, as far as it is certain.

    The plan must have no `capability_problems`. A subtask that lists some of these `attachments`
    gets the first able role that reads them. A subtask that needs several roles is split: the first
    part keeps the id, the others get ids that are neither in the plan nor `taken`, and dependents
    depend on all parts.
    """
    used = {*taken, *(subtask.id for subtask in plan.subtasks)}
    parts = [_parts(subtask, team, attachments, used) for subtask in plan.subtasks]
    ids: dict[str, list[str]] = {}
    for first, *others in parts:
        ids[first.id] = [first.id, *(part.id for part in others)]

    subtasks: list[Subtask] = []
    for part in chain.from_iterable(parts):
        depends_on: list[str] = []
        for old in part.depends_on:
            depends_on += ids.get(old, [old])
        subtasks.append(part.model_copy(update={"depends_on": depends_on}))
    return plan.model_copy(update={"subtasks": subtasks})


def shares(
    roles: Sequence[RoleCard],
    capabilities: Collection[str],
) -> list[tuple[RoleCard, list[str]]]:
    """Returns roles that together have all `capabilities`, each with its share; else empty.

    The role with most of the remaining capabilities comes next, the first one among equals.
    """
    remaining = list(dict.fromkeys(capabilities))
    found: list[tuple[RoleCard, list[str]]] = []
    while remaining:
        role = max(roles, key=lambda role: len({*remaining} & {*role.capabilities}))
        share = [capability for capability in remaining if capability in role.capabilities]
        if not share:
            return []
        found.append((role, share))
        for capability in share:
            remaining.remove(capability)
    return found


def _parts(
    subtask: Subtask,
    team: TeamCard,
    attachments: Set[str],
    used: set[str],
) -> list[Subtask]:
    """Returns the subtask with its role, or a part for each role that it needs.

    New ids are added to `used`.
    """
    name = settled_role(subtask, team)
    roles = able_roles(team.roles, subtask.capabilities)
    if name == "auto" and not attachments.isdisjoint(subtask.attachments):
        readers = (role for role in roles if role.reads_attachments)
        name = next(readers, roles[0]).name
    split: list[tuple[RoleCard, list[str]]] = []
    if not roles and _may_be_split(subtask):
        split = shares(team.roles, subtask.capabilities)
    if len(split) < 2:
        return [subtask.model_copy(update={"role": name})]

    ids = [subtask.id, *(_new_id(subtask.id, used) for _ in split[1:])]
    work = {part_id: ", ".join(share) for part_id, (_, share) in zip(ids, split, strict=True)}
    some_read = any(role.reads_attachments for role, _ in split)
    parts: list[Subtask] = []
    for part_id, (role, share) in zip(ids, split, strict=True):
        note = _note_on_part(part_id, work)
        listed = subtask.attachments
        if some_read and not role.reads_attachments:
            # Large ones go to the parts that can read them; if none can, the plan is refused.
            listed = [each for each in listed if each not in attachments]

        changes: dict[str, object] = {
            "id": part_id,
            "role": role.name,
            "capabilities": share,
            "description": subtask.description[: limits.DESCRIPTION_CHARS - len(note)] + note,
            "attachments": listed,
        }
        parts.append(subtask.model_copy(update=changes))
    return parts


def _note_on_part(part_id: str, work: Mapping[str, str]) -> str:
    """Returns the sentences that tell a part its own share and the shares of the others."""
    others = [f"{other} does {share}" for other, share in work.items() if other != part_id]
    text = f"Your part of this: {work[part_id]}. Leave the rest: {'; '.join(others)}."
    return cut(f"\n\n{text}", _NOTE_CHARS)


def _may_be_split(subtask: Subtask) -> bool:
    """True unless a subtask is done several times, for items or by candidates.

    Each of these has a single role.
    """
    return subtask.role == "auto" and subtask.for_each is None and subtask.candidates == 1


def _new_id(subtask_id: str, used: set[str]) -> str:
    """Returns the id of a further part, such as `t1-2`, and adds it to those that are `used`."""
    stem = subtask_id[:_ID_CHARS]
    number = 2
    while f"{stem}-{number}" in used:
        number += 1
    used.add(f"{stem}-{number}")
    return f"{stem}-{number}"


def capability_problems(plan: Plan, team: TeamCard) -> list[str]:
    """Returns a sentence for each subtask whose capabilities no roles have together."""
    roles = [f"{role.name}: {', '.join(role.capabilities) or 'none'}" for role in team.roles]
    listed = one_line("; ".join(roles), limits.PARAGRAPH_BYTES)
    problems: list[str] = []
    for subtask in plan.subtasks:
        if subtask.role != "auto" or able_roles(team.roles, subtask.capabilities):
            continue
        if _may_be_split(subtask) and shares(team.roles, subtask.capabilities):
            continue
        needed = one_line(", ".join(subtask.capabilities), 200)
        problems.append(
            f"subtask {quoted(subtask.id)} needs the capabilities {needed}, and no role has all "
            f"of them ({listed}): name a role, or split the subtask"
        )
    return problems


def teams_without_room(
    plan: Plan, team: TeamCard, max_subtasks: int, states: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Returns a sentence if the plan leaves too few subtasks to roles that are teams.

    A team plans its own subtasks, which count like those of the plan. A team that has begun,
    according to `states`, has its share already.
    """
    waiting = [each for each in plan.named if states.get(each.id, "waiting") == "waiting"]
    teams = [each.id for each in waiting if team.role(each.role).team is not None]
    needed = len(plan.named) + limits.NESTED_SUBTASKS_LEAST * len(teams)
    if not teams or needed <= max_subtasks:
        return []
    listed = one_line(", ".join(teams), limits.PARAGRAPH_BYTES)
    return [
        f"{listed}: their roles are teams, each of which plans at least "
        f"{limits.NESTED_SUBTASKS_LEAST} subtasks of its own: with the plan's {len(plan.named)} "
        f"these are {needed}, at most {max_subtasks} are allowed"
    ]


def with_readers(plan: Plan, team: TeamCard, attachments: Set[str]) -> tuple[Plan, list[str]]:
    """Returns the plan with roles that read the attachments, and a sentence for each change.

    Attachments that no able role reads are left out.
    """
    readers = [role.name for role in team.roles if role.reads_attachments]
    subtasks: list[Subtask] = []
    notes: list[str] = []
    for subtask in plan.subtasks:
        listed = [name for name in subtask.attachments if name in attachments]
        if not listed or team.role(subtask.role).reads_attachments:
            subtasks.append(subtask)
            continue

        name = quoted(listed[0])
        if readers:
            notes.append(f"{subtask.id}: {readers[0]} can read {name}, {subtask.role} cannot")
            subtasks.append(subtask.model_copy(update={"role": readers[0]}))
        else:
            notes.append(f"{subtask.id}: no role can read {name}")
            others = [each for each in subtask.attachments if each not in attachments]
            subtasks.append(subtask.model_copy(update={"attachments": others}))
    return plan.model_copy(update={"subtasks": subtasks}), notes


def attachment_problems(plan: Plan, team: TeamCard, attachments: Set[str]) -> list[str]:
    """Returns a sentence for each subtask whose role cannot read one of its attachments."""
    names = [role.name for role in team.roles if role.reads_attachments]
    readers = ", ".join(names) or "none of this team"
    problems: list[str] = []
    for subtask in plan.subtasks:
        role = team.role(subtask.role)
        listed = [quoted(name) for name in subtask.attachments if name in attachments]
        if listed and not role.reads_attachments:
            problems.append(
                f"subtask {quoted(subtask.id)} lists {', '.join(listed)}, which the role "
                f"{quoted(role.name)} has no tool to read; roles that have one: {readers}"
            )
    return problems
