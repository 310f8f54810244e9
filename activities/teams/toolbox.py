"""The tools of a team.

Only this module runs them: it checks rights and arguments, and handles failures and limits.
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from pathlib import Path, PurePosixPath
from traceback import format_exception_only
from typing import Any, NamedTuple

from pydantic import ValidationError

from activities.bounded.child_processes import NotStarted
from activities.files.file_cache import FileCache
from activities.store.artifacts import ArtifactUnavailable
from activities.tools.documents import DocumentOptions, DocumentTools
from activities.tools.files import FolderFiles
from activities.tools.plain_tools import PLAIN
from activities.tools.provider_tools import ProviderOptions, ProviderTools
from activities.tools.secrets import Secrets
from activities.tools.sql.sql_tools import Database, QueryData, TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput, ToolSource
from activities.tools.web.web_tools import WebOptions, WebTools
from temporal_supervisor.supervision.agent import policy
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.prompt_marks import OWN_TOOLS
from temporal_supervisor.supervision.base.text import (
    NAME_SHOWN_BYTES,
    cap,
    clean,
    did_you_mean,
    one_line,
)
from temporal_supervisor.supervision.contract.base import StrictModel
from temporal_supervisor.supervision.contract.finding import Labels
from temporal_supervisor.supervision.contract.plan import NewRole
from temporal_supervisor.supervision.contract.request import describe_errors
from temporal_supervisor.supervision.contract.team import Role, ToolEntry, call_time
from temporal_supervisor.supervision.replies.loose_form import read_form

_FILE_NAME_BYTES = 200  # of an artifact: file systems take 255
# Of one tool result in the store: ten pages, as many as figures are looked up in.
TOOL_KEPT_CHARS = 200_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolRun(ToolOutput):
    """The outcome of a tool call: `text` is cleaned and capped.

    The model sees its beginning, also of an error.
    """

    is_error: bool = False


class Toolbox:
    """Tools by name. The toolbox, not the model, decides which of them a role may use."""

    def __init__(self, tools: Iterable[Tool[Any]], sources: Sequence[ToolSource] = ()) -> None:
        """Raises ValueError if a name is invalid or taken."""
        self._sources = sources
        self._tools: dict[str, Tool[Any]] = {}
        for tool in tools:
            problem = _problem(tool)
            if not problem and tool.name in self._tools:
                problem = "two tools have this name"
            if problem:
                raise ValueError(f"tools.{tool.name}: {problem}")
            self._tools[tool.name] = tool

    async def problems(self) -> list[str]:
        """Returns the files of the team that cannot be read, with the reasons."""
        return [problem for source in self._sources for problem in await source.problems()]

    async def data(self) -> list[str]:
        """Returns a line for each table and document of the team."""
        lines: dict[str, str] = {}
        catalogues = [tool.catalogue for tool in self._tools.values()]
        for read in dict.fromkeys(filter(None, catalogues)):  # tools over the same data share one
            lines |= await read(None)
        return list(lines.values())

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self._tools)

    def tools_named(self, names: Iterable[str]) -> list[Tool[Any]]:
        """Returns the known tools among some names, without duplicates."""
        return [self._tools[name] for name in dict.fromkeys(names) if name in self._tools]

    def get(self, name: str) -> Tool[Any] | None:
        """Returns the tool of that name; None if there is none."""
        return self._tools.get(name)

    def queries_tables(self, role: Role) -> bool:
        """True if the role has a tool that queries tables."""
        return bool(self.queries(role))

    def queries(self, role: Role) -> list[str]:
        """Returns the names of the role's tools that query tables."""
        tools = self.tools_named(role.tools)
        return [tool.name for tool in tools if tool.arguments is QueryData]

    def with_data_of_others(self) -> "Toolbox":
        """Returns the tools for a run with others' data: those that read it are untrusted."""
        tools = []
        for tool in self._tools.values():
            tools.append(replace(tool, returns="untrusted") if tool.reads_data else tool)
        return Toolbox(tools, self._sources)

    def labels_of_data(self) -> Labels:
        """Returns the labels of the data that a brief shows: attachments and items."""
        tools = [tool for tool in self._tools.values() if tool.reads_attachments or tool.catalogue]
        labels = [policy.labels_of(tool, "data", "the brief") for tool in tools]
        return reduce(or_, labels, Labels(private=True))

    def definitions(self, names: list[str], *, attachments: bool = True) -> list[dict[str, Any]]:
        """Returns name, description and input_schema of some tools, for the model.

        Unknown names are left out, and without `attachments` the tool that only reads attachments.
        """
        tools = self.tools_named(names)
        if not attachments:
            tools = [tool for tool in tools if tool.arguments is not PLAIN["attachment"].arguments]
        return [tool.provided or _definition(tool) for tool in tools]

    def withheld(self, role: Role, brief: Labels, read: Labels) -> list[str]:
        """Returns the role's provider tools that a conversation with these labels may not use."""
        withheld = []
        for tool in self.tools_named(role.tools):
            if tool.provided and not policy.is_offered(tool, brief, read, tool.provided):
                withheld.append(tool.name)
        return withheld

    def labels_of(self, role: Role, calls: Iterable[dict[str, Any]], place: str = "") -> Labels:
        """Returns the labels of the outputs of a role's calls."""
        labels = Labels()
        for call in calls:
            tool = self._tools.get(str(call.get("name")))
            if tool is not None and tool.name in role.tools:
                source = f"{tool.name} {preview(call.get('input'))}"
                labels |= policy.labels_of(tool, source, place)
        return labels

    def combination_problems(self, roles: Iterable[Role | NewRole]) -> list[str]:
        """Returns the problems of roles with tools that no role may have together."""
        problems = []
        for role in roles:
            tools = {tool.name: tool for tool in self.tools_named(role.tools)}
            why = policy.why_not_together(tools)
            if why:
                problems.append(f"roles.{role.name}.tools: {why}")
        return problems

    async def run(self, role: Role, name: str, arguments: object, context: ToolContext) -> ToolRun:
        """Runs one call for `role`; a failure becomes an error result.

        Raises ArtifactUnavailable and NotStarted.
        """
        tool = self._tools.get(name) if name in role.tools else None
        if tool is None:
            shown = one_line(clean(name), NAME_SHOWN_BYTES)
            log.warning(
                "refused tool call: role=%s tool=%s registered=%s",
                role.name,
                shown,
                name in self._tools,
            )
            allowed = ", ".join(role.tools) or "none"
            refused = f"The tool '{shown}' is not available to this role."
            return _error(f"{refused} Its tools are: {allowed}")
        try:
            parsed = _parse_arguments(tool, arguments)
        except ValidationError as error:
            return _error(f"Wrong arguments: {complaints(error)}")

        pinned = replace(context, pinned=tool.pinned)
        task = asyncio.create_task(_run_guarded(tool, parsed, pinned))
        timeout = call_time(tool.timeout_seconds).total_seconds()
        try:
            await asyncio.wait({task}, timeout=timeout)
        finally:
            task.cancel()  # does nothing to a finished task; a tool that ignores it is left behind
        if not task.done():
            return _error(f"The tool did not answer within {timeout:g} s.")
        if task.cancelled():
            return _error("The tool ended the call without a result.")
        return task.result()


