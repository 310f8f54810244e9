"""The commands `teams` and `teams new`: what teams there are and what they reach, and a new one over some files."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from console.command import BAD_INPUT, DONE, FAILED, CommandFailed
from console.commands.inspect_command import reports_on
from console.commands.mcp_commands import offer_rows, offers, team_files
from console.hints import hint
from console.run.request_options import data_files
from console.terminal import Report, counted, indented, print_err, safe_line
from runtime.paths import cache_dir
from runtime.settings import Settings
from supervision.base import limits
from supervision.base.errors import ErrorKind, SupervisionError
from supervision.contract.team import is_name

if TYPE_CHECKING:
    from supervision.contract.team import Role, Team

_CELL = 600
_NO_NAME = "a folder's name must be lower-case letters, digits, hyphens or underscores, so rename it"


async def checked_team(settings: Settings, name: str) -> Report:
    """Returns a team as `teams_report` does, and what its MCP servers offer; exit code 1 if one can't be used."""
    report = await teams_report(settings.teams_folders, name=name, check=True)
    files = team_files(settings)
    try:
        found = await offers(files, name)
    except SupervisionError:  # the report says it
        return report
    wrong = any(offer.problems or offer.changes for offer in found)
    return replace(
        report,
        screen=lambda screen: [*report.screen(screen), *offer_rows(name, found)],
        code=FAILED if wrong else report.code,
    )


async def teams_report(folders: list[Path], *, name: str | None = None, check: bool = False) -> Report:
    """Returns each team with its roles, tools and data, or one; exit code 1 if a team or a file of it can't be used.

    The code of a team (`tools.py`) is run for a team that is named, and for all with `check`.
    """
    # these load the tools' libraries: 0.3 s for one command only
    from activities.files.file_cache import FileCache
    from activities.teams.team_files import TeamError, TeamFiles
    from supervision.planning.team_hints import team_hints

    files = TeamFiles(folders, FileCache(cache_dir()))
    usable: dict[str, Team] = {}
    data: dict[str, list[str]] = {}
    unread: dict[str, list[str]] = {}
    misnamed = [] if name else files.misnamed()
    broken = {folder.name: TeamError(ErrorKind.UNKNOWN_TEAM, f"{folder}: {_NO_NAME}") for folder in misnamed}
    names = [name] if name else files.names()
    unchecked = [] if name or check else [each for each in names if files.has_code(each)]
    for each in names:
        try:
            if each in unchecked:
                usable[each] = files.definition(each)
                continue
            loaded = await files.load(each)
            usable[each], data[each] = loaded.team, await loaded.toolbox.data()
            unread[each] = list(dict.fromkeys(await loaded.toolbox.problems()))
        except TeamError as error:
            broken[each] = error
    await files.close()
    listed: list[dict[str, Any]] = [
        {**team.model_dump(mode="json"), "error": None, "data": data.get(each, []), "unread": unread.get(each, [])}
        for each, team in usable.items()
    ]
    listed += [{"name": each, "error": safe_line(e.message, limits.ERROR_BYTES)} for each, e in broken.items()]
    notes = []
    for each, why in broken.items():
        lines = [f"{why.message.partition(': ')[0]}:", *why.problems] if len(why.problems) > 1 else [why.message]
        said = "\n  ".join(safe_line(line, limits.ERROR_BYTES) for line in lines)
        notes.append(f"team '{each}' can't be used: {said}")
    if unchecked:
        notes.append(f"tools.py is not run here: {hint('teams', '--check')} checks that of {', '.join(unchecked)}")
    rows: list[RenderableType] = []
    for each, team in usable.items():
        rows += _team_rows(team, team_hints(team))
        rows += _data_rows(data.get(each, []), whole=name is not None)
        rows += [indented(f"✘ {safe_line(problem, limits.ERROR_BYTES)}", 2, "red") for problem in unread.get(each, [])]
    return Report(listed, lambda _: rows, notes, code=FAILED if broken or any(unread.values()) else DONE)


