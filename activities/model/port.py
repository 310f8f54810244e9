"""The port to language models: an endpoint, a call, its answer, its failure. Imports no SDK.

`anthropic_model.AnthropicModel` is the one implementation; the provider's own JSON passes through
unchanged because signed thinking blocks must return byte for byte.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Literal, Protocol

from pydantic import Field

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import RETRIED, ErrorKind
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.model_choice import Effort
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits
from temporal_supervisor.supervision.replies.thinking import without_thinking

# Of the window, where that is less: the rest is for instructions, thinking and the reply.
_CONTEXT_SHARE = 0.5
# Of a small window; of models whose limit is unknown a quarter of it is asked for.
_REPLY_SHARE = 0.2
# Of a small window, for one tool output: several have to stand beside each other.
_OUTPUT_SHARE = 0.1
_PROMPT_SHARE = 0.8  # of the window: the rest is for thinking and the reply

Json = dict[str, Any]
CacheUse = Literal["none", "prefix", "conversation"]
"""Which prefixes of a call are worth caching: none, system and tools, or the conversation as well."""


@dataclass(frozen=True)
class ModelRequest:
    """One call, in the provider's JSON, with tools or an `output_schema`.

    One that `concludes` may call no tools. `room` is what the window has left for the reply, `run`
    the run that asks, `traits` what this knows of the model. `tokens` are about those of the
    prompt. `call` names this call, alike in all attempts.
    """

    model: str
    system: str
    messages: list[Json]
    max_tokens: int
    room: int | None = None
    tokens: int = 0
    traits: ModelTraits | None = None
    effort: Effort | None = None
    tools: list[Json] = field(default_factory=list)
    output_schema: Json | None = None
    cache: CacheUse = "none"
    concludes: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    run: str = ""
    call: str = ""


Count = Annotated[int, Field(ge=0, le=10**12)]  # budgets rely on it: an endpoint may say anything


class ModelUsage(Model, frozen=True):
    """Tokens of one call; `input_tokens` are the uncached ones.

    `web_searches` are those of the provider's own tool.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    web_searches: Count = 0

    @property
    def prompt_tokens(self) -> int:
        """All that the model read, from the cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class ModelMessage(Model):
    """A whole answer in plain JSON, unknown blocks included.

    `fullest` says that the model can write no longer one.
    """

    content: list[Json]
    stop_reason: str
    stop_details: Json | None = None
    usage: ModelUsage
    model: str
    fullest: bool = False

    @property
    def refusal(self) -> str | None:
        """The reason why the model refused; None if it did not."""
        details = self.stop_details or {}
        why = details.get("explanation") or details.get("category") or "no reason given"
        return str(why) if self.stop_reason == "refusal" else None

    def text(self) -> str:
        """Returns all text blocks joined, without what a model that has no blocks for it thinks there."""
        return without_thinking("".join(block.get("text", "") for block in self.content if block.get("type") == "text"))

    def tool_uses(self) -> list[Json]:
        """Returns the tool_use blocks, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    def provided_uses(self) -> list[Json]:
        """Returns the calls of tools that the provider ran itself, in order."""
        return [block for block in self.content if block.get("type") == "server_tool_use"]


def user_message(*texts: str) -> Json:
    """Returns a message of the user's side with a text block for each text."""
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


@dataclass
class StreamProgress:
    """The part of an answer that has come, and its cost so far.

    `on_content` is called when the first content comes. `stage` says where the call stands: it
    waits for its `turn`, its prompt is `reading`, or the answer is `writing`.
    """

    usage: ModelUsage = field(default_factory=ModelUsage)
    tail: str = ""
    stage: Literal["turn", "reading", "writing"] = "turn"
    on_content: Callable[[], None] = lambda: None


