"""The tools of a team. The one place that runs them handles rights, arguments, failures and limits."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from activities.tools.attachment import read_attachment
from activities.tools.calculator import calculator
from activities.tools.document_format import format_document
from activities.tools.documents import read_document, search_documents
from activities.tools.sql.sql_tools import list_tables, query_data
from activities.tools.tool import NewArtifact, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.prompt_marks import OWN_TOOLS
from supervision.base.text import NAME_SHOWN_BYTES, cap, clean, did_you_mean, one_line
from supervision.contract.request import describe_errors
from supervision.contract.team import Role, ToolEntry

_FILE_NAME_BYTES = 200  # of an artifact: file systems take 255
TOOL_KEPT_CHARS = 200_000  # of one tool result in the store: ten pages, as many as figures are looked up in
TOOL_SOURCES = 50  # sources of one tool result: they travel in history

ToolFactory = Callable[[str, dict[str, Any], Path], Tool[Any]]
"""(tool name, options of the team file, folder of the team file) -> tool; ValueError on bad options."""

KINDS: dict[str, ToolFactory] = {
    "attachment": read_attachment,
    "calculator": calculator,
    "document_format": format_document,
    "document_read": read_document,
    "document_search": search_documents,
    "sql_query": query_data,
    "sql_tables": list_tables,
}


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolRun:
    """The outcome of a tool call: `text` is cleaned and capped; its beginning goes to the model, errors too."""

    text: str
    is_error: bool = False
    sources: list[str] = field(default_factory=list)
    artifacts: list[NewArtifact] = field(default_factory=list)


class Toolbox:
    """Tools by name. The toolbox, not the model, decides which of them a role may use."""

    def __init__(self, tools: Iterable[Tool[Any]]) -> None:
        """Raises ValueError if a name is taken or not possible."""
        self._tools: dict[str, Tool[Any]] = {}
        for tool in tools:
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name):  # what providers accept
                raise ValueError(f"tools.{tool.name}: a name is up to 64 letters, digits, _ and -")
            if tool.name in OWN_TOOLS:
                raise ValueError(f"tools.{tool.name}: this is the name of a tool that every role has")
            if tool.name in self._tools:
                raise ValueError(f"tools.{tool.name}: two tools have this name")
            self._tools[tool.name] = tool

    def names(self) -> list[str]:
        """Returns all names, sorted."""
        return sorted(self._tools)

    def get(self, name: str) -> Tool[Any] | None:
        """Returns the tool of that name, None if there is none."""
        return self._tools.get(name)

    def definitions(self, names: list[str]) -> list[dict[str, Any]]:
        """Returns name, description and input_schema of these tools for the model; unknown names are left out."""
        tools = [self._tools[name] for name in dict.fromkeys(names) if name in self._tools]
        return [{"name": tool.name, "description": tool.description, "input_schema": tool.schema()} for tool in tools]

    def waits(self, names: list[str]) -> bool:
        """True if a call of one of these tools may take longer than providers cache a conversation for."""
        return any(self._tools[name].waits for name in names if name in self._tools)

    async def run(self, role: Role, name: str, arguments: object, context: ToolContext) -> ToolRun:
        """Runs one call for `role`. Returns every failure as an error result; raises only if it is cancelled."""
        tool = self._tools.get(name) if name in role.tools else None
        if tool is None:
            shown = one_line(clean(name), NAME_SHOWN_BYTES)
            log.warning("refused tool call: role=%s tool=%s registered=%s", role.name, shown, name in self._tools)
            allowed = ", ".join(role.tools) or "none"
            return ToolRun(f"the tool '{shown}' is not available to this role; its tools are: {allowed}", is_error=True)
        try:  # an own tool checks them in its thread: their model may hold code of its author
            parsed = arguments if tool.own else tool.arguments.model_validate(arguments)
        except ValidationError as error:
            return _error(f"wrong arguments: {complaints(error)}")
        task = asyncio.create_task(_guarded(tool, parsed, context))
        timeout = limits.TOOL_TIMEOUT
        try:
            await asyncio.wait({task}, timeout=timeout.total_seconds())
        finally:
            task.cancel()  # does nothing to a finished task; a tool that ignores it is left behind
        if not task.done():
            return _error(f"the tool did not answer within {timeout.total_seconds():g} s")
        if task.cancelled():
            return _error("the tool gave up")
        return task.result()


def complaints(error: ValidationError, value: object = None) -> str:
    """Returns the problems of fields of `value` by name; problems of the whole have no name."""
    return describe_errors(error, value=value).removeprefix("request: ")


async def _guarded(tool: Tool[Any], arguments: Any, context: ToolContext) -> ToolRun:
    """Runs the tool; catches SystemExit and its like inside the task: they would end the whole process."""
    try:
        return _checked(await tool.run(arguments, context))
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except ToolMisuse as misuse:
        return _error(str(misuse))
    except BaseException as error:
        log.warning("tool %s failed", tool.name, exc_info=error)
        return _error(f"{type(error).__name__}: {one_line(clean(_message(error)), limits.SENTENCE_BYTES)}")


def _checked(output: object) -> ToolRun:
    if isinstance(output, str):
        output = ToolOutput(output)
    if not isinstance(output, ToolOutput):
        raise TypeError(f"a tool returns a ToolOutput or a str, this one returned {type(output).__name__}")
    text: str | bytes = output.text  # an author's own tool may return the bytes that it read
    if isinstance(text, bytes):
        text = text[: 4 * TOOL_KEPT_CHARS].decode("utf-8", "replace")
    sources = [one_line(clean(str(source)), limits.SOURCE_BYTES) for source in output.sources[:TOOL_SOURCES]]
    for artifact in output.artifacts:
        if len(artifact.data) > limits.ARTIFACT_BYTES:
            raise ValueError(f"the artifact has {len(artifact.data)} bytes, at most {limits.ARTIFACT_BYTES} are kept")
    artifacts = [NewArtifact(_file_name(new.name), new.media_type, new.data) for new in output.artifacts]
    return ToolRun(cap(text, TOOL_KEPT_CHARS), sources=sources, artifacts=artifacts)


def _error(text: str) -> ToolRun:
    return ToolRun(cap(text, limits.TOOL_OUTPUT_CHARS), is_error=True)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an exception's own text is foreign code, too
        return "no message"


def _file_name(name: str) -> str:
    return PurePosixPath(one_line(clean(name), _FILE_NAME_BYTES).replace("\\", "/")).name or "artifact"


def set_up_tools(entries: Iterable[ToolEntry], folder: Path) -> tuple[list[Tool[Any]], list[str]]:
    """Returns the tools that a team file sets up in `folder`, and the problem of each that could not be."""
    tools, problems = list[Tool[Any]](), list[str]()
    for entry in entries:
        try:
            tools.append(_set_up(entry, folder))
        except ValueError as error:
            problems.append(str(error))
    return tools, problems


def _set_up(entry: ToolEntry, folder: Path) -> Tool[Any]:
    factory = KINDS.get(entry.uses)
    if factory is None:
        kinds = ", ".join(sorted(KINDS))
        raise ValueError(
            f"tools.{entry.name}: there is no kind '{entry.uses}'{did_you_mean(entry.uses, KINDS)}; kinds are: {kinds}"
        )
    try:
        return replace(factory(entry.name, entry.options, folder), inline=entry.inline)
    except ValidationError as error:
        raise ValueError(f"tools.{entry.name}.options: {complaints(error)}") from error
    except ValueError as error:
        raise ValueError(f"tools.{entry.name}: {error}") from error
