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
from temporal_supervisor.supervision.base.text import NAME_SHOWN_BYTES, cap, clean, did_you_mean, one_line
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
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name):  # what providers accept
                raise ValueError(f"tools.{tool.name}: a name is up to 64 letters, digits, _ and -")
            if tool.name in OWN_TOOLS:
                raise ValueError(f"tools.{tool.name}: this is the name of a tool that every role has")
            if tool.provided and tool.approve == "always":
                raise ValueError(f"tools.{tool.name}: the provider calls it, so no person can approve a call of it")
            if tool.name in self._tools:
                raise ValueError(f"tools.{tool.name}: two tools have this name")
            self._tools[tool.name] = tool

    async def problems(self) -> list[str]:
        """Returns the files of the team that cannot be read, with the reasons."""
        return [problem for source in self._sources for problem in await source.problems()]

    async def data(self) -> list[str]:
        """Returns a line for each table and document of the team."""
        lines: dict[str, str] = {}
        for read in dict.fromkeys(tool.catalogue for tool in self._tools.values() if tool.catalogue):
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
        """Returns the tools for a run with others' data: tools that read it return untrusted text."""
        read = [replace(tool, returns="untrusted") if tool.reads_data else tool for tool in self._tools.values()]
        return Toolbox(read, self._sources)

    def labels_of_data(self) -> Labels:
        """Returns the labels of the data that a brief shows: attachments and items."""
        tools = [tool for tool in self._tools.values() if tool.reads_attachments or tool.catalogue]
        labels = [policy.labels_of(tool, "data", "the brief") for tool in tools]
        return reduce(or_, labels, Labels(private=True))

    def definitions(self, names: list[str], *, attachments: bool = True) -> list[dict[str, Any]]:
        """Returns name, description and input_schema of some tools, for the model.

        Unknown names are left out, and without `attachments` the tool that only reads attachments.
        """
        return [
            tool.provided or {"name": tool.name, "description": tool.description, "input_schema": tool.schema()}
            for tool in self.tools_named(names)
            if attachments or tool.arguments is not PLAIN["attachment"].arguments
        ]

    def withheld(self, role: Role, brief: Labels, read: Labels) -> list[str]:
        """Returns the role's provider tools that a conversation with these labels may not use."""
        tools = [tool for tool in self.tools_named(role.tools) if tool.provided]
        return [tool.name for tool in tools if not policy.is_offered(tool, brief, read, tool.provided)]

    def labels_of(self, role: Role, calls: Iterable[dict[str, Any]], place: str = "") -> Labels:
        """Returns the labels of the outputs of a role's calls."""
        used = [
            (call, tool)
            for call in calls
            for tool in self.tools_named([str(call.get("name"))])
            if tool.name in role.tools
        ]
        shown = [policy.labels_of(tool, f"{tool.name} {preview(call.get('input'))}", place) for call, tool in used]
        return reduce(or_, shown, Labels())

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
            log.warning("refused tool call: role=%s tool=%s registered=%s", role.name, shown, name in self._tools)
            allowed = ", ".join(role.tools) or "none"
            return _error(f"The tool '{shown}' is not available to this role. Its tools are: {allowed}")
        # The thread of an author's tool, or the process of a server's, checks them: that may take
        # its time.
        try:
            # What a person approves, and what has effects, runs as it is written.
            loosely = tool.effects == "read" and tool.approve in (None, "never")
            read = read_form if loosely else lambda form, given: form.model_validate(given)
            parsed = arguments if tool.own or tool.pinned else read(tool.arguments, arguments)
        except ValidationError as error:
            return _error(f"Wrong arguments: {complaints(error)}")
        task = asyncio.create_task(_run_guarded(tool, parsed, replace(context, pinned=tool.pinned)))
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
    except (asyncio.CancelledError, GeneratorExit, ArtifactUnavailable, NotStarted):  # the last two say nothing of it
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
    if not isinstance(output, ToolOutput):
        output = ToolOutput(_as_text(output))
    sources = [one_line(clean(str(source)), limits.SOURCE_BYTES) for source in output.sources[: limits.FINDING_SOURCES]]
    for artifact in output.artifacts:
        if len(artifact.data) > limits.ARTIFACT_BYTES:
            raise ValueError(f"the artifact has {len(artifact.data)} bytes, at most {limits.ARTIFACT_BYTES} are kept")
    artifacts = [replace(new, name=_file_name(new.name)) for new in output.artifacts]
    readings = [one_line(clean(each), limits.SOURCE_BYTES) for each in output.readings[: limits.TOOL_READINGS]]
    return ToolRun(
        cap(output.text, TOOL_KEPT_CHARS),
        sources=sources,
        artifacts=artifacts,
        asks=output.asks,
        choices=output.choices,
        readings=readings,
        facts=output.facts,
    )


