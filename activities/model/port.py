"""The interface to language models: an endpoint, a call, its answer, its failure.

It imports no SDK. `anthropic_model.AnthropicModel` is the one implementation; the provider's own
JSON stays unchanged, because signed thinking blocks must return byte for byte.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Literal, Protocol

from pydantic import Field

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import RETRIED, ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
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

CacheUse = Literal["none", "prefix", "conversation"]
"""The prefixes of a call worth caching: none, system and tools, or the conversation, too."""


@dataclass(frozen=True)
class ModelRequest:
    """One call, in the provider's JSON, with tools or an `output_schema`.

    A request that `concludes` may call no tools. `room` is the window's rest for the reply, in
    tokens; `tokens` is the estimate of the prompt. `traits` are the run's knowledge of the model,
    `run` is the run that asks. `call` identifies the call over all attempts.
    """

    model: str
    system: str
    messages: list[JsonObject]
    max_tokens: int
    room: int | None = None
    tokens: int = 0
    traits: ModelTraits | None = None
    effort: Effort | None = None
    tools: list[JsonObject] = field(default_factory=list)
    output_schema: JsonObject | None = None
    cache: CacheUse = "none"
    concludes: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    run: str = ""
    call: str = ""


Count = Annotated[int, Field(ge=0, le=10**12)]  # budgets rely on it: an endpoint may say anything


class ModelUsage(Model, frozen=True):
    """Tokens of one call; `input_tokens` are the uncached ones.

    `web_searches` counts uses of the provider's own tool.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    web_searches: Count = 0

    @property
    def prompt_tokens(self) -> int:
        """All tokens that the model read, cached or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class ModelMessage(Model):
    """A complete answer in plain JSON, unknown blocks included.

    `fullest` is True if the reply had the model's maximum output length.
    """

    content: list[JsonObject]
    stop_reason: str
    stop_details: JsonObject | None = None
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
        """Returns all text blocks joined, without thinking that a model wrote as text."""
        texts = [block.get("text", "") for block in self.content if block.get("type") == "text"]
        return without_thinking("".join(texts))

    def tool_uses(self) -> list[JsonObject]:
        """Returns the tool_use blocks, in order."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    def provided_uses(self) -> list[JsonObject]:
        """Returns the tool calls that the provider ran itself, in order."""
        return [block for block in self.content if block.get("type") == "server_tool_use"]


def user_message(*texts: str) -> JsonObject:
    """Returns a user message with a text block for each text."""
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


@dataclass
class StreamProgress:
    """The received part of an answer, and its cost so far.

    `on_content` is called with the first content. `stage` is the state of the call: waiting for its
    `turn`, `reading` the prompt, or `writing` the answer.
    """

    usage: ModelUsage = field(default_factory=ModelUsage)
    tail: str = ""
    stage: Literal["turn", "reading", "writing"] = "turn"
    on_content: Callable[[], None] = lambda: None


@dataclass(eq=False)
class ModelFailure(Exception):
    """A call without a usable answer, with the kind of its failure.

    `message` is safe to show, `retry_after` has clamped seconds. `should_retry` is the provider's
    own advice, None if it gives none.
    """

    kind: ErrorKind
    message: str
    retry_after: float | None = None
    request_id: str | None = None
    should_retry: bool | None = None

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later.

        The run itself waits for the end of a longer outage.
        """
        if self.should_retry is not None:
            return self.should_retry
        is_short = (self.retry_after or 0) < limits.CIRCUIT_RETRY_BELOW.total_seconds()
        return self.kind in RETRIED or (self.kind is ErrorKind.CIRCUIT_OPEN and is_short)

    def __str__(self) -> str:
        return self.message


class BadAnswer(Exception):
    """An answer that is invalid or broke off; the message is safe to show."""

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
        """True if prompts, forms and tool outputs should be short.

        `short_prompts` overrides the size.
        """
        if self.short_prompts is not None:
            return self.short_prompts
        return self.tokens <= limits.SMALL_WINDOW_TOKENS

    @property
    def output_chars(self) -> int:
        """The number of characters that are shown of one tool output, a tenth of a small window."""
        if not self.is_small:
            return limits.TOOL_OUTPUT_CHARS
        share = int(self.tokens * _OUTPUT_SHARE * limits.CHARS_PER_TOKEN)
        return min(limits.TOOL_OUTPUT_CHARS, share)

    @property
    def prompt_tokens(self) -> int:
        """The tokens in a prompt for findings and other texts that can be cut."""
        return min(limits.CONTEXT_TOKENS, int(self.tokens * _CONTEXT_SHARE))

    @property
    def target(self) -> int:
        """The intended maximum of tokens in a prompt."""
        share = int(self.tokens * _PROMPT_SHARE)
        return min(share, self.long_context_threshold or share)

    def output_tokens(self, asked: int) -> int:
        """Returns the tokens for a reply, at most `asked`; fewer for a small model.

        A small model that goes astray writes for minutes, until it is stopped. A reply that is cut
        off is requested again with twice as many.
        """
        if not self.is_small:
            return asked
        return min(asked, max(1, int(self.tokens * _REPLY_SHARE * asked / limits.TURN_MAX_TOKENS)))

    def reply_tokens(self, prompt: int) -> int:
        """Returns the tokens that a prompt leaves for its reply; some endpoints refuse more."""
        return max(self.tokens - prompt, limits.LEAST_OUTPUT_TOKENS)


class ModelEndpoint(Protocol):
    """An endpoint of models, with everything that depends on its provider.

    `endpoint` is its host and port.
    """

    endpoint: str

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Sends one request, once.

        Returns the answer or raises ModelFailure; cancelling closes the connection.
        """

    def output_schema(self, model: type[Model]) -> JsonObject:
        """Returns the JSON schema of `model` in a form that the provider accepts."""

    async def request_json(self, path: str, body: JsonObject | None, time: timedelta) -> JsonObject:
        """Returns the JSON at a path, or the reply to a request with a body.

        Raises ModelFailure.
        """

    def window(self, model: str, traits: ModelTraits | None = None) -> Window:
        """Returns the window of a model; a run's own `traits` come first."""

    def traits_for_run(self, model: str, facts: EndpointFacts) -> ModelTraits:
        """Returns the traits of a model for a run, as set by the operator, found, or assumed."""

    def runs_tools(self, model: str) -> bool:
        """True if the endpoint is known to run tools within the replies of this model."""

    def price(self, model: str, usage: ModelUsage) -> float | None:
        """Returns the cost of a call in dollars; None if the price is unknown."""

    async def close(self) -> None:
        """Closes the connections."""
