"""The role factory: roles that a plan defines for itself, out of the team's toolbox only."""

from supervision import limits
from supervision.contract.plan import NewRole
from supervision.contract.team import Role, Team, is_name
from supervision.text import one_line

_DESCRIPTION_CHARS = 1000
_PROMPT_CHARS = 40_000
_TAKEN = ("auto",)  # what a plan writes for "any role that can"


def problems(team: Team, new_roles: list[NewRole]) -> list[str]:
    """What keeps `new_roles` from joining `team`, each in one sentence that the plan's author can act on."""
    if len(new_roles) > limits.NEW_ROLES:
        return [f"the plan defines {len(new_roles)} new roles, at most {limits.NEW_ROLES} are allowed"]
    found: list[str] = []
    if len(team.roles) + len(new_roles) > limits.TEAM_ROLES:
        found.append(f"the team has {len(team.roles)} roles already, at most {limits.TEAM_ROLES} are allowed")
    taken = {*_TAKEN, *(role.name for role in team.roles)}
    for role in new_roles:
        found += _problems_of(role, taken, team.toolbox)
        taken.add(role.name)
    return found


def with_new_roles(team: Team, new_roles: list[NewRole]) -> Team:
    """The team with these roles added; ValueError (pydantic's) when `problems` has any.

    New roles may use tools that roles of the team use too: the toolbox is the team's word that this is meant.
    """
    made = [
        Role(name=role.name, description=role.description, system_prompt=role.system_prompt, tools=role.tools)
        for role in new_roles
    ]
    share = team.share_tools or any(role.tools for role in made)
    fields = {name: getattr(team, name) for name in Team.model_fields}
    return Team.model_validate({**fields, "roles": [*team.roles, *made], "share_tools": share})


def _problems_of(role: NewRole, taken: set[str], toolbox: list[str]) -> list[str]:
    name = f"new role '{one_line(role.name, 60)}'"
    found = []
    if not is_name(role.name):
        found.append(f"{name}: a name is 1 to 48 lower-case letters, digits, hyphens or underscores, a letter first")
    elif role.name in taken:
        found.append(f"{name}: the name is taken, use that role or choose another name")
    for field, text, most in (
        ("description", role.description, _DESCRIPTION_CHARS),
        ("system_prompt", role.system_prompt, _PROMPT_CHARS),
    ):
        if not text.strip():
            found.append(f"{name} has no {field}")
        if len(text) > most:
            found.append(f"{name} has a {field} of more than {most} characters")
    allowed = ", ".join(toolbox) or "none"
    found += [
        f"{name} asks for the tool '{one_line(tool, 60)}', which is not in the toolbox: {allowed}"
        for tool in role.tools
        if tool not in toolbox
    ]
    return found
