"""The commands `teams` and `tool`: teams, what they reach and take, their MCP servers; a new team; a tool tried."""

import asyncio
import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import RenderableType

from activities.files.file_cache import FileCache
from activities.model.port import ModelEndpoint, ModelFailure
from activities.questions.planning import choose_role
from activities.teams.team_files import TeamError, TeamFiles
from activities.teams.toolbox import Toolbox
from activities.tools.mcp.mcp_servers import McpConnection, McpFailed
from activities.tools.mcp.pins import LOCK, Pinned, differences, read_pins, write_pins
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
    safe,
    safe_line,
)
from temporal_supervisor.console.run.described_files import reports_on
from temporal_supervisor.console.run.request_options import data_files, json_object
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import NAME_RULE, Role, Team, is_name, server_tool
from temporal_supervisor.supervision.planning.team_hints import team_hints

_ABOUT_CHARS = 80
_LIST_CHARS = 79  # a line of the list, in a terminal of 80 columns
_STYLES = {"+": "green", "-": "red", "@": "dim"}


@dataclass
class Offer:
    """The offer of a server: all its tools, the ones that the team file lists, and problems."""

    server: str
    tools: dict[str, Pinned] = field(default_factory=dict)
    listed: dict[str, Pinned] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The server in a line."""
        if self.problems:
            return safe_line("; ".join(self.problems), limits.ERROR_BYTES)
        if not self.listed:
            return f"{counted(len(self.tools), 'tool')}, of which the team file lists none"
        pinned = "they differ from team.lock" if self.changes else "as pinned"
        return f"{counted(len(self.tools), 'tool')}, {len(self.listed)} listed, {pinned}"


def team_files(settings: Settings) -> TeamFiles:
    """Returns the teams of this environment, with its secrets."""
    cache, secrets = FileCache(cache_dir()), Secrets(settings.secrets_dir)
    return TeamFiles(settings.teams_folders, cache, secrets, settings.mcp_memory_mib)


async def offers(files: TeamFiles, team: str) -> list[Offer]:
    """Starts the servers of a team and returns the present offer of each. Raises TeamError."""
    named = files.definition(team)
    return await asyncio.gather(*(_offer(name, connection) for name, connection in files.servers(named).items()))


async def _offer(name: str, connection: McpConnection) -> Offer:
    try:
        tools = {tool.name: tool for tool in await connection.tools()}
    except McpFailed as failed:
        return Offer(name, problems=[str(failed)])
    listed, has = connection.server.tools, ", ".join(tools) or "none"
    offer = Offer(name, tools, {tool: tools[tool] for tool in listed if tool in tools})
    offer.problems = [f"it has no tool '{tool}'; it has: {has}" for tool in listed if tool not in tools]
    pinned = {}
    with contextlib.suppress(ValueError):  # of a lock that is written anew
        pinned = read_pins(connection.folder).get(name, {})
    offer.changes = list(differences(name, pinned, offer.listed))
    return offer


async def pin_team(settings: Settings, team: str) -> Report:
    """Shows the changes of a team's MCP tools since they were pinned, and pins them."""
    files = team_files(settings)
    found, folder = await offers(files, team), files.folder(team)
    wrong = [offer for offer in found if offer.problems]
    changed = [line for offer in found for line in offer.changes]
    if changed and not wrong:
        write_pins(folder, {offer.server: offer.listed for offer in found})
    outcome = "not written" if wrong else "written"
    if not changed:
        outcome = "nothing has changed"
    rows = [*_diff_rows(changed), f"{folder / LOCK}: {outcome}"]
    if not found:
        rows = [f"team '{team}' has no section [mcp_servers.NAME], so there is nothing to pin"]
    notes = [f"mcp_servers.{offer.server} is not pinned: {offer.summary}" for offer in wrong]
    data = {offer.server: {name: tool.sha256 for name, tool in offer.listed.items()} for offer in found}
    return Report(data, rows, notes, code=FAILED if wrong else DONE)


