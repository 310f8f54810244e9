"""The tokens per minute of this process: reserved before a call, settled with its real usage."""

import asyncio
import json
from collections.abc import Callable

from cachetools import LRUCache

from activities.model.port import ModelFailure, ModelRequest, ModelUsage
from supervision import limits
from supervision.errors import ErrorKind
from supervision.provider.token_bucket import TokenBucket, TokenForecast

Clock = Callable[[], float]


class Reservation:
    """Tokens held for one call. Settled once: `used` after an answer, `unused` if the provider did nothing."""

    def __init__(self, bucket: TokenBucket, forecast: TokenForecast, chars: int, amount: float, clock: Clock) -> None:
        self._bucket = bucket
        self._forecast = forecast
        self._chars = chars
        self._amount = amount
        self._clock = clock

    def used(self, usage: ModelUsage) -> None:
        """Settles an answered call; tokens read from the cache do not count, as in providers' limits."""
        paid = usage.input_tokens + usage.cache_write_tokens
        self._forecast.learn(self._chars, paid, usage.output_tokens)
        self._bucket.give_back(self._amount - paid - usage.output_tokens, self._clock())

    def unused(self) -> None:
        """Settles a call that was not sent, or refused before any content."""
        self._bucket.give_back(self._amount, self._clock())


class TokenLimit:
    """One bucket for all models of the process, and a forecast for each."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._bucket = TokenBucket(per_minute)
        self._forecasts: LRUCache[str, TokenForecast] = LRUCache(limits.KNOWN_MODELS)
        self._clock = clock

    async def reserve(self, request: ModelRequest) -> Reservation:
        """Holds the tokens that the request will probably use, after a wait of at most GATE_WAIT.

        Raises ModelFailure (RateLimited, with the time to come back) if it would take longer.
        """
        chars = len(json.dumps([request.system, request.messages, request.tools]))
        forecast = self._forecasts.setdefault(request.model, TokenForecast())
        amount, now = forecast.guess(chars, request.max_tokens), self._clock()
        wait = self._bucket.wait(amount, now)
        if wait > limits.GATE_WAIT.total_seconds():
            raise ModelFailure(
                ErrorKind.RATE_LIMITED,
                "held back: this process has used its tokens of this minute (SUPERVISOR_MODEL_TPM)",
                retryable=True,
                retry_after=self._bucket.turn_away(amount, now),
            )
        self._bucket.take(amount, now)
        reservation = Reservation(self._bucket, forecast, chars, amount, self._clock)
        try:
            await asyncio.sleep(wait)
        except asyncio.CancelledError:
            reservation.unused()
            raise
        return reservation
