"""Tools: the base of all of them, and the decorator that makes one of a plain function.

    @tool
    def find_books(title: Annotated[str, Field(description="A word of the title.")]) -> list[str]:
        \"\"\"Finds books of the library by a word of their title.\"\"\"
        return [book for book in BOOKS if title.lower() in book.lower()]

The model sees name, description and the arguments' schema. ToolMisuse goes back to it as advice,
any other exception as the name and first line of the error. The Worker cleans and caps the output.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, create_model

from temporal_supervisor.supervision.agent.pinned import Pinned
from temporal_supervisor.supervision.agent.policy import ToolWords
from temporal_supervisor.supervision.base.text import clean
from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.contract.team import Approval, Effects, Reads, Returns, Targets
from temporal_supervisor.supervision.reuse.recipes import Stays

_DESCRIPTION_CHARS = 4000  # of an MCP server's tool: a page that each turn pays for


class Arguments(BaseModel):
    """The base class of tools' arguments; unknown arguments are rejected.

    So the model learns of its mistake.
    """

    model_config = ConfigDict(extra="forbid")


A = TypeVar("A", bound=Arguments)


class ToolMisuse(Exception):
    """The model used a tool wrongly; the message tells the model what to do instead."""


@dataclass(frozen=True)
class NewArtifact:
    """Content that a tool made for the user."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class ToolOutput:
    """The output of a tool: `text` for the model, `sources` for the finding.

    `readings` describe how texts in a file were read, for people who check a figure. If it `asks`,
    the call is not done: the text is a question to a person, and the call is repeated with the
    reply under that key. `choices` are suggested replies. `facts` are those of a query's result,
    for the checks of a finding.
    """

    text: str
    sources: list[str] = field(default_factory=list)
    artifacts: list[NewArtifact] = field(default_factory=list)
    asks: str = ""
    choices: list[str] = field(default_factory=list)
    readings: list[str] = field(default_factory=list)
    facts: QueryFacts | None = None


AskOnce = Callable[[str, Callable[[], Awaitable[ToolOutput]]], Awaitable[ToolOutput]]
"""Returns the output for a key that the run has got before, else what the function returns."""


@dataclass(frozen=True)
class ToolContext:
    """The part of a run that a tool sees.

    The `idempotency_key` of a call is the same in all its attempts. `attachments` are those of the
    subtask. `files` are the files that the user gave to the run as data, `pinned` is the definition
    of an MCP server's tool. `brief` returns the text of the subtask's brief, None if untrusted text
    had a part in it. `replies` are what people replied to earlier attempts at the same call, by the
    key of what it asked. `links` returns the URLs that may be links in what the model writes.
    `once` keeps what was asked outside: see `activities.agent.outside_answers`.
    """

    attachments: dict[str, Callable[[], Awaitable[str]]] = field(default_factory=dict)
    idempotency_key: str = ""
    run_id: str = ""
    files: Any = None
    pinned: Pinned | None = None
    brief: Callable[[], Awaitable[str | None]] | None = None
    replies: dict[str, str] = field(default_factory=dict)
    links: Callable[[], Awaitable[set[str]]] | None = None
    once: AskOnce | None = None


Evidence = Literal["data", "listing", "computed", "nothing"]
"""What the outputs of a tool prove."""


@dataclass(frozen=True)
class Tool(ToolWords, Generic[A]):
    """A tool: its name, its arguments, its function, and the words by which calls are judged.

    `name` is up to 64 letters, digits, `_` and `-`: providers accept no other. `run` returns a
    ToolOutput, a text, a number, or a list or dict, which the model gets as JSON; a plain function
    gets a thread for each call. `evidence` says what outputs prove: `data` of the world, a
    `listing` of what data there is, what was `computed` from the arguments, or `nothing`, because
    they only repeat these. A finding rests on outputs with data alone. `catalogue` returns the data
    that the tool reaches, a run's files included: a line by the name of each table or document.
    `named` returns a line on the parts of these data that a text names, for models with a small
    window. `reads_attachments` is True if the tool shows the attachments of its context. With
    `inline=False` only roles of its own team have it: no team inside a request may name it. A call
    may take `timeout_seconds`, else the default time. `outside` are tools of a server, a database
    or the web: their process needs a way out, or a secret. `pinned` is the definition of an MCP
    server's tool, which models get in place of the arguments' schema. `own` is set when a tool of a
    `tools.py` is loaded: its arguments are checked in the thread of its team. `provided` is the
    definition of a tool that the model's provider runs, within the call of the model. An author's
    tool whose same call has the same output `stays` so "always", or for the "day": later runs may
    take findings that rest on it then. `version` returns a text that changes with the data of its
    team that it reads.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[ToolOutput]] | Callable[[A, ToolContext], Any]
    evidence: Evidence = "data"
    own: bool = False
    catalogue: Callable[[Any], Awaitable[dict[str, str]]] | None = None
    named: Callable[[Any, str], Awaitable[str]] | None = None
    reads_attachments: bool = False
    inline: bool = True
    outside: bool = False
    pinned: Pinned | None = None
    timeout_seconds: float | None = None
    provided: dict[str, Any] | None = None
    stays: Stays | None = None
    version: Callable[[], Awaitable[str]] | None = None

    @property
    def searches(self) -> int:
        """The number of searches, which cost extra, in one call of the model."""
        if self.provided is None or self.provided["name"] != "web_search":
            return 0
        most: int = self.provided["max_uses"]
        return most

    @property
    def outward(self) -> bool:
        """True if its calls have their own queue where processes are split."""
        return self.outside or self.effects == "outward"

    @property
    def reads_data(self) -> bool:
        """True if it may show a run's data, as an author's tool may; databases do not count."""
        reads_files = self.catalogue is not None and not self.outside
        return self.reads_attachments or reads_files or (self.own and self.reads == "private")

    @property
    def is_fixed(self) -> bool:
        """True if equal calls have equal outputs in a run: it reads files, or computes."""
        changes = self.outward or self.own or self.pinned is not None or self.provided is not None
        return self.effects == "read" and not changes

    def as_pinned(self, pinned: Pinned | None) -> "Tool[A]":
        """Returns the tool with a pinned definition."""
        if pinned is None:
            return self
        return replace(
            self,
            pinned=pinned,
            description=clean(pinned.description)[:_DESCRIPTION_CHARS],
        )

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments, which is shared: do not change it."""
        return self.pinned.input_schema if self.pinned else _schema(self.arguments)


