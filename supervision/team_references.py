"""What the parts of a team say of each other, looked at together: names that differ, references to what exists.

It takes plain data that may be wrong in any other way, so that all problems of a team file are told at once: a part
that has no name is passed over, and what could have meant it, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from supervision import limits
from supervision.text import did_you_mean, one_line, quoted

Table = Mapping[str, object]


def reference_problems(team: Table) -> list[str]:
    """Returns what does not fit together in a team, one sentence each; of very many problems the first ones."""
    return list(islice(_problems(team), limits.FIELD_COMPLAINTS))


def role_problems(role: Table) -> Iterator[str]:
    """Yields what does not fit together in one role."""
    name, prompt = quoted(str(role.get("name"))), role.get("system_prompt", "")
    if role.get("team") is None and isinstance(prompt, str) and not prompt.strip():
        yield f"role {name} needs a system_prompt"
    if role.get("team") is not None and role.get("tools"):
        yield f"role {name} is a team: tools belong to that team's roles"


def tables(value: object) -> list[Table]:
    """Returns the tables of a list; none if it is something else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Returns the texts of a list; none if it is something else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def names_of(entries: Iterable[Table]) -> list[str]:
    """Returns the names of those that have one."""
    return texts([entry.get("name") for entry in entries])


def _problems(team: Table) -> Iterator[str]:
    roles, tools = tables(team.get("roles")), tables(team.get("tools"))
    names = names_of(roles)
    if repeated := _repeated(names):
        yield f"role names must differ: {repeated}"
    for role in roles:
        yield from role_problems(role)
    if len(names) == len(roles) > 0:  # else a name that seems unknown may be that of a role without one
        yield from _unknown_roles(team, roles, names)
    if repeated := _repeated(names_of(tools)):
        yield f"tool names must differ: {repeated}"
    shared = _repeated(tool for role in roles for tool in dict.fromkeys(texts(role.get("tools"))))
    if shared and not team.get("share_tools"):
        yield f"roles share the tools {shared}: give each tool to one role, or set share_tools = true if that is meant"


def _unknown_roles(team: Table, roles: list[Table], names: list[str]) -> Iterator[str]:
    if (generalist := _other(team.get("generalist"), names)) is not None:
        yield f"generalist {_unknown(generalist, names)}"
    for role in roles:
        for field in ("fallback", "backup"):
            if role.get(field) == role["name"]:
                yield f"role {quoted(str(role['name']))} is its own {field}: name another role"
            elif (other := _other(role.get(field), names)) is not None:
                yield f"role {quoted(str(role['name']))}: {field} {_unknown(other, names)}"
    for route in tables(team.get("routes")):
        if (other := _other(route.get("role"), names)) is not None:
            yield f"routes: {_unknown(other, names)}"


def _other(name: object, names: list[str]) -> str | None:
    return name if isinstance(name, str) and name not in names else None


def _unknown(role: str, names: list[str]) -> str:
    meant = did_you_mean(role, names).replace(", ", "; ", 1)
    listed = one_line(", ".join(names), limits.LIST_SHOWN_BYTES)
    return f"{quoted(role)} is not one of the roles: {listed}{meant}"


def _repeated(names: Iterable[str]) -> str:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    return one_line(", ".join(repeated), limits.LIST_SHOWN_BYTES)
