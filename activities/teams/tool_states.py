"""States of tools, roles and teams, for the recipes of a run."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from activities.files.values import VERSION
from activities.teams.team_files import LoadedTeam, TeamError
from activities.tools.documents import SearchDocuments
from activities.tools.tool import Tool
from temporal_supervisor.supervision.contract.team import Role
from temporal_supervisor.supervision.reuse.recipes import (
    ReadsFiles,
    RoleState,
    Stays,
    ToolState,
    sha256_of,
)


async def tool_state(tool: Tool[Any]) -> ToolState:
    """Returns the current state of a tool; one whose data can't be read counts as live."""
    try:
        version = await tool.version() if tool.version else ""
    except (ValueError, OSError):
        return ToolState(sha256=tool.name)
    content = {
        "name": tool.name,
        "description": tool.description,
        "schema": tool.provided or tool.schema(),
        "rights": [tool.reads, tool.returns, tool.effects, tool.approve, tool.targets, tool.server],
        "version": version,
        "reading": VERSION if tool.catalogue else 0,
    }
    return ToolState(sha256=sha256_of(content), stays=_stays(tool), reads=_reads(tool))


def _stays(tool: Tool[Any]) -> Stays:
    is_live = tool.outward or tool.pinned is not None or tool.provided is not None
    if tool.effects != "read" or is_live:
        return "never"
    if tool.own:
        return tool.stays or "never"
    return "always"


def shortest(stays: Iterable[Stays]) -> Stays:
    """Returns the shortest of the times for which outputs stay the same."""
    found = {*stays}
    lasting: list[Stays] = ["never", "day"]
    return next((each for each in lasting if each in found), "always")


def _reads(tool: Tool[Any]) -> ReadsFiles:
    if tool.own:
        return "all" if tool.reads == "private" else "none"
    if tool.catalogue is None or tool.evidence == "listing":
        return "none"
    return "all" if tool.arguments is SearchDocuments else "named"


def role_state(
    role: Role,
    worker_models: list[str],
    tools: dict[str, ToolState],
    teams: dict[str, ToolState],
) -> RoleState:
    """Returns the state of a role; unknown tools and teams count as live."""
    return RoleState(
        prompt=role.system_prompt.strip(),
        grounding=role.grounding,
        output_schema=role.output_schema,
        asks=role.ask,
        efforts=role.effort.model_dump(mode="json") if role.effort else None,
        models=role.model or worker_models,
        capabilities=role.capabilities,
        tools={name: tools.get(name) or ToolState(sha256=name) for name in role.tools},
        is_agent=role.team is None and role.person is None,
        team=teams.get(role.team) if role.team else None,
    )


@dataclass(frozen=True)
class ServedTeams:
    """Teams as a run uses them: with its models, and untrusted data if its own data is."""

    load: Callable[[str], Awaitable[LoadedTeam]]
    worker_models: list[str]
    supervisor_models: Sequence[str]
    runs_tools: Callable[[str], bool]
    data_from_others: bool

    def served(self, loaded: LoadedTeam) -> LoadedTeam:
        """Returns a team as the run uses it."""
        toolbox = loaded.toolbox.with_data_of_others() if self.data_from_others else loaded.toolbox
        team = loaded.team.as_served(self.worker_models, self.runs_tools)
        return replace(loaded, team=team, toolbox=toolbox)

    async def state(self, name: str) -> ToolState:
        """Returns the state of a team by name; one that can't be read counts as live."""
        try:
            loaded = await self.load(name)
        except TeamError:
            return ToolState(sha256=name)
        return await self.state_of(self.served(loaded))

    async def state_of(self, loaded: LoadedTeam) -> ToolState:
        """Returns the state of a team with its roles, their tools, and all teams within it.

        It has the form of a tool's state.
        """
        states, left = {loaded.team.name: await self._own_state(loaded)}, _teams_in(loaded)
        while left:
            name = left.pop()
            if name in states:
                continue
            try:
                team = self.served(await self.load(name))
            except TeamError:
                states[name] = ToolState(sha256=name)
            else:
                states[name] = await self._own_state(team)
                left += _teams_in(team)
        stays = shortest(state.stays for state in states.values())
        own = {name: state.sha256 for name, state in states.items()}
        return ToolState(sha256=sha256_of(own), stays=stays, reads="all")

    async def _own_state(self, loaded: LoadedTeam) -> ToolState:
        """Returns the state of a team without the teams within it."""
        team = loaded.team
        named = loaded.toolbox.tools_named(team.named_tools)
        tools = {tool.name: await tool_state(tool) for tool in named}
        has_people = any(role.person or role.ask for role in team.roles)
        is_known = len(tools) == len(team.named_tools) and not has_people
        content = {
            "team": team.model_dump(mode="json"),
            "tools": {name: tool.sha256 for name, tool in tools.items()},
            "models": [self.worker_models, list(self.supervisor_models)],
        }
        stays = shortest(tool.stays for tool in tools.values()) if is_known else "never"
        return ToolState(sha256=sha256_of(content), stays=stays)


def _teams_in(loaded: LoadedTeam) -> list[str]:
    """Returns the names of the roles' teams."""
    return [role.team for role in loaded.team.roles if role.team]