@dataclass(eq=False)
class ModelFailure(Exception):
    """A call without a usable answer, classified once.

    `message` is safe to show, `retry_after` is clamped seconds. `should_retry` is what the provider
    itself says of another attempt; None if it says nothing.
    """

    kind: ErrorKind
    message: str
    retry_after: float | None = None
    request_id: str | None = None
    should_retry: bool | None = None

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later.

        An outage that lasts longer is its run's to wait for.
        """
        if self.should_retry is not None:
            return self.should_retry
        is_short = (self.retry_after or 0) < limits.CIRCUIT_RETRY_BELOW.total_seconds()
        return self.kind in RETRIED or (self.kind is ErrorKind.CIRCUIT_OPEN and is_short)

    def __str__(self) -> str:
        return self.message


class BadAnswer(Exception):
    """An answer that is none, or that broke off, in words that are safe to show."""

    def __init__(self, detail: str, kind: ErrorKind = ErrorKind.BAD_RESPONSE) -> None:
        super().__init__(detail)
        self.kind = kind


@dataclass(frozen=True)
class Window:
    """The tokens that a prompt and its reply may have together.

    Above `long_context_threshold` a prompt costs more.
    """

    tokens: int
    long_context_threshold: int | None = None
    short_prompts: bool | None = None

    @property
    def is_small(self) -> bool:
        """True if prompts and forms are to be short, and outputs of tools, too.

        `short_prompts` is what was set.
        """
        if self.short_prompts is not None:
            return self.short_prompts
        return self.tokens <= limits.SMALL_WINDOW_TOKENS

    @property
    def output_chars(self) -> int:
        """The number of characters of one tool output that are shown at once.

        It is a tenth of a small window.
        """
        if not self.is_small:
            return limits.TOOL_OUTPUT_CHARS
        return min(limits.TOOL_OUTPUT_CHARS, int(self.tokens * _OUTPUT_SHARE * limits.CHARS_PER_TOKEN))

    @property
    def prompt_tokens(self) -> int:
        """The room in a prompt for findings and other texts that can be cut, in tokens."""
        return min(limits.CONTEXT_TOKENS, int(self.tokens * _CONTEXT_SHARE))

    @property
    def target(self) -> int:
        """The number of tokens that a prompt should have at most."""
        share = int(self.tokens * _PROMPT_SHARE)
        return min(share, self.long_context_threshold or share)

    def output_tokens(self, asked: int) -> int:
        """Returns the number of tokens for a reply of which `asked` were meant.

        A small model that goes astray writes until it is stopped, for minutes. A reply that is cut
        is asked for again with twice as many.
        """
        if not self.is_small:
            return asked
        return min(asked, max(1, int(self.tokens * _REPLY_SHARE * asked / limits.TURN_MAX_TOKENS)))

    def reply_tokens(self, prompt: int) -> int:
        """Returns the tokens that a prompt leaves for its reply: some endpoints refuse a request for more."""
        return max(self.tokens - prompt, limits.LEAST_OUTPUT_TOKENS)


class ModelEndpoint(Protocol):
    """An endpoint of models: all that depends on its provider. `endpoint` is its host and port."""

    endpoint: str

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Sends one request, once.

        Returns the answer or raises ModelFailure; cancelling closes the connection.
        """

    def output_schema(self, model: type[Model]) -> Json:
        """Returns the JSON schema of `model` in the form that the provider accepts."""

    async def request_json(self, path: str, body: Json | None, time: timedelta) -> Json:
        """Returns the JSON of a page, or the reply to a plain request with a body.

        Raises ModelFailure.
        """

    def window(self, model: str, traits: ModelTraits | None = None) -> Window:
        """Returns the window of a model: a run's own `traits` of it come first."""

    def traits_for_run(self, model: str, facts: EndpointFacts) -> ModelTraits:
        """Returns the traits that a run keeps of a model: by the operator's settings, else as found, else assumed."""

    def runs_tools(self, model: str) -> bool:
        """True if the endpoint is known to run tools itself, within the replies of this model."""

    def price(self, model: str, usage: ModelUsage) -> float | None:
        """Returns the cost of a call in dollars; None if the price is unknown."""

    async def close(self) -> None:
        """Closes the connections."""