def _team_rows(team: "Team", hints: list[str]) -> Iterator[RenderableType]:
    yield indented(f"{team.name}  {safe_line(team.description, _CELL)}".rstrip(), 0, "bold")
    for role in team.roles:
        mark = " (generalist)" if role.name == team.generalist else ""
        tools = f"team {role.team}" if role.team else ", ".join(role.tools) or "no tools"
        pool = f", pool {role.pool}" if role.pool else ""
        yield indented(f"{role.name}{mark}: {tools}{pool}", 2)
        yield indented(safe_line(role.description, _CELL), 6, "dim")
    for advice in hints:
        yield indented(f"hint: {safe_line(advice, limits.ERROR_BYTES)}", 2, "yellow")


def _data_rows(lines: list[str], *, whole: bool) -> Iterator[RenderableType]:
    """Yields what the tools of a team reach: how much of it, or line by line."""
    if whole:
        yield from (indented(safe_line(line, _CELL), 2) for line in lines)
    elif lines:
        tables = sum(line.startswith("table ") for line in lines)
        yield indented(f"data: {counted(tables, 'table')}, {counted(len(lines) - tables, 'document')}", 2)


async def new_team(folders: list[Path], name: str, data: list[Path]) -> int:
    """Writes a team over a copy of some files into the first folder of teams, or into `./teams`."""
    from activities.teams.team_files import TeamFiles

    if not is_name(name):
        raise CommandFailed(BAD_INPUT, f"'{name}' can't be a team: {_NO_NAME}")
    home, own = folders[0] if len(folders) > 1 else Path("teams").absolute(), len(folders) > 1
    folder = home / name
    if folder.exists():
        raise CommandFailed(FAILED, f"{folder} exists already: edit it, or choose another name")
    files = data_files(data)
    reports = await reports_on(files)
    kinds = {"tables": any(report.tables for report in reports), "documents": any(r.document for r in reports)}
    if not any(kinds.values()):
        raise CommandFailed(BAD_INPUT, f"nothing in {data[0]} can be read: {hint('inspect', str(data[0]))} says why")
    (folder / "data").mkdir(parents=True)
    for file, path in files:
        shutil.copyfile(path, folder / "data" / file.replace("/", "-"))
    roles = TeamFiles(folders).definition("files").roles
    (folder / "team.toml").write_text(_team_file(name, roles, kinds), encoding="utf-8")
    print_err(f"wrote {folder / 'team.toml'}, and {counted(len(files), 'file')} into {folder / 'data'}")
    if not own:
        print_err(f"teams are read from there after `export SUPERVISOR_TEAMS_DIR={quote(str(home))}`, for Workers, too")
    print_err(f"check it: {hint('teams', name)}")
    return DONE


def _team_file(name: str, roles: "list[Role]", kinds: dict[str, bool]) -> str:
    """Returns a team file with the roles of team `files` that have something to read."""
    tools = [tool for tool in _TOOLS if kinds.get(tool[2], True)]
    named = {tool for tool, _, _ in tools}
    taken = [role for role in roles if {"query_data", "search_documents"} & named & set(role.tools)]
    lines = [
        f"# Team {name}: a change of this file or of data/ counts from the next run on.",
        f'name = "{name}"',
        'description = "Answers questions from the tables and documents in data/."  # say what they are about',
        f'generalist = "{taken[-1].name}"  # takes subtasks whose role is unknown',
        "tools = [",
        *(
            f'  {{ name = "{tool}", uses = "{uses}"' + (f', options = {{ {kind} = "data/*" }}' if kind else "") + " },"
            for tool, uses, kind in tools
        ),
        "]",
    ]
    for role in taken:
        allowed = ", ".join(f'"{tool}"' for tool in role.tools if tool in named)
        lines += [
            "",
            "[[roles]]",
            f'name = "{role.name}"',
            f"description = {json.dumps(role.description)}  # the planner chooses by this",
            f"tools = [{allowed}]  # nothing else is ever run for this role",
            f"system_prompt = '''\n{role.system_prompt}'''",
        ]
    return "\n".join(lines) + "\n"


_TOOLS = (
    ("list_tables", "sql_tables", "tables"),
    ("query_data", "sql_query", "tables"),
    ("calculate", "calculator", ""),
    ("search_documents", "document_search", "documents"),
    ("read_document", "document_read", "documents"),
)
"""The tools of a new team: name, kind, and the option that names their files."""
