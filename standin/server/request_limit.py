"""A limit of requests, as the API has it: a bucket that refills evenly, with its state in headers if asked for."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pydantic import Field

from supervision.contract.base import StrictModel


class RequestLimit(StrictModel):
    """So many requests a minute, `burst_seconds` of them at once after a quiet time.

    With `headers` every answer says so in `anthropic-ratelimit-requests-*`; refusals have `retry-after` in any case.
    """

    per_minute: float = Field(gt=0)
    burst_seconds: float = Field(default=5, ge=0)
    headers: bool = False


class RequestBucket:
    """The requests that may still come under a limit, which may change at any time; all models share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._level = math.inf
        self._at = clock()

    def take(self, limit: RequestLimit) -> float:
        """Returns 0 if a request may come now, else the seconds until one may."""
        now, rate = self._clock(), limit.per_minute / 60
        capacity = max(1.0, rate * limit.burst_seconds)
        self._level = min(capacity, self._level + (now - self._at) * rate)
        self._at = now
        if self._level < 1:
            return (1 - self._level) / rate
        self._level -= 1
        return 0.0

    def headers(self, limit: RequestLimit, wait: float) -> dict[str, str]:
        """Returns what the answer to a request says; `wait` is what `take` gave for it."""
        refused = {"retry-after": str(math.ceil(wait))} if wait else {}
        if not limit.headers:
            return refused
        rate = limit.per_minute / 60
        full = datetime.now(UTC) + timedelta(seconds=max(0.0, limit.burst_seconds - self._level / rate))
        return refused | {
            "anthropic-ratelimit-requests-limit": f"{limit.per_minute:g}",
            "anthropic-ratelimit-requests-remaining": str(int(self._level)),
            "anthropic-ratelimit-requests-reset": full.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
