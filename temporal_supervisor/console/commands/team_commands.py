"""The commands `teams` and `tool`: list, check, make and pin teams, and try a tool."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from activities.files.file_cache import FileCache
from activities.model.port import ModelEndpoint, ModelFailure
from activities.questions.planning import choose_role
from activities.teams.team_files import LoadedTeam, TeamError, TeamFiles
from activities.teams.toolbox import Toolbox
from activities.tools.mcp.pins import LOCK, write_pins
from activities.tools.secrets import Secrets
from activities.tools.tool import ToolContext
from temporal_supervisor.console.base.command import BAD_INPUT, DONE, FAILED, CommandFailed, hint
from temporal_supervisor.console.base.terminal import (
    Report,
    counted,
    indented,
    print_err,
    print_json,
    print_out,
    safe_line,
)
from temporal_supervisor.console.commands.teams.new_team import copy_team, new_team
from temporal_supervisor.console.commands.teams.server_offers import diff_rows, offer_rows, offers
from temporal_supervisor.console.run.request_options import json_object
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import Role, Team
from temporal_supervisor.supervision.planning.team_hints import team_hints

_LIST_CHARS = 79  # a line of the list, in a terminal of 80 columns


def team_files(settings: Settings) -> TeamFiles:
    """Returns the teams of this environment, with its secrets."""
    cache, secrets = FileCache(cache_dir()), Secrets(settings.secrets_dir)
    return TeamFiles(settings.teams_folders, cache, secrets, settings.mcp_memory_mib)


async def pin_team(settings: Settings, team: str) -> Report:
    """Shows the changes of a team's MCP tools since they were pinned, and pins them."""
    files = team_files(settings)
    found = await offers(files, team)
    folder = files.folder(team)
    wrong = [offer for offer in found if offer.problems]
    changed: list[str] = []
    data: dict[str, Any] = {}
    for offer in found:
        changed += offer.changes
        data[offer.server] = {name: tool.sha256 for name, tool in offer.listed.items()}
    if changed and not wrong:
        write_pins(folder, {offer.server: offer.listed for offer in found})

    outcome = "not written" if wrong else "written"
    if not changed:
        outcome = "nothing has changed"
    rows = [*diff_rows(changed), f"{folder / LOCK}: {outcome}"]
    if not found:
        rows = [f"team '{team}' has no section [mcp_servers.NAME], so there is nothing to pin"]
    notes = [f"mcp_servers.{offer.server} is not pinned: {offer.summary}" for offer in wrong]
    return Report(data, rows, notes, code=FAILED if wrong else DONE)


async def teams_command(
    settings: Settings,
    team: str | None,
    name: str | None,
    data: list[Path] | None,
    *,
    check: bool,
    ask: str | None,
) -> Report | int:
    """Runs `teams` with its words: list, show, check, ask, pin, new or copy."""
    if team == "pin" and name and not data:
        return await pin_team(settings, name)
    if team == "new" and name and data:
        return await new_team(settings.teams_folders, name, data)
    if team == "copy" and name and not data:
        return copy_team(settings.teams_folders, name)
    if name or team in ("new", "copy"):
        forms = (
            "`teams new NAME --data FOLDER`, `teams copy NAME`, `teams pin NAME`, "
            "or `teams goals [NAME]`"
        )
        raise CommandFailed(BAD_INPUT, f"write {forms}")
    if ask is not None:
        raise CommandFailed(BAD_INPUT, 'write `teams TEAM --ask "GOAL"`')
    return await teams_report(settings, name=team, check=check)