def offer_rows(team: str, found: list[Offer]) -> Iterator[RenderableType]:
    """Yields each server, what changed since it was pinned, and the lines for a team file that list its other tools."""
    for offer in found:
        mark, style = ("✘", "red") if offer.problems else ("✔", "green")
        yield indented(f"{mark} MCP server {offer.server}: {offer.summary}", 2, style)
        yield from _diff_rows(offer.changes)
        if offer.changes and not offer.problems:
            yield indented(f"pin them: {hint('teams', 'pin', team)}", 4)
        if others := [tool for name, tool in offer.tools.items() if name not in offer.listed]:
            yield indented('for team.toml, with "read" for each tool that changes nothing and sends nothing:', 4, "dim")
            if not offer.listed:
                yield indented(f"[mcp_servers.{offer.server}.tools]", 4)
            for tool in others:
                about = safe_line(f"{server_tool(offer.server, tool.name)}: {tool.description}", _ABOUT_CHARS)
                yield indented(f'{json.dumps(tool.name)} = {{ effects = "write", approve = "always" }}  # {about}', 4)


def _diff_rows(lines: list[str]) -> Iterator[RenderableType]:
    for line in lines:
        yield indented(safe(line[: limits.ERROR_BYTES]), 4, _STYLES.get(line[:1], "bold"))


async def teams_command(
    settings: Settings, team: str | None, name: str | None, data: list[Path] | None, *, check: bool, ask: str | None
) -> Report | int:
    """Runs `teams` with its words: list, show, check, ask, pin, new or copy."""
    if team == "pin" and name and not data:
        return await pin_team(settings, name)
    if team == "new" and name and data:
        return await new_team(settings.teams_folders, name, data)
    if team == "copy" and name and not data:
        return copy_team(settings.teams_folders, name)
    if name or team in ("new", "copy"):
        forms = "`teams new NAME --data FOLDER`, `teams copy NAME`, `teams pin NAME`, or `teams goals [NAME]`"
        raise CommandFailed(BAD_INPUT, f"write {forms}")
    if ask is not None:
        raise CommandFailed(BAD_INPUT, 'write `teams TEAM --ask "GOAL"`')
    return await teams_report(settings, name=team, check=check)


async def teams_report(settings: Settings, *, name: str | None = None, check: bool = False) -> Report:
    """Returns a line for each team, or one team with roles, tools and data; the code is 1 for what can't be used.

    With `check` all is shown of each, and MCP servers are asked what they offer.
    """
    files = team_files(settings)
    listed, rows, notes = list[dict[str, Any]](), list[RenderableType](), list[str]()
    if settings.teams_dir and not settings.teams_dir.is_dir():
        notes.append(f"SUPERVISOR_TEAMS_DIR names {settings.teams_dir}, which is no folder")
    wrong, whole, usable = False, bool(name) or check, list[Team]()
    for each in [name] if name else files.names():
        unread, offered = list[str](), list[Offer]()
        try:
            loaded = await files.load(each)
            data = await loaded.toolbox.data()
            unread = list(dict.fromkeys(await loaded.toolbox.problems()))
        except TeamError as error:
            listed.append({"name": each, "error": safe_line(error.message, limits.ERROR_BYTES)})
            notes.append(_unusable(each, error))
            wrong = True
        else:
            known = {"error": None, "data": data, "unread": unread, "hints": team_hints(loaded.team)}
            listed.append({**loaded.team.model_dump(mode="json"), **known})
            usable.append(loaded.team)
            rows += [*_team_rows(loaded.team), *_free_rows(loaded.toolbox)] if whole else []
            tables = sum(line.startswith("table ") for line in data)
            sizes = [f"data: {counted(tables, 'table')}, {counted(len(data) - tables, 'document')}"] if data else []
            shown = sizes if check else []
            if name:
                shown = data
            rows += [indented(safe_line(line, limits.PARAGRAPH_BYTES), 2) for line in shown]
            place = "" if whole else f"{each}: "
            rows += [indented(f"✘ {place}{safe_line(problem, limits.ERROR_BYTES)}", 2, "red") for problem in unread]
        if check:
            with contextlib.suppress(TeamError):  # which is told
                offered = await offers(files, each)
        rows += offer_rows(each, offered)
        wrong = wrong or bool(unread) or any(offer.problems or offer.changes for offer in offered)
    if not whole:
        rows = [*_list_rows(usable), *rows]
    return Report(listed, rows, notes, code=FAILED if wrong else DONE)


def _unusable(name: str, error: TeamError) -> str:
    lines = [f"{error.message.partition(': ')[0]}:", *error.problems] if len(error.problems) > 1 else [error.message]
    said = "\n  ".join(safe_line(line, limits.ERROR_BYTES) for line in lines)
    return f"team '{name}' can't be used: {said}"


