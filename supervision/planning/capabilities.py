"""Which roles can do a subtask, by the capabilities that they declare. Capabilities are compared letter by letter.

A role of the team that the plan names is taken. The generalist takes the place of an unknown role, and of `auto`
without capabilities. For `auto` with capabilities the roles that have all of them are able; if no single role has
them all, a combination of roles is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from itertools import combinations
from math import comb

from supervision.base import limits
from supervision.base.text import cut, one_line, quoted
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import RoleCard, TeamCard

_NOTE_BYTES = limits.DESCRIPTION_CHARS // 4


def able(roles: Iterable[RoleCard], capabilities: Collection[str]) -> list[RoleCard]:
    """Returns the roles that have all `capabilities`."""
    return [role for role in roles if set(capabilities) <= set(role.capabilities)]


def choose(able: Sequence[RoleCard], in_flight: Mapping[str, int]) -> str:
    """Returns the name of the first role with the fewest subtasks in flight. Raises ValueError without roles."""
    return min(able, key=lambda role: in_flight.get(role.name, 0)).name


def role_for(
    subtask: Subtask,
    team: TeamCard,
    in_flight: Mapping[str, int],
    free: Callable[[RoleCard], bool] = lambda _: True,
) -> str:
    """Returns the role that takes a subtask at its dispatch; of several able ones, a `free` one if there is any."""
    name = settled(subtask, team)
    if name != "auto":
        return name
    roles = able(team.roles, subtask.capabilities)
    return choose([role for role in roles if free(role)] or roles, in_flight)


def settled(subtask: Subtask, team: TeamCard) -> str:
    """Returns the name of the subtask's role; `auto` if several are able, so that its dispatch decides.

    Falls back to the generalist if no role is able: call `missing` and `expand` before.
    """
    if subtask.role != "auto" or not subtask.capabilities:
        return team.role(subtask.role).name
    names = [role.name for role in able(team.roles, subtask.capabilities)] or [team.generalist]
    return names[0] if len(names) == 1 else "auto"


def cover(roles: Sequence[RoleCard], capabilities: Collection[str]) -> list[RoleCard] | None:
    """Returns the smallest combination of roles that has all `capabilities`, in the order of `roles`, or None.

    Of several equally small ones it is the first. With too many combinations to try it may not be the smallest.
    """
    wanted = set(capabilities)
    useful = [role for role in roles if wanted & set(role.capabilities)]
    enough = _greedy(useful, wanted)
    if enough is None:
        return None
    for count in range(len(enough) + 1):
        if comb(len(useful), count) > limits.COVER_TRIES:
            break
        for combination in combinations(useful, count):
            if wanted <= _all_of(combination):
                return list(combination)
    return enough


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
    """Returns a sentence for each capability that no role has, for the plan's author to act on."""
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


def _greedy(roles: Sequence[RoleCard], wanted: set[str]) -> list[RoleCard] | None:
    uncovered, taken = set(wanted), set[str]()
    while uncovered:
        best = max(roles, key=lambda role: len(uncovered & set(role.capabilities)), default=None)
        if best is None or not uncovered & set(best.capabilities):
            return None
        taken.add(best.name)
        uncovered -= set(best.capabilities)
    return [role for role in roles if role.name in taken]


def _all_of(roles: Iterable[RoleCard]) -> set[str]:
    return {capability for role in roles for capability in role.capabilities}


def _parts(subtask: Subtask, team: TeamCard, used: set[str]) -> list[Subtask]:
    """Returns the subtask with its role, or a part for each role of the combination. Adds new ids to `used`."""
    roles = cover(team.roles, subtask.capabilities) if subtask.role == "auto" else None
    if roles is None or len(roles) < 2:
        return [subtask.model_copy(update={"role": settled(subtask, team)})]
    shares = _shares(roles, subtask.capabilities)
    ids = [subtask.id, *(_new_id(subtask.id, used) for _ in shares[1:])]
    parts = []
    for part_id, (role, share) in zip(ids, shares, strict=True):
        others = [
            f"{other} does {', '.join(theirs)}"
            for other, (_, theirs) in zip(ids, shares, strict=True)
            if other != part_id
        ]
        note = cut(f"\n\nYour part of this: {', '.join(share)}. Leave the rest: {'; '.join(others)}.", _NOTE_BYTES)
        description = subtask.description[: limits.DESCRIPTION_CHARS - len(note)] + note
        parts.append(
            subtask.model_copy(
                update={"id": part_id, "role": role.name, "capabilities": share, "description": description}
            )
        )
    return parts


def _shares(roles: Iterable[RoleCard], capabilities: Iterable[str]) -> list[tuple[RoleCard, list[str]]]:
    """Returns the roles with their shares: each capability goes to the first role that has it."""
    unshared, shares = list(dict.fromkeys(capabilities)), []
    for role in roles:
        share = [capability for capability in unshared if capability in role.capabilities]
        unshared = [capability for capability in unshared if capability not in share]
        if share:
            shares.append((role, share))
    return shares


def _new_id(subtask_id: str, used: set[str]) -> str:
    number = 2
    while (new_id := f"{subtask_id[:56]}-{number}") in used:
        number += 1
    used.add(new_id)
    return new_id
