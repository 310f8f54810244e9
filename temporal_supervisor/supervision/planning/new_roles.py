"""Roles that a plan defines, with tools from the team's toolbox only."""

from pydantic import ValidationError

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import did_you_mean, quoted
from temporal_supervisor.supervision.contract.plan import NewRole, Plan
from temporal_supervisor.supervision.contract.request import complaint_lines
from temporal_supervisor.supervision.contract.team import Team, TeamCard


def new_role_problems(team: Team, new_roles: list[NewRole]) -> list[str]:
    """Returns the problems of adding `new_roles` to `team`, a sentence each."""
    if len(new_roles) > limits.NEW_ROLES:
        allowed = f"at most {limits.NEW_ROLES} are allowed"
        return [f"the plan defines {len(new_roles)} new roles, {allowed}"]

    problems: list[str] = []
    toolbox = ", ".join(team.toolbox) or "none"
    for role in new_roles:
        for tool in role.tools:
            if tool not in team.toolbox:
                wanted = f"new role {quoted(role.name)} asks for the tool {quoted(tool)}"
                problems.append(f"{wanted}, which is not in the toolbox: {toolbox}")
    if any(role.name == "auto" for role in new_roles):
        problems.append("no role can have the name 'auto'")
    try:
        with_new_roles(team, new_roles)
    except ValidationError as error:
        roles = [*team.roles, *map(dict, new_roles)]
        problems += complaint_lines(error, "new_roles", {"roles": roles})
    return problems


def unknown_roles(plan: Plan, team: Team | TeamCard) -> dict[str, str]:
    """Returns the unknown roles of subtasks, by subtask.

    Known roles are defined by the team or by the plan.
    """
    known = {"auto", *(role.name for role in team.roles), *(role.name for role in plan.new_roles)}
    return {subtask.id: subtask.role for subtask in plan.subtasks if subtask.role not in known}


def unknown_role_problems(plan: Plan, team: Team | TeamCard) -> list[str]:
    """Returns a sentence for each unknown role of a subtask or of a candidate."""
    names = [role.name for role in team.roles] + [role.name for role in plan.new_roles]
    unknown = [*unknown_roles(plan, team).items()]
    for subtask in plan.subtasks:
        unknown += [(subtask.id, name) for name in subtask.candidate_roles if name not in names]

    problems: list[str] = []
    for subtask_id, role in unknown:
        problem = f"{quoted(role)} is not a role of the team{did_you_mean(role, names)}"
        problems.append(f"subtask {quoted(subtask_id)}: {problem}")
    return problems


def with_new_roles(team: Team, new_roles: list[NewRole]) -> Team:
    """Returns the team with the new roles, which share its tools.

    Raises ValueError if there are `new_role_problems`.
    """
    share = team.share_tools or any(role.tools for role in new_roles)
    fields = {name: getattr(team, name) for name in Team.model_fields}
    roles = [*team.roles, *(role.model_dump() for role in new_roles)]
    return Team.model_validate({**fields, "roles": roles, "share_tools": share})
