"""New teams: over the user's own files, or as a copy of a bundled one."""

import json
import shutil
from pathlib import Path
from shlex import quote

from activities.teams.team_files import TeamFiles
from temporal_supervisor.console.base.command import BAD_INPUT, DONE, FAILED, CommandFailed, hint
from temporal_supervisor.console.base.terminal import counted, print_err, safe_line
from temporal_supervisor.console.run.described_files import reports_on
from temporal_supervisor.console.run.request_options import data_files
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.team import NAME_RULE, Role, Team, is_name


async def new_team(folders: list[Path], name: str, data: list[Path]) -> int:
    """Writes a team with a copy of the files in `data`.

    It goes into the first team folder, or into `./teams`.
    """
    if not is_name(name):
        raise CommandFailed(BAD_INPUT, f"'{name}' can't be a team: a name is {NAME_RULE}")
    folder = _new_folder(folders, name)
    found = data_files(data)
    reports = await reports_on(found)
    kinds = {
        "tables": any(report.tables for report in reports),
        "documents": any(report.document for report in reports),
    }
    if not any(kinds.values()):
        inspect = hint("inspect", str(data[0]))
        raise CommandFailed(BAD_INPUT, f"nothing in {data[0]} can be read: {inspect} says why")

    files = [file for file in found if not file.problem]
    for file in files:
        copy = folder / "data" / file.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.path, copy)
    for file in found:
        if file.problem:
            print_err(f"✘ {safe_line(file.name, limits.LINE_BYTES)} is left out: {file.problem}")
    content = _team_file(name, TeamFiles(folders).definition("files"), kinds)
    (folder / "team.toml").write_text(content, encoding="utf-8")
    copied = f"{counted(len(files), 'file')} into {folder / 'data'}"
    print_err(f"wrote {folder / 'team.toml'}, and {copied}")
    _tell_place(folders, name)
    return DONE


def copy_team(folders: list[Path], name: str) -> int:
    """Copies a team with the teams that its roles use.

    They go into the first team folder, or into `./teams`.
    """
    files = TeamFiles(folders)
    taken = [files.definition(name).name]
    for team in taken:  # which grows by the teams inside
        for role in files.definition(team).roles:
            if role.team and role.team not in taken:
                taken.append(files.definition(role.team).name)
    copies = {team: _new_folder(folders, team) for team in taken}
    for each, folder in copies.items():
        shutil.copytree(files.folder(each), folder, ignore=shutil.ignore_patterns("__pycache__"))
        print_err(f"wrote {folder}")
    _tell_place(folders, name)
    return DONE


def _new_folder(folders: list[Path], name: str) -> Path:
    """Returns the folder for a new team. Raises CommandFailed if it exists."""
    folder = _teams_folder(folders) / name
    if folder.exists():
        raise CommandFailed(FAILED, f"{folder} exists already: edit it, or choose another name")
    return folder


def _teams_folder(folders: list[Path]) -> Path:
    """Returns the folder for the user's own teams, by default `./teams`."""
    return folders[0] if len(folders) > 1 else Path("teams").absolute()


def _tell_place(folders: list[Path], name: str) -> None:
    """Prints the command that checks a new team, and a variable for its folder if needed."""
    if len(folders) == 1:
        home = quote(str(_teams_folder(folders)))
        export = f"export SUPERVISOR_TEAMS_DIR={home}"
        print_err(f"teams are read from there after `{export}`, for Workers, too")
    print_err(f"check it: {hint('teams', name)}")


_KINDS = {
    "sql_tables": "tables",
    "sql_query": "tables",
    "document_search": "documents",
    "document_read": "documents",
}
"""The tools that read files, by their names in the file of a team: the option for their files."""


def _team_file(name: str, files: Team, kinds: dict[str, bool]) -> str:
    """Returns the team file for data of these kinds, based on the bundled team `files`."""
    kind_of = {tool.name: _KINDS.get(tool.uses, "") for tool in files.tools}
    taken: list[Role] = []
    used: set[str] = set()
    for role in files.roles:
        if any(kinds.get(kind_of[tool]) for tool in role.tools):
            taken.append(role)
            used.update(tool for tool in role.tools if kinds.get(kind_of[tool], True))
    about = "Answers questions from the tables and documents in data/."
    lines = [
        f"# Team {name}: a change of this file or of data/ counts from the next run on.",
        f'name = "{name}"',
        f'description = "{about}"  # say what they are about',
        f'generalist = "{taken[-1].name}"  # takes subtasks whose role is unknown',
    ]
    if len(taken) > 1:
        lines.append("share_tools = true  # both roles compute")
    lines.append("tools = [")
    for tool in files.tools:
        if tool.name in used:
            kind = kind_of[tool.name]
            reads = f', options = {{ {kind} = "data/**/*" }}' if kind in kinds else ""
            lines.append(f'  {{ name = "{tool.name}", uses = "{tool.uses}"{reads} }},')
    lines.append("]")
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