def _file_name(text: str) -> str:
    return PurePosixPath(one_line(clean(text), _FILE_NAME_BYTES).replace("\\", "/")).name or "artifact"


def _as_text(output: object) -> str:
    if isinstance(output, dict | list):
        return json.dumps(output, ensure_ascii=False, default=str)
    if isinstance(output, str | int | float):
        return str(output)
    kind = type(output).__name__
    raise TypeError(f"a tool returns a ToolOutput, a text, a number, a list or a dict; this one returned {kind}")


def _error(text: str) -> ToolRun:
    return ToolRun(cap(text, limits.TOOL_OUTPUT_CHARS), is_error=True)


class Kind(NamedTuple):
    """A kind of tool that `uses` in a team file may name.

    `files` is the option for the files that the tools read. A kind without a `source` is a single
    tool that reads no files.
    """

    source: Callable[[Any, dict[str, str], Any], ToolSource] | None = None
    options: type[StrictModel] = StrictModel
    files: str = ""


KINDS = {
    **dict.fromkeys(PLAIN, Kind()),
    "document_read": Kind(DocumentTools, DocumentOptions, "documents"),
    "document_search": Kind(DocumentTools, DocumentOptions, "documents"),
    "provider_web_fetch": Kind(ProviderTools, ProviderOptions),
    "provider_web_search": Kind(ProviderTools, ProviderOptions),
    "sql_query": Kind(TableTools, TableOptions, "tables"),
    "sql_tables": Kind(TableTools, TableOptions, "tables"),
    "web_fetch": Kind(WebTools, WebOptions),
}


def _unread(arguments: Arguments, context: ToolContext) -> None:
    raise ToolMisuse("This process does not read the files of teams.")


def _grouped(entries: list[ToolEntry], problems: list[str]) -> dict[tuple[Kind, str], dict[str, ToolEntry]]:
    """Returns the tools that share a source, by kind and by the files that they read.

    Adds a problem for an unknown kind.
    """
    groups = dict[tuple[Kind, str], dict[str, ToolEntry]]()
    for entry in entries:
        if kind := KINDS.get(entry.uses):
            read = entry.options.get("url") or entry.options.get(kind.files, "") if kind.files else entry.name
            groups.setdefault((kind, str(read)), {})[entry.name] = entry
        else:
            meant = f"{did_you_mean(entry.uses, KINDS)}; kinds are: {', '.join(KINDS)}"
            problems.append(f"tools.{entry.name}: there is no kind '{entry.uses}'{meant}")
    return groups


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
    opened, tools, problems = list[ToolSource](), list[Tool[Any]](), list[str]()

    async def open_source(where: str, source: ToolSource) -> None:
        try:
            tools.extend(await source.open())
            opened.append(source)
        except (ValueError, OSError) as error:
            problems.append(f"{where}: {error}")

    for where, source in others:
        await open_source(where, source)
    for (kind, files), group in _grouped(entries, problems).items():
        where = ", ".join(f"tools.{name}" for name in group)
        kinds = {name: entry.uses for name, entry in group.items()}
        try:
            options: Any = kind.options.model_validate(
                {k: v for entry in group.values() for k, v in entry.options.items()}
            )
            of_database = isinstance(options, TableOptions) and options.database
            read = Database(options.url, secrets or Secrets()) if of_database else FolderFiles(folder, files, cache)
            if kind.source is None:
                tools += [replace(PLAIN[uses], name=name) for name, uses in kinds.items()]
            elif kind.files and not data and not of_database:
                tools += [Tool(name, "", Arguments, _unread) for name in kinds]
            else:
                await open_source(where, kind.source(read, kinds, options))
        except ValidationError as error:
            problems.append(f"{where}.options: {complaints(error)}")
        except ValueError as error:
            problems.append(f"{where}: {error}")
    said = {each.name: each.as_tool_fields for each in entries}
    try:
        return Toolbox([replace(tool, **said.get(tool.name, {})) for tool in tools], opened), problems
    except ValueError as error:
        return Toolbox([], opened), [*problems, str(error)]