def _problem(tool: Tool[Any]) -> str:
    """Returns the reason why no role can have a tool; empty if it is usable."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name):  # what providers accept
        return "a name is up to 64 letters, digits, _ and -"
    if tool.name in OWN_TOOLS:
        return "this is the name of a tool that every role has"
    if tool.provided and tool.approve == "always":
        return "the provider calls it, so no person can approve a call of it"
    return ""


def _definition(tool: Tool[Any]) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema(),
    }


def _parse_arguments(tool: Tool[Any], arguments: object) -> Any:
    """Returns the checked arguments of a call. Raises ValidationError.

    Those of an author's or a server's tool are checked in its own thread or process, because that
    may take its time.
    """
    if tool.own or tool.pinned:
        return arguments
    # What a person approves, and what has effects, runs as it is written.
    if tool.effects == "read" and tool.approve in (None, "never"):
        return read_form(tool.arguments, arguments)
    return tool.arguments.model_validate(arguments)


def preview(arguments: object) -> str:
    """Returns the arguments of a call as JSON, a single one as its value."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        return str(next(iter(arguments.values())))
    return json.dumps(arguments, ensure_ascii=False)


def complaints(error: ValidationError) -> str:
    """Returns the problems of a model's fields, each with the name of the field."""
    return describe_errors(error).removeprefix("request: ")