async def teams_report(
    settings: Settings,
    *,
    name: str | None = None,
    check: bool = False,
) -> Report:
    """Returns a line for each team, or one team with roles, tools and data.

    The exit code is 1 for problems. With `check` each team is shown whole, and MCP servers are
    asked for their tools.
    """
    files = team_files(settings)
    listed: list[dict[str, Any]] = []
    rows: list[RenderableType] = []
    notes: list[str] = []
    usable: list[Team] = []
    is_wrong = False
    if settings.teams_dir and not settings.teams_dir.is_dir():
        notes.append(f"SUPERVISOR_TEAMS_DIR names {settings.teams_dir}, which is no folder")
    for each in [name] if name else files.names():
        try:
            looked = await _look_at(files, each)
        except TeamError as error:
            listed.append({"name": each, "error": safe_line(error.message, limits.ERROR_BYTES)})
            notes.append(_unusable_line(each, error))
            is_wrong = True
        else:
            listed.append(looked.as_json())
            usable.append(looked.loaded.team)
            rows += _looked_rows(looked, is_named=bool(name), check=check)
            is_wrong = is_wrong or bool(looked.unread)
        if check:
            with contextlib.suppress(TeamError):  # which is told
                offered = await offers(files, each)
                rows += offer_rows(each, offered)
                is_wrong = is_wrong or any(offer.problems or offer.changes for offer in offered)
    if not name and not check:
        rows = [*_list_rows(usable), *rows]
    return Report(listed, rows, notes, code=FAILED if is_wrong else DONE)


@dataclass
class _Looked:
    """A usable team, with a line for each table and document, and its `unread` files."""

    loaded: LoadedTeam
    data: list[str]
    unread: list[str]

    def as_json(self) -> dict[str, Any]:
        """Returns the team's definition, its data and hints on it, as JSON."""
        team = self.loaded.team
        seen = {"data": self.data, "unread": self.unread, "hints": team_hints(team)}
        return {**team.model_dump(mode="json"), "error": None, **seen}


async def _look_at(files: TeamFiles, name: str) -> _Looked:
    """Loads a team and reads its data. Raises TeamError."""
    loaded = await files.load(name)
    data = await loaded.toolbox.data()
    problems = await loaded.toolbox.problems()
    return _Looked(loaded, data, list(dict.fromkeys(problems)))


def _looked_rows(looked: _Looked, *, is_named: bool, check: bool) -> Iterator[RenderableType]:
    """Yields a team with its data; in a list only its unread files."""
    team, data = looked.loaded.team, looked.data
    is_whole = is_named or check
    if is_whole:
        yield from _team_rows(team)
        yield from _free_rows(looked.loaded.toolbox)
    if is_named:
        for line in data:
            yield indented(safe_line(line, limits.PARAGRAPH_BYTES), 2)
    elif check and data:
        tables = sum(line.startswith("table ") for line in data)
        documents = len(data) - tables
        yield indented(f"data: {counted(tables, 'table')}, {counted(documents, 'document')}", 2)
    place = "" if is_whole else f"{team.name}: "
    for problem in looked.unread:
        yield indented(f"✘ {place}{safe_line(problem, limits.ERROR_BYTES)}", 2, "red")


def _unusable_line(name: str, error: TeamError) -> str:
    """Returns the problems of a team, one below the other."""
    lines = [error.message]
    if len(error.problems) > 1:
        lines = [f"{error.message.partition(': ')[0]}:", *error.problems]
    said = "\n  ".join(safe_line(line, limits.ERROR_BYTES) for line in lines)
    return f"team '{name}' can't be used: {said}"


async def chosen_role_report(
    settings: Settings,
    name: str,
    goal: str,
    endpoint: ModelEndpoint,
) -> Report:
    """Returns the role that would get a goal: by a route, else by the planner."""
    try:
        loaded = await team_files(settings).load(name)
        plan, model = await choose_role(endpoint, settings.supervisor_model[0], loaded, goal)
    except ModelFailure as failure:
        why = f"no fixed route fits, and the planner can't be asked: {failure.message}"
        raise CommandFailed(FAILED, why) from None
    finally:
        await endpoint.close()
    role, *others = [loaded.team.role(subtask.role) for subtask in plan.subtasks]
    said = {
        "label": role.label,
        "person": role.person.who if role.person else None,
        "fallback": role.fallback,
        "secondary_role": others[0].name if others else None,
        "reason": plan.reasoning or None,
    }
    by = f"the planner's choice, {model}" if model else "a fixed route, no model is asked"
    rows: list[RenderableType] = [f"{role.name}  ({by})"]
    for key, text in said.items():
        if text:
            rows.append(indented(safe_line(f"{key}: {text}", limits.PARAGRAPH_BYTES), 2))
    return Report({"role": role.name, "model": model, **said}, rows)