async def taker_report(settings: Settings, name: str, goal: str, endpoint: ModelEndpoint) -> Report:
    """Returns the role of a team that would take a goal: by a route, else by the planner."""
    try:
        loaded = await team_files(settings).load(name)
        plan, model = await choose_role(endpoint, settings.supervisor_model[0], loaded, goal)
    except ModelFailure as failure:
        raise CommandFailed(FAILED, f"no fixed route fits, and the planner can't be asked: {failure.message}") from None
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
    rows = [indented(safe_line(f"{key}: {text}", limits.PARAGRAPH_BYTES), 2) for key, text in said.items() if text]
    return Report({"role": role.name, "model": model, **said}, [f"{role.name}  ({by})", *rows])


def _list_rows(teams: list[Team]) -> Iterator[RenderableType]:
    """Yields a line for each team with what to ask it; teams that are roles of others come together at the end."""
    inside = [(team.name, role.team) for team in teams for role in team.roles if role.team]
    nested = {name for outer, name in inside if name != outer}  # a team in itself is asked, too
    asked = [team for team in teams if team.name not in nested]
    width = max((len(team.name) for team in asked), default=0) + 2
    for team in asked:
        yield f"{team.name:<{width}}{safe_line(team.example or team.description, _LIST_CHARS - width)}"
    yield ""
    if nested:
        yield f"inside of others: {', '.join(team.name for team in teams if team.name in nested)}"
    yield f"{hint('teams', 'NAME')} shows roles, tools and data,"
    yield f"{hint('teams', 'copy', 'NAME')} makes a copy to change,"
    yield f"{hint('run', '--team', 'NAME', 'GOAL')} asks it"


def _team_rows(team: Team) -> Iterator[RenderableType]:
    yield indented(f"{team.name}  {safe_line(team.description, limits.PARAGRAPH_BYTES)}".rstrip(), 0, "bold")
    if team.example:
        yield indented(f"ask, for example: {safe_line(team.example, limits.PARAGRAPH_BYTES)}", 2)
    for role in team.roles:
        mark = " (generalist)" if role.name == team.generalist else ""
        tools = f"team {role.team}" if role.team else ", ".join(role.tools) or "no tools"
        pool = f", pool {role.pool}" if role.pool else ""
        yield indented(f"{role.name}{mark}: {tools}{pool}", 2)
        yield indented(safe_line(role.description, limits.PARAGRAPH_BYTES), 6, "dim")
    for advice in team_hints(team):
        yield indented(f"hint: {safe_line(advice, limits.ERROR_BYTES)}", 2, "yellow")


def _free_rows(toolbox: Toolbox) -> Iterator[RenderableType]:
    """Yields the arguments of tools with targets that may have any value: those, too, say where a call goes."""
    for tool in toolbox.named(toolbox.names()):
        free = [name for name in tool.schema().get("properties", {}) if name not in tool.targets]
        if tool.targets and free and tool.provided is None:
            yield indented(safe_line(f"{tool.name}: no target limits {', '.join(free)}", limits.PARAGRAPH_BYTES), 2)


async def new_team(folders: list[Path], name: str, data: list[Path]) -> int:
    """Writes a team over a copy of some files into the first folder of teams, or into `./teams`."""
    if not is_name(name):
        raise CommandFailed(BAD_INPUT, f"'{name}' can't be a team: a name is {NAME_RULE}")
    folder = _new_folder(folders, name)
    found = data_files(data)
    reports = await reports_on(found)
    kinds = {"tables": any(report.tables for report in reports), "documents": any(r.document for r in reports)}
    if not any(kinds.values()):
        raise CommandFailed(BAD_INPUT, f"nothing in {data[0]} can be read: {hint('inspect', str(data[0]))} says why")
    files = [file for file in found if not file.problem]
    for file in files:
        copy = folder / "data" / file.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, copy)
    for file in found:
        if file.problem:
            print_err(f"✘ {safe_line(file.name, limits.LINE_BYTES)} is left out: {file.problem}")
    (folder / "team.toml").write_text(_team_file(name, TeamFiles(folders).definition("files"), kinds), encoding="utf-8")
    print_err(f"wrote {folder / 'team.toml'}, and {counted(len(files), 'file')} into {folder / 'data'}")
    _tell_place(folders, name)
    return DONE