async def _run_guarded(tool: Tool[Any], arguments: Any, context: ToolContext) -> ToolRun:
    """Runs the tool. Catches SystemExit, too, inside the task: it would end the process."""
    try:
        return _as_tool_run(await tool.run(arguments, context))
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except (ArtifactUnavailable, NotStarted):  # no fault of the tool: the call is made again
        raise
    except ToolMisuse as misuse:
        return _error(str(misuse))
    except BaseException as error:
        log.warning("tool %s failed", tool.name, exc_info=error)
        # An exception's own text is foreign code, too. Indented lines are of the source that a
        # SyntaxError quotes.
        what = next(line for line in format_exception_only(error) if not line.startswith(" "))
        return _error(one_line(clean(what), limits.SENTENCE_BYTES))


def _as_tool_run(output: object) -> ToolRun:
    """Returns the cleaned and capped result of a tool. Raises ValueError and TypeError."""
    if not isinstance(output, ToolOutput):
        output = ToolOutput(_as_text(output))
    for artifact in output.artifacts:
        size = len(artifact.data)
        if size > limits.ARTIFACT_BYTES:
            most = limits.ARTIFACT_BYTES
            raise ValueError(f"the artifact has {size} bytes, at most {most} are kept")
    sources = map(str, output.sources[: limits.FINDING_SOURCES])
    readings = output.readings[: limits.TOOL_READINGS]
    return ToolRun(
        cap(output.text, TOOL_KEPT_CHARS),
        sources=[one_line(clean(source), limits.SOURCE_BYTES) for source in sources],
        artifacts=[replace(new, name=_file_name(new.name)) for new in output.artifacts],
        asks=output.asks,
        choices=output.choices,
        readings=[one_line(clean(reading), limits.SOURCE_BYTES) for reading in readings],
        facts=output.facts,
    )


def _file_name(text: str) -> str:
    path = one_line(clean(text), _FILE_NAME_BYTES).replace("\\", "/")
    return PurePosixPath(path).name or "artifact"


def _as_text(output: object) -> str:
    if isinstance(output, dict | list):
        return json.dumps(output, ensure_ascii=False, default=str)
    if isinstance(output, str | int | float):
        return str(output)
    allowed = "a ToolOutput, a text, a number, a list or a dict"
    raise TypeError(f"a tool returns {allowed}; this one returned {type(output).__name__}")


def _error(text: str) -> ToolRun:
    return ToolRun(cap(text, limits.TOOL_OUTPUT_CHARS), is_error=True)


class _PlainTools(ToolSource):
    """Tools that read no files and have no options. `tools` maps the name of each to its kind."""

    def __init__(self, data: object, tools: dict[str, str], options: StrictModel) -> None:
        self._tools = tools

    async def open(self) -> list[Tool[Any]]:
        """Returns the tools under their names in the team."""
        return [replace(PLAIN[kind], name=name) for name, kind in self._tools.items()]


