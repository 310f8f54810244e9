"""Scripted behaviour: the faults and replies that a configuration asks for, request by request."""

import math
from collections import Counter
from fnmatch import fnmatchcase

from pydantic import Field

from temporal_supervisor.supervision.contract.base import StrictModel


class Fault(StrictModel):
    """The faults of the first `times` replies whose call header fits the glob `call`.

    Several may be combined; times are in milliseconds. `status` is an error's. After `stall_after`
    events of the stream it falls silent until the client leaves. `reply` is a text in place of the
    brain's.
    """

    call: str = "*"
    times: float = math.inf
    status: int | None = None
    message: str = "scripted"
    headers: dict[str, str] = {}
    delay_ms: float = 0
    chunk_delay_ms: float = 0
    stall_after: int | None = None
    reply: str | None = None


class ServerConfig(StrictModel):
    """The whole configuration; `window` is how many tokens a prompt may have."""

    latency_ms: float = 0
    delta_chars: int = Field(
        default=24, ge=1
    )  # of text in one stream event: small, so that streams have many
    window: int = 1_000_000  # of the default models
    rules: list[Fault] = []


class FaultScript:
    """The configuration in force, and how often each of its rules has matched."""

    def __init__(self, config: ServerConfig | None = None) -> None:
        self.replace(config or ServerConfig())

    def replace(self, config: ServerConfig) -> None:
        """Puts another configuration in force, all counters at zero."""
        self.config = config
        self._matches: Counter[int] = Counter()

    def fault(self, call: str) -> Fault:
        """Returns the fault of the first matching rule that is not used up.

        Without such a rule, the fault has no effect.
        """
        for at, rule in enumerate(self.config.rules):
            if fnmatchcase(call, rule.call):
                self._matches[at] += 1
                if self._matches[at] <= rule.times:
                    return rule
        return Fault()
