"""The base of all tools, those of a team's author included.

An author writes tools in `teams/<name>/tools.py`:

    class Weather(Arguments):
        city: Annotated[str, Field(max_length=100, description="A city's name.")]

    async def weather(arguments: Weather, context: ToolContext) -> ToolOutput:
        if arguments.city not in STATIONS:
            raise ToolMisuse(f"unknown city; known are: {', '.join(STATIONS)}")
        return ToolOutput(await read(STATIONS[arguments.city]), sources=["weather office"])

    TOOLS = [Tool("weather", "Returns the current weather of a city.", Weather, weather)]

The model sees name, description and the arguments' schema. ToolMisuse goes back to it as advice, any other
exception as the name and first line of the error. Output is cleaned and capped by `activities.teams.toolbox`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from supervision.contract.base import StrictModel
from supervision.contract.team import Effects


class Arguments(BaseModel):
    """Base of every tool's arguments: unknown ones are refused, so that the model learns its mistake."""

    model_config = ConfigDict(extra="forbid")


class NoOptions(StrictModel):
    """The options of a tool kind that takes none."""


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
    """`text` goes to the model; `sources` are its origins and become part of the finding."""

    text: str
    sources: list[str] = field(default_factory=list)
    artifacts: list[NewArtifact] = field(default_factory=list)


@dataclass(frozen=True)
class ToolContext:
    """The part of a run that a tool sees: its id, its subtask's attachments, and a key that is stable over attempts."""

    attachments: dict[str, Callable[[], Awaitable[str]]] = field(default_factory=dict)
    idempotency_key: str = ""
    run_id: str = ""


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool: what it is called, what it takes, how it runs.

    One that `waits` may take longer than five minutes: it asks a person, or something slow.
    A tool of a `tools.py` is marked `own` when it is loaded, and runs in its team's thread: nobody has bounded it.
    Its `run` may also be a plain function, which gets a thread for each call, and return just a text.
    `evidence` says what its outputs prove: `data` of the world, what was `computed` from its arguments, or `nothing`,
    because they only repeat these.
    `name` is letters, digits, `_` and `-`, at most 64 of them: providers accept no other. `catalogue` returns what data
    it reaches, for the planner: a line by the name of each table or document. `reads_attachments` is True if it shows
    the attachments of its context. With `inline=False` only roles of its own team have it: no team inside a request
    may name it.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, ToolContext], Awaitable[ToolOutput]] | Callable[[A, ToolContext], Any]
    effects: Effects = "read"
    evidence: Literal["data", "computed", "nothing"] = "data"
    own: bool = False
    waits: bool = False
    catalogue: Callable[[], Awaitable[dict[str, str]]] | None = None
    reads_attachments: bool = False
    inline: bool = True

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the arguments. It is shared, so do not change it."""
        return _schema(self.arguments)


@cache
def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    return arguments.model_json_schema()