class _ToolNames(ToolSource):
    """The names of tools over files, for a process that does not read the files of teams."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    async def open(self) -> list[Tool[Any]]:
        """Returns tools that only refuse."""
        return [Tool(name, "", Arguments, _refuse) for name in self._names]


def _refuse(arguments: Arguments, context: ToolContext) -> None:
    raise ToolMisuse("This process does not read the files of teams.")


class Kind(NamedTuple):
    """A kind of tool that `uses` in a team file may name.

    `source` makes such tools of their data, their kinds by name, and their options. `files` is the
    option for the files that they read, empty if they read none.
    """

    source: Callable[[Any, dict[str, str], Any], ToolSource]
    options: type[StrictModel] = StrictModel
    files: str = ""


KINDS = {
    **dict.fromkeys(PLAIN, Kind(_PlainTools)),
    "document_read": Kind(DocumentTools, DocumentOptions, "documents"),
    "document_search": Kind(DocumentTools, DocumentOptions, "documents"),
    "provider_web_fetch": Kind(ProviderTools, ProviderOptions),
    "provider_web_search": Kind(ProviderTools, ProviderOptions),
    "sql_query": Kind(TableTools, TableOptions, "tables"),
    "sql_tables": Kind(TableTools, TableOptions, "tables"),
    "web_fetch": Kind(WebTools, WebOptions),
}


def _grouped(entries: list[ToolEntry]) -> dict[tuple[Kind, str], dict[str, ToolEntry]]:
    """Returns the tools that share a source, by kind and by the files or database that they read.

    A tool that reads neither has a source of its own. Those of unknown kinds are left out.
    """
    groups: dict[tuple[Kind, str], dict[str, ToolEntry]] = {}
    for entry in entries:
        kind = KINDS.get(entry.uses)
        if kind is None:
            continue
        shared = entry.name
        if kind.files:
            shared = str(entry.options.get("url") or entry.options.get(kind.files, ""))
        groups.setdefault((kind, shared), {})[entry.name] = entry
    return groups


def _source_of(
    kind: Kind,
    entries: dict[str, ToolEntry],
    files: FolderFiles | None,
    secrets: Secrets,
) -> ToolSource:
    """Returns the source of some tools over the same data; without `files` only their names.

    Raises ValidationError for their options, and ValueError for a database without a driver.
    """
    given = reduce(or_, (entry.options for entry in entries.values()))
    options: Any = kind.options.model_validate(given)
    kinds = {name: entry.uses for name, entry in entries.items()}
    if isinstance(options, TableOptions) and options.database:
        return kind.source(Database(options.url, secrets), kinds, options)
    if files is None:
        return _ToolNames(kinds)
    return kind.source(files, kinds, options)


async def open_toolbox(
    entries: list[ToolEntry],
    folder: Path,
    others: list[tuple[str, ToolSource]],
    cache: FileCache,
    secrets: Secrets | None = None,
    *,
    data: bool = True,
) -> tuple[Toolbox, list[str]]:
    """Returns the tools of a team, those of `others` first, and the problems of unusable ones.

    `others` are sources that name their tools themselves, each with its place for messages. Tools
    over the same files, or the same database, share a source; if several set an option, the last
    value counts. Without `data` no file is read, and tools over files are only names.
    """
    opened: list[ToolSource] = []
    tools: list[Tool[Any]] = []
    problems: list[str] = []

    async def open_source(where: str, source: ToolSource) -> None:
        try:
            tools.extend(await source.open())
            opened.append(source)
        except (ValueError, OSError) as error:
            problems.append(f"{where}: {error}")

    for where, source in others:
        await open_source(where, source)

    for entry in entries:
        if entry.uses not in KINDS:
            meant = f"{did_you_mean(entry.uses, KINDS)}; kinds are: {', '.join(KINDS)}"
            problems.append(f"tools.{entry.name}: there is no kind '{entry.uses}'{meant}")
    for (kind, files), group in _grouped(entries).items():
        where = ", ".join(f"tools.{name}" for name in group)
        read = FolderFiles(folder, files, cache) if data or not kind.files else None
        try:
            await open_source(where, _source_of(kind, group, read, secrets or Secrets()))
        except ValidationError as error:
            problems.append(f"{where}.options: {complaints(error)}")
        except ValueError as error:
            problems.append(f"{where}: {error}")

    fields = {entry.name: entry.as_tool_fields for entry in entries}
    try:
        named = [replace(tool, **fields.get(tool.name, {})) for tool in tools]
        return Toolbox(named, opened), problems
    except ValueError as error:
        return Toolbox([], opened), [*problems, str(error)]