class ToolSource(Protocol):
    """A source of tools: a team's file, its `tools.py` or a server."""

    async def open(self) -> list[Tool[Any]]:
        """Returns its tools. Raises ValueError if its configuration is wrong."""

    async def problems(self) -> list[str]:
        """Returns a line with the reason for each file that cannot be read now."""
        return []


@cache
def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    return arguments.model_json_schema()


# --- Tools of plain functions ---------------------------------------------------------------------

P = ParamSpec("P")
R = TypeVar("R")


class FunctionArguments(Arguments):
    """The base class of arguments that are made from a function's parameters."""

    model_config = ConfigDict(protected_namespaces=())


@dataclass(frozen=True)
class FunctionTool(Tool[Any], Generic[P, R]):
    """A tool made by the decorator `tool`; it can still be called as the function."""

    function: Callable[P, R] = field(kw_only=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function."""
        return self.function(*args, **kwargs)


class ToolOptions(TypedDict, total=False):
    """The fields of Tool that the decorator `tool` takes."""

    evidence: Evidence
    inline: bool
    timeout_seconds: float
    reads_attachments: bool
    reads: Reads
    returns: Returns
    effects: Effects
    approve: Approval
    targets: Targets
    stays: Stays


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    **options: Unpack[ToolOptions],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    **options: Unpack[ToolOptions],
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Makes a tool from a function, also as a decorator with or without brackets.

    The schema of the arguments comes from the parameters' types and defaults, which pydantic reads;
    `Annotated[str, Field(description="...")]` describes a parameter. A parameter of type
    ToolContext gets the call's context and is no argument. Name and description default to the
    function's name and docstring. `options` are fields of Tool, such as `effects="write"`. Raises
    TypeError if no tool can be made from the function.
    """

    def decorate(decorated: Callable[P, R]) -> FunctionTool[P, R]:
        return _tool_of(decorated, name, description, options)

    return decorate if function is None else decorate(function)


def _tool_of(
    function: Callable[P, R],
    name: str,
    description: str,
    options: ToolOptions,
) -> FunctionTool[P, R]:
    own_name = name or function.__name__
    told = description or inspect.getdoc(function) or ""
    if not told:
        raise TypeError(f"tool {own_name}: it needs a docstring, by which models choose it")
    fields, context_name = _fields_of(function, own_name)
    arguments = create_model(f"{own_name}_arguments", __base__=FunctionArguments, **fields)
    return FunctionTool(
        name=own_name,
        description=told,
        arguments=arguments,
        run=_runner(function, list(fields), context_name),
        function=function,
        **options,
    )


def _fields_of(function: Callable[..., Any], name: str) -> tuple[dict[str, Any], str | None]:
    """Returns type and default of each argument, and the name of the context's parameter."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context_name: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        place = f"tool {name}, parameter '{parameter.name}'"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{place}: models give arguments by name, so it needs one of its own")
        if parameter.name not in hints:
            raise TypeError(f"{place}: it needs a type, such as {parameter.name}: str")
        if hints[parameter.name] is ToolContext:
            context_name = parameter.name
            continue
        has_default = parameter.default is not parameter.empty
        default = parameter.default if has_default else ...
        fields[parameter.name] = (hints[parameter.name], default)
    return fields, context_name


def _runner(
    function: Callable[..., Any],
    names: list[str],
    context_name: str | None,
) -> Callable[[Any, ToolContext], Any]:
    """Returns the function that a Worker calls with the arguments' model and the context."""

    def keywords(arguments: Any, context: ToolContext) -> dict[str, Any]:
        values = {name: getattr(arguments, name) for name in names}
        if context_name is not None:
            values[context_name] = context
        return values

    async def run(arguments: Any, context: ToolContext) -> Any:
        return await function(**keywords(arguments, context))

    def run_in_thread(arguments: Any, context: ToolContext) -> Any:
        return function(**keywords(arguments, context))

    # A Worker looks at the kind of function: a plain one gets a thread.
    return run if inspect.iscoroutinefunction(function) else run_in_thread