def copy_team(folders: list[Path], name: str) -> int:
    """Copies a team, with the teams that its roles are, into the first folder of teams, or into `./teams`."""
    files = TeamFiles(folders)
    taken = [files.definition(name)]
    for team in taken:  # which grows by the teams inside
        inside = dict.fromkeys(role.team for role in team.roles if role.team)
        taken += [files.definition(each) for each in inside if each not in {known.name for known in taken}]
    copies = {team.name: _new_folder(folders, team.name) for team in taken}
    for each, folder in copies.items():
        shutil.copytree(files.folder(each), folder, ignore=shutil.ignore_patterns("__pycache__"))
        print_err(f"wrote {folder}")
    _tell_place(folders, name)
    return DONE


def _new_folder(folders: list[Path], name: str) -> Path:
    """Returns the folder for a new team. Raises CommandFailed if something is there."""
    folder = _home(folders) / name
    if folder.exists():
        raise CommandFailed(FAILED, f"{folder} exists already: edit it, or choose another name")
    return folder


def _home(folders: list[Path]) -> Path:
    """Returns the folder of the user's own teams: the one that is set, else `./teams`."""
    return folders[0] if len(folders) > 1 else Path("teams").absolute()


def _tell_place(folders: list[Path], name: str) -> None:
    """Prints the command that checks a new team, and a variable for its folder if it takes one."""
    if len(folders) == 1:
        home = quote(str(_home(folders)))
        print_err(f"teams are read from there after `export SUPERVISOR_TEAMS_DIR={home}`, for Workers, too")
    print_err(f"check it: {hint('teams', name)}")


_KINDS = {"sql_tables": "tables", "sql_query": "tables", "document_search": "documents", "document_read": "documents"}
"""The tools that read files, by what they are called in the file of a team: the option that names their files."""


def _team_file(name: str, files: Team, kinds: dict[str, bool]) -> str:
    kind_of = {tool.name: _KINDS.get(tool.uses, "") for tool in files.tools}
    taken = [role for role in files.roles if any(kinds.get(kind_of[tool]) for tool in role.tools)]
    used = {tool for role in taken for tool in role.tools if kinds.get(kind_of[tool], True)}
    tools = [(tool.name, tool.uses, kind_of[tool.name]) for tool in files.tools if tool.name in used]
    reads = {kind: f', options = {{ {kind} = "data/**/*" }}' for kind in kinds}
    lines = [
        f"# Team {name}: a change of this file or of data/ counts from the next run on.",
        f'name = "{name}"',
        'description = "Answers questions from the tables and documents in data/."  # say what they are about',
        f'generalist = "{taken[-1].name}"  # takes subtasks whose role is unknown',
        *(["share_tools = true  # both roles compute"] if len(taken) > 1 else []),
        "tools = [",
        *(f'  {{ name = "{tool}", uses = "{uses}"{reads.get(kind, "")} }},' for tool, uses, kind in tools),
        "]",
    ]
    for role in taken:
        allowed = ", ".join(f'"{tool}"' for tool in role.tools if tool in used)
        lines += [
            "",
            "[[roles]]",
            f'name = "{role.name}"',
            f"description = {json.dumps(role.description)}  # the planner chooses by this",
            f"tools = [{allowed}]  # nothing else is ever run for this role",
            f"system_prompt = '''\n{role.system_prompt}'''",
        ]
    return "\n".join(lines) + "\n"


async def try_tool(settings: Settings, name: str, arguments: str | None) -> int:
    """Prints the schema of a tool `team/tool`, or its output for these arguments."""
    team_name, _, tool_name = name.partition("/")
    if not tool_name:
        raise CommandFailed(BAD_INPUT, f"write TEAM/TOOL: {hint('teams', team_name)} lists the tools of a team")
    toolbox = (await team_files(settings).load(team_name)).toolbox
    if arguments is None and (tool := toolbox.get(tool_name)):
        print_json({"name": tool.name, "description": tool.description, "input_schema": tool.schema()})
        return DONE
    if toolbox.get(tool_name) is None:
        known = ", ".join(toolbox.names()) or "none"
        raise CommandFailed(BAD_INPUT, f"team '{team_name}' has no tool '{tool_name}'; it has {known}")
    arguments = arguments or "{}"
    given = json_object(arguments, "the text of the arguments", '{"title": "emma"}')
    context = ToolContext(idempotency_key=hashlib.sha256(arguments.encode()).hexdigest(), run_id="tried-by-hand")
    role = Role(name="operator", description="Tries a tool.", system_prompt="-", tools=toolbox.names())
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
