"""The consumption of model and tool calls."""

from pydantic import ConfigDict

from supervision.base.text import money, one_line
from supervision.contract.base import Model


class Usage(Model):
    """Sums over model and tool calls.

    `input_tokens` are the uncached ones; `cache_read_tokens` and `cache_write_tokens` come on top of them.
    `usd` is None as soon as one call's price is unknown: an unknown cost is never reported as 0.
    """

    model_config = ConfigDict(frozen=True)  # as a default value it is shared then, else pydantic copies it each time

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        """Returns the sum; its cost is unknown if either cost is."""
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            usd=usd,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        """Returns what is left of it, nothing below 0; its cost is unknown if either cost is."""
        usd = None if self.usd is None or other.usd is None else max(0.0, self.usd - other.usd)
        return Usage(
            model_calls=max(0, self.model_calls - other.model_calls),
            tool_calls=max(0, self.tool_calls - other.tool_calls),
            input_tokens=max(0, self.input_tokens - other.input_tokens),
            output_tokens=max(0, self.output_tokens - other.output_tokens),
            cache_read_tokens=max(0, self.cache_read_tokens - other.cache_read_tokens),
            cache_write_tokens=max(0, self.cache_write_tokens - other.cache_write_tokens),
            usd=usd,
        )

    @property
    def tokens(self) -> int:
        """All tokens, cached ones included."""
        return self.prompt_tokens + self.output_tokens

    @property
    def prompt_tokens(self) -> int:
        """All that the models read, from the cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cached_share(self) -> float:
        """The part of the prompts that came from the cache, from 0 to 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def tokens_line(self) -> str:
        """Returns the tokens in words: what was read, how much of it from the cache, what was written."""
        cached = f" ({self.cached_share:.0%} from the cache)" if self.cache_read_tokens else ""
        return f"{self.prompt_tokens:,} input tokens{cached}, {self.output_tokens:,} output tokens"


class Spend(Model):
    """What a role consumed of a model; `supervisor` is the supervisor itself, `role/member` a member of a team."""

    role: str
    model: str
    usage: Usage = Usage()

    def line(self) -> str:
        """Returns the row in words."""
        usage = self.usage
        calls = f"{usage.model_calls} call{'s' if usage.model_calls != 1 else ''}"
        by = f"{self.role} with {self.model}" if self.model else self.role
        return f"{by}: {calls}, {usage.tokens_line()}, {money(usage.usd)}"


class ToolTally(Model):
    """What became of the calls of one tool; `error` is what the last failed one said."""

    calls: int = 0
    failures: int = 0
    error: str = ""

    def counted(self, error: str | None) -> "ToolTally":
        """Returns this tally with one more call, which failed with `error`."""
        return self + ToolTally(calls=1, failures=int(error is not None), error=one_line(error or "", 200))

    def __add__(self, other: "ToolTally") -> "ToolTally":
        return ToolTally(
            calls=self.calls + other.calls, failures=self.failures + other.failures, error=other.error or self.error
        )
