"""Tests of tools and teams without a server and without a model.

    async def test_books() -> None:
        team = await open_team("my-teams/library")
        output = await team.call("librarian", "find_books", title="emma")
        assert output.text == "Emma: shelf 3"

A call does what it does in a run: it checks the role's rights and the arguments, and cleans and
caps the output. No person is asked, and nothing is kept. This is for the machine of a team's
author: it imports the package `activities`, as a Worker does.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporal_supervisor.own_packages import require_our_packages
from temporal_supervisor.supervision.contract.team import Role, Team
from temporal_supervisor.tools import NewArtifact, Tool, ToolContext, ToolMisuse

if TYPE_CHECKING:
    from activities.teams.team_files import LoadedTeam
    from activities.teams.toolbox import Toolbox, ToolRun

_TESTER = "tester"  # the role that has a tool which is tested alone


@dataclass(frozen=True)
class CallOutput:
    """The output of a tool call, as a run keeps it."""

    text: str
    sources: list[str] = field(default_factory=list)
    artifacts: list[NewArtifact] = field(default_factory=list)


@dataclass(frozen=True)
class OpenedTeam:
    """The team in a folder with its tools, as a Worker loads it."""

    team: Team
    _loaded: "LoadedTeam"

    def role(self, name: str) -> Role:
        """Returns the role with that name. Raises LookupError if there is none."""
        for role in self.team.roles:
            if role.name == name:
                return role
        known = ", ".join(role.name for role in self.team.roles)
        raise LookupError(f"team '{self.team.name}' has no role '{name}'; it has: {known}")

    def schema(self, tool_name: str) -> dict[str, Any]:
        """Returns the JSON schema of a tool's arguments for models.

        Raises LookupError if there is no such tool.
        """
        found = self._loaded.toolbox.get(tool_name)
        if found is None:
            known = ", ".join(self._loaded.toolbox.names())
            raise LookupError(f"team '{self.team.name}' has no tool '{tool_name}'; it has: {known}")
        return found.schema()

    async def call(
        self,
        role_name: str,
        tool_name: str,
        /,
        *,
        attachments: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> CallOutput:
        """Calls a tool in a role and returns its output.

        `attachments` are the texts of the subtask's attachments. Raises ToolMisuse, with the
        message for the model, if the role may not use the tool, if arguments are wrong, or if the
        tool fails.
        """
        role, toolbox = self.role(role_name), self._loaded.toolbox
        return await _call(toolbox, role, tool_name, arguments, attachments)


async def open_team(folder: Path | str) -> OpenedTeam:
    """Returns the team in a folder with a `team.toml`.

    Raises ValueError with all problems, as `temporal-supervisor teams` lists them.
    """
    require_our_packages("activities")
    from activities.teams.team_files import TeamError, TeamFiles
    from temporal_supervisor.bundled import BUILTIN_TEAMS

    place = Path(folder).absolute()
    try:
        loaded = await TeamFiles([place.parent, BUILTIN_TEAMS]).load(place.name)
    except TeamError as error:
        raise ValueError(error.message) from None
    return OpenedTeam(loaded.team, loaded)


async def call_tool(
    tool: Tool[Any],
    /,
    *,
    attachments: Mapping[str, str] | None = None,
    **arguments: Any,
) -> CallOutput:
    """Calls a tool with these arguments and returns its output.

    Raises ToolMisuse like `OpenedTeam.call`.
    """
    require_our_packages("activities")
    from activities.teams.toolbox import Toolbox

    role = Role(name=_TESTER, description="Tests it.", system_prompt="-", tools=[tool.name])
    toolbox = Toolbox([replace(tool, run=_as_async(tool.run))])
    return await _call(toolbox, role, tool.name, arguments, attachments)


async def _call(
    toolbox: "Toolbox",
    role: Role,
    tool_name: str,
    arguments: dict[str, Any],
    attachments: Mapping[str, str] | None,
) -> CallOutput:
    context = ToolContext(
        attachments={name: _reader(text) for name, text in (attachments or {}).items()},
        idempotency_key=f"test:{tool_name}",
        run_id="test",
    )
    ran: ToolRun = await toolbox.run(role, tool_name, arguments, context)
    if ran.is_error:
        raise ToolMisuse(ran.text)
    return CallOutput(ran.text, ran.sources, ran.artifacts)


def _as_async(run: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Returns a function as a coroutine function; a plain one runs in a thread, as in a Worker."""
    if inspect.iscoroutinefunction(run):
        return run

    async def awaited(arguments: Any, context: ToolContext) -> Any:
        return await asyncio.to_thread(run, arguments, context)

    return awaited


def _reader(text: str) -> Any:
    async def read() -> str:
        return text

    return read
