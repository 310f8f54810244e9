"""The base of all tools, those of a team's author included: docs/teams-and-tools.md has an example.

The model sees name, description and the arguments' schema. ToolMisuse goes back to it as advice, any other
exception as the name and first line of the error. `activities.teams.toolbox` cleans and caps what a tool returns.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from activities.tools.mcp.pins import Pinned
from temporal_supervisor.supervision.agent.policy import ToolWords
from temporal_supervisor.supervision.base.text import clean

if TYPE_CHECKING:  # an author's tool needs nothing of the store
    from activities.files.file_cache import Files


_DESCRIPTION_CHARS = 4000  # of an MCP server's tool: a page that each turn pays for


class Arguments(BaseModel):
    """Base of every tool's arguments. Unknown ones are refused, so that the model learns of its mistake."""

    model_config = ConfigDict(extra="forbid")


A = TypeVar("A", bound=Arguments)


class ToolMisuse(Exception):
    """The model used a tool wrongly. The message goes back to it and says what to do instead."""


@dataclass(frozen=True)
class NewArtifact:
    """Content that a tool produced for the user."""

    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class ToolOutput:
    """`text` goes to the model; `sources` are its origins and become part of the finding.

    `readings` say how the texts of a file were read for it, for the people who check a figure.

    If it `asks`, the call is not done: its text is a question to a person, and it is made again with the reply under
    that key. `choices` are replies to choose from.
    """

    text: str
    sources: list[str] = field(default_factory=list)
    artifacts: list[NewArtifact] = field(default_factory=list)
    asks: str = ""
    choices: list[str] = field(default_factory=list)
    readings: list[str] = field(default_factory=list)


AskOnce = Callable[[str, Callable[[], Awaitable[ToolOutput]]], Awaitable[ToolOutput]]
"""Returns the output for a key that the run has got before, else what the function returns."""


@dataclass(frozen=True)
class ToolContext:
    """The part of a run that a tool sees: its id, its subtask's attachments, and a key that is stable over attempts.

    `files` are the files that the user gave to the run as data, `pinned` is the definition of an MCP server's tool.
    `brief` returns the text of the subtask's brief, None if untrusted text had a part in it. `replies` are what people
    replied to earlier attempts at the same call, by the key of what it asked. `links` returns the URLs that may be
    links in what the model writes. `once` keeps what was asked outside: see `activities.agent.asked_once`.
    """

    attachments: dict[str, Callable[[], Awaitable[str]]] = field(default_factory=dict)
    idempotency_key: str = ""
    run_id: str = ""
    files: "Files | None" = None
    pinned: Pinned | None = None
    brief: Callable[[], Awaitable[str | None]] | None = None
    replies: dict[str, str] = field(default_factory=dict)
    links: Callable[[], Awaitable[set[str]]] | None = None
    once: AskOnce | None = None


Evidence = Literal["data", "listing", "computed", "nothing"]
"""What the outputs of a tool prove."""


@dataclass(frozen=True)
class Tool(ToolWords, Generic[A]):
    """A tool: its name, its arguments, the function that runs it, and the words by which its calls are judged.

    `name` is up to 64 letters, digits, `_` and `-`: providers accept no other. `run` returns a ToolOutput, a text, a
    number, or a list or dict, which the model gets as JSON; a plain function gets a thread for each call.
    `evidence` says what outputs prove: `data` of the world, a `listing` of what data there is, what was `computed`
    from the arguments, or `nothing`, because they only repeat these. A finding rests on outputs with data alone.
    `catalogue` returns the data that the tool reaches, a run's files included: a line by the name of each table or
    document.
    `reads_attachments` is True if the tool shows the attachments of its context. With `inline=False` only roles of its
    own team have it: no team inside a request may name it. A call may take `timeout_seconds`, else the default time.
    `outside` are tools of a server, a database or the web: their process needs a way out, or a secret.
    `pinned` is the definition of an MCP server's tool, which models get in place of the arguments' schema. `own` is
    set when a tool of a `tools.py` is loaded: its arguments are checked in the thread of its team.
    `provided` is the definition of a tool that the model's provider runs, within the call of the model.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[ToolOutput]] | Callable[[A, ToolContext], Any]
    evidence: Evidence = "data"
    own: bool = False
    catalogue: "Callable[[Files | None], Awaitable[dict[str, str]]] | None" = None
    reads_attachments: bool = False
    inline: bool = True
    outside: bool = False
    pinned: Pinned | None = None
    timeout_seconds: float | None = None
    provided: dict[str, Any] | None = None

    @property
    def searches(self) -> int:
        """How many searches, which cost extra, one call of the model may make."""
        return self.provided["max_uses"] if self.provided and self.provided["name"] == "web_search" else 0

    @property
    def outward(self) -> bool:
        """True if its calls have a queue of their own where processes are split."""
        return self.outside or self.effects == "outward"

    @property
    def reads_data(self) -> bool:
        """True if it may show what a run was given as data, as an author's tool may; a database is not given."""
        reads_files = self.catalogue is not None and not self.outside
        return self.reads_attachments or reads_files or (self.own and self.reads == "private")

    @property
    def is_fixed(self) -> bool:
        """True if the same call has the same output for as long as a run lasts: it reads files, or computes."""
        changes = self.outward or self.own or self.pinned is not None or self.provided is not None
        return self.effects == "read" and not changes

    def as_pinned(self, pinned: Pinned | None) -> "Tool[A]":
        """Returns the tool with that definition."""
        if pinned is None:
            return self
        return replace(self, pinned=pinned, description=clean(pinned.description)[:_DESCRIPTION_CHARS])

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments. It is shared, so do not change it."""
        return self.pinned.input_schema if self.pinned else _schema(self.arguments)


class ToolSource(Protocol):
    """Where tools come from: a team's files, its `tools.py`, a server."""

    async def open(self) -> list[Tool[Any]]:
        """Returns its tools. Raises ValueError with what is wrong with its configuration."""

    async def problems(self) -> list[str]:
        """Returns what of it cannot be read now, each with the reason."""
        return []


@cache
def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    return arguments.model_json_schema()