def _list_rows(teams: list[Team]) -> Iterator[RenderableType]:
    """Yields a line for each team with an example goal.

    Teams that are roles of others share the last line.
    """
    inside: set[str] = set()
    for team in teams:
        # A team in itself is asked, too.
        inside.update(role.team for role in team.roles if role.team and role.team != team.name)
    asked = [team for team in teams if team.name not in inside]
    width = max((len(team.name) for team in asked), default=0) + 2
    for team in asked:
        about = safe_line(team.example or team.description, _LIST_CHARS - width)
        yield f"{team.name:<{width}}{about}"
    yield ""
    if inside:
        nested = [team.name for team in teams if team.name in inside]
        yield f"inside of others: {', '.join(nested)}"
    yield f"{hint('teams', 'NAME')} shows roles, tools and data,"
    yield f"{hint('teams', 'copy', 'NAME')} makes a copy to change,"
    yield f"{hint('run', '--team', 'NAME', 'GOAL')} asks it"


def _team_rows(team: Team) -> Iterator[RenderableType]:
    about = safe_line(team.description, limits.PARAGRAPH_BYTES)
    yield indented(f"{team.name}  {about}".rstrip(), 0, "bold")
    if team.example:
        example = safe_line(team.example, limits.PARAGRAPH_BYTES)
        yield indented(f"ask, for example: {example}", 2)
    for role in team.roles:
        mark = " (generalist)" if role.name == team.generalist else ""
        tools = f"team {role.team}" if role.team else ", ".join(role.tools) or "no tools"
        pool = f", pool {role.pool}" if role.pool else ""
        yield indented(f"{role.name}{mark}: {tools}{pool}", 2)
        yield indented(safe_line(role.description, limits.PARAGRAPH_BYTES), 6, "dim")
    for advice in team_hints(team):
        yield indented(f"hint: {safe_line(advice, limits.ERROR_BYTES)}", 2, "yellow")


def _free_rows(toolbox: Toolbox) -> Iterator[RenderableType]:
    """Yields the arguments that may have any value, of tools with targets.

    They, too, may direct a call.
    """
    for tool in toolbox.tools_named(toolbox.names()):
        free = [name for name in tool.schema().get("properties", {}) if name not in tool.targets]
        if tool.targets and free and tool.provided is None:
            words = f"{tool.name}: no target limits {', '.join(free)}"
            yield indented(safe_line(words, limits.PARAGRAPH_BYTES), 2)


async def try_tool(settings: Settings, name: str, arguments: str | None) -> int:
    """Prints the schema of a tool `team/tool`, or its output for these arguments."""
    team_name, _, tool_name = name.partition("/")
    if not tool_name:
        teams = hint("teams", team_name)
        raise CommandFailed(BAD_INPUT, f"write TEAM/TOOL: {teams} lists the tools of a team")
    toolbox = (await team_files(settings).load(team_name)).toolbox
    tool = toolbox.get(tool_name)
    if tool is None:
        known = ", ".join(toolbox.names()) or "none"
        why = f"team '{team_name}' has no tool '{tool_name}'; it has {known}"
        raise CommandFailed(BAD_INPUT, why)
    if arguments is None:
        schema = tool.schema()
        print_json({"name": tool.name, "description": tool.description, "input_schema": schema})
        return DONE

    arguments = arguments or "{}"
    given = json_object(arguments, "the text of the arguments", '{"title": "emma"}')
    key = hashlib.sha256(arguments.encode()).hexdigest()
    context = ToolContext(idempotency_key=key, run_id="tried-by-hand")
    role = Role(
        name="operator",
        description="Tries a tool.",
        system_prompt="-",
        tools=toolbox.names(),
    )
    ran = await toolbox.run(role, tool_name, given, context)
    if ran.is_error:
        print_err(f"the tool failed: {ran.text}")
        return FAILED
    print_out(ran.text)
    if ran.sources:
        print_err(f"sources: {', '.join(ran.sources)}")
    for artifact in ran.artifacts:
        print_err(f"artifact {artifact.name} ({artifact.media_type}, {len(artifact.data):,} bytes)")
    return DONE
