"""The usage of model and tool calls."""

from collections.abc import Callable
from typing import Any

from pydantic import ConfigDict

from temporal_supervisor.supervision.contract.base import Model


class Usage(Model):
    """Sums over model and tool calls.

    `input_tokens` are the uncached ones; `cache_read_tokens` and `cache_write_tokens` come on top
    of them. `usd` is None as soon as one call's price is unknown: an unknown cost is never reported
    as 0.
    """

    # As a default value it is shared then, else pydantic copies it each time.
    model_config = ConfigDict(frozen=True)

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float | None = 0.0

    def __add__(self, other: "Usage") -> "Usage":
        """Returns the sum; its cost is unknown if either cost is unknown."""
        return self._combined(other, lambda one, two: one + two)

    def __sub__(self, other: "Usage") -> "Usage":
        """Returns the difference, at least 0; its cost is unknown if either cost is unknown."""
        return self._combined(other, lambda one, two: max(0, one - two))

    def _combined(self, other: "Usage", combine: Callable[[Any, Any], Any]) -> "Usage":
        pairs = ((name, mine, getattr(other, name)) for name, mine in self)
        return Usage(
            **{name: None if None in (one, two) else combine(one, two) for name, one, two in pairs}
        )

    @property
    def tokens(self) -> int:
        """All tokens, cached ones included."""
        return self.prompt_tokens + self.output_tokens

    @property
    def prompt_tokens(self) -> int:
        """Input tokens, from the cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cached_share(self) -> float:
        """The cached share of the input tokens, from 0 to 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def tokens_line(self) -> str:
        """Returns input tokens, their cached share, and output tokens in words."""
        cached = f" ({self.cached_share:.0%} from the cache)" if self.cache_read_tokens else ""
        return f"{self.prompt_tokens:,} input tokens{cached}, {self.output_tokens:,} output tokens"


class Spend(Model):
    """The usage of a model by a role.

    `supervisor` is the supervisor itself, `role/member` a member of a team.
    """

    role: str
    model: str
    usage: Usage = Usage()
