"""Who can do a subtask: roles by what they declare to be capable of. Capabilities are compared letter by letter.

A named role of the team stands, an unknown one gives way to the generalist, as does `auto` without capabilities.
For `auto` with capabilities the roles that have all of them are able; where no single role has, a combination is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import comb

from supervision import limits
from supervision.contract.plan import Plan, Subtask
from supervision.contract.team import RoleCard, TeamCard
from supervision.text import cut, one_line

_NOTE_BYTES = limits.DESCRIPTION_CHARS // 4


def able(roles: Iterable[RoleCard], capabilities: Collection[str]) -> list[RoleCard]:
    """The roles that have all `capabilities`."""
    return [role for role in roles if set(capabilities) <= set(role.capabilities)]


def choose(able: Sequence[RoleCard], in_flight: Mapping[str, int]) -> str:
    """The name of the role with the fewest subtasks in flight, the first of several; ValueError without roles."""
    return min(able, key=lambda role: in_flight.get(role.name, 0)).name


def role_for(
    subtask: Subtask,
    team: TeamCard,
    in_flight: Mapping[str, int],
    free: Callable[[RoleCard], bool] = lambda _: True,
) -> str:
    """The role that takes a subtask at its dispatch; of several that are able, one that is `free` if there is one."""
    role = settled(subtask, team)
    if role != "auto":
        return role
    roles = able(team.roles, subtask.capabilities)
    return choose([one for one in roles if free(one)] or roles, in_flight)


def settled(subtask: Subtask, team: TeamCard) -> str:
    """The role that is already certain; `auto` where several are able, so that its dispatch decides.

    What nobody is able to do goes to the generalist: `missing` and `expand` come first.
    """
    if subtask.role != "auto" or not subtask.capabilities:
        return team.role(subtask.role).name
    names = [role.name for role in able(team.roles, subtask.capabilities)] or [team.generalist]
    return names[0] if len(names) == 1 else "auto"


def cover(roles: Sequence[RoleCard], capabilities: Collection[str]) -> list[RoleCard] | None:
    """The smallest combination of roles that has all `capabilities`, in the order of `roles`; None when none has.

    Of several equally small ones the first. Where too many would have to be tried it may not be the smallest.
    """
    wanted = set(capabilities)
    useful = [role for role in roles if wanted & set(role.capabilities)]
    found = _greedy(useful, wanted)
    if found is None:
        return None
    for count in range(len(found) + 1):
        if comb(len(useful), count) > limits.COVER_TRIES:
            break
        for combination in combinations(useful, count):
            if wanted <= _all_of(combination):
                return list(combination)
    return found


def expand(plan: Plan, team: TeamCard, taken: Iterable[str] = ()) -> Plan:
    """The plan with every role that is certain, and subtasks split that only several roles together can do.

    The first part keeps the id, the others get new ones that are neither in the plan nor `taken`; dependents wait for
    all parts. Subtasks with `missing` capabilities go to the generalist.
    """
    used = {*taken, *(subtask.id for subtask in plan.subtasks)}
    parts = [_parts(subtask, team, used) for subtask in plan.subtasks]
    ids = {split[0].id: [part.id for part in split] for split in parts}
    subtasks = [
        part.model_copy(update={"depends_on": [id for old in part.depends_on for id in ids.get(old, [old])]})
        for split in parts
        for part in split
    ]
    return plan.model_copy(update={"subtasks": subtasks})


def missing(plan: Plan, team: TeamCard) -> list[str]:
    """The capabilities asked for that no role has, each in one sentence that the plan's author can act on."""
    known = list(dict.fromkeys(capability for role in team.roles for capability in role.capabilities))
    listed = one_line(", ".join(known), 600) or "none"
    return [
        f"subtask '{one_line(subtask.id, 60)}' needs the capability '{one_line(capability, 60)}', "
        f"which no role has (known: {listed})"
        for subtask in plan.subtasks
        if subtask.role == "auto"
        for capability in dict.fromkeys(subtask.capabilities)
        if capability not in known
    ]


def _greedy(roles: Sequence[RoleCard], wanted: set[str]) -> list[RoleCard] | None:
    open_ones, taken = set(wanted), set[str]()
    while open_ones:
        best = max(roles, key=lambda role: len(open_ones & set(role.capabilities)), default=None)
        if best is None or not open_ones & set(best.capabilities):
            return None
        taken.add(best.name)
        open_ones -= set(best.capabilities)
    return [role for role in roles if role.name in taken]


def _all_of(roles: Iterable[RoleCard]) -> set[str]:
    return {capability for role in roles for capability in role.capabilities}


def _parts(subtask: Subtask, team: TeamCard, used: set[str]) -> list[Subtask]:
    """The subtask with its role, or one for each role of the combination that can do it. `used` grows."""
    roles = cover(team.roles, subtask.capabilities) if subtask.role == "auto" else None
    if roles is None or len(roles) < 2:
        return [subtask.model_copy(update={"role": settled(subtask, team)})]
    shares = _shares(roles, subtask.capabilities)
    ids = [subtask.id, *(_new_id(subtask.id, used) for _ in shares[1:])]
    parts = []
    for id, (role, share) in zip(ids, shares, strict=True):
        rest = [
            f"{other} does {', '.join(theirs)}" for other, (_, theirs) in zip(ids, shares, strict=True) if other != id
        ]
        note = cut(f"\n\nYour part of this: {', '.join(share)}. Leave the rest: {'; '.join(rest)}.", _NOTE_BYTES)
        description = subtask.description[: limits.DESCRIPTION_CHARS - len(note)] + note
        parts.append(
            subtask.model_copy(update={"id": id, "role": role.name, "capabilities": share, "description": description})
        )
    return parts


def _shares(roles: Iterable[RoleCard], capabilities: Iterable[str]) -> list[tuple[RoleCard, list[str]]]:
    """Each capability with the first role that has it; roles that get none are left out."""
    open_ones, shares = list(dict.fromkeys(capabilities)), []
    for role in roles:
        share = [capability for capability in open_ones if capability in role.capabilities]
        open_ones = [capability for capability in open_ones if capability not in share]
        if share:
            shares.append((role, share))
    return shares


def _new_id(subtask_id: str, used: set[str]) -> str:
    number = 2
    while (id := f"{subtask_id[:56]}-{number}") in used:
        number += 1
    used.add(id)
    return id
