"""The gate between this process and the provider.

For each model it has a breaker, a window of calls in flight, and a wait after status 429.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from datetime import timedelta
from weakref import WeakValueDictionary

from cachetools import LRUCache
from opentelemetry import metrics

from activities.model.port import (
    ModelEndpoint,
    ModelFailure,
    ModelMessage,
    ModelRequest,
    StreamProgress,
)
from temporal_supervisor.supervision.base import limits, spans
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.provider.provider_breaker import (
    CallTicket,
    Hold,
    ProviderBreaker,
    ProviderState,
)

# A known wait of up to that is spent in the process; a longer one makes a later attempt.
GATE_WAIT = timedelta(seconds=5)

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(spans.SCOPE)
_state = _meter.create_gauge(
    spans.BREAKER_OPEN, description="by model: 1 while no call is sent or only a probe, else 0"
)


class ModelGate:
    """Sends the calls of a process to an endpoint while it can serve them.

    It raises ModelFailure CircuitOpen with the remaining seconds while the breaker of the request's
    model is open, and RateLimited if the call would have to wait for more than GATE_WAIT after a
    429, or has waited for GATE_PATIENCE for a place among the calls in flight (`most` of a model at
    first). Runs are served in turn.
    """

    def __init__(
        self,
        endpoint: ModelEndpoint,
        most: int = limits.MODEL_SLOTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._most = most
        self._clock = clock
        # Bounded, as requests may name models of their own.
        self._breakers: LRUCache[str, ProviderBreaker] = LRUCache(limits.KNOWN_MODELS)
        self._seen: LRUCache[str, ProviderState] = LRUCache(limits.KNOWN_MODELS)
        self._last_failures: LRUCache[str, str] = LRUCache(limits.KNOWN_MODELS)
        self._changed = asyncio.Event()
        self._lines: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Returns the answer to a request, sent as soon as allowed.

        Its outcome counts for the breaker.
        """
        progress.stage = "turn"
        ticket = await self._await_turn(request)
        breaker = self.breaker(request.model)

        def on_content() -> None:
            progress.stage = "writing"
            breaker.answering(ticket, self._clock())
            self._wake()

        progress.on_content = on_content
        progress.stage = "reading"
        try:
            message = await self._endpoint.complete(request, progress)
            breaker.succeeded(ticket, self._clock())
        except ModelFailure as failure:
            breaker.failed(ticket, self._clock(), failure.kind, failure.retry_after)
            self._last_failures[request.model] = failure.message
            cooldown = breaker.remaining(self._clock())
            if failure.retryable and cooldown >= limits.CIRCUIT_RETRY_BELOW.total_seconds():
                raise _circuit_open(request.model, cooldown, failure.message) from failure
            if cooldown > (failure.retry_after or 0):
                # Just when the breaker half-opens: earlier is refused, later delays the probe.
                failure.retry_after = cooldown
            raise
        finally:
            # After an outcome it changes nothing; without one the call was given up.
            breaker.released(ticket)
            self._record_state(request.model)
            self._wake()
        return message

    async def _await_turn(self, request: ModelRequest) -> CallTicket:
        """Returns the ticket of a call once it may be sent.

        Each run has one call in a model's line.
        """
        of_run = self._lines.setdefault((request.model, request.run), asyncio.Lock())
        of_model = self._lines.setdefault((request.model,), asyncio.Lock())
        try:
            async with asyncio.timeout(limits.GATE_PATIENCE.total_seconds()), of_run, of_model:
                return await self._first_in_line(request)
        except TimeoutError:
            busy = f"other calls of {request.model} are in flight"
            words = f"{busy}, as many as its provider takes at present"
            raise _held_back(words, GATE_WAIT.total_seconds()) from None

    async def _first_in_line(self, request: ModelRequest) -> CallTicket:
        model = request.model
        breaker = self.breaker(model)
        while isinstance(held := breaker.request_ticket(self._clock(), request.call), Hold):
            if held.why == "open":
                raise _circuit_open(model, held.seconds, self._last_failures.get(model, "not sent"))
            if held.why == "no room":
                # Calls report meanwhile, so the breaker is asked again after every change, or when
                # one has stalled.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), breaker.next_stall(self._clock()))
                continue
            if held.seconds > GATE_WAIT.total_seconds():
                rest = f"for another {held.seconds:.0f} s"
                words = f"the provider of {model} asked for no calls {rest}"
                raise _held_back(words, held.seconds)
            await asyncio.sleep(held.seconds)
        self._record_state(model)
        return held

    def limit_calls(self, most: int) -> None:
        """Limits the calls of a model in flight to `most` from now on."""
        self._most = most
        for breaker in self._breakers.values():
            breaker.window.narrow(most)

    def breaker(self, model: str) -> ProviderBreaker:
        """Returns the breaker of a model."""
        breaker: ProviderBreaker = self._breakers.setdefault(model, ProviderBreaker(self._most))
        return breaker

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _record_state(self, model: str) -> None:
        """Records a change of the breaker's state in metrics and log."""
        now = self._clock()
        breaker = self.breaker(model)
        state = breaker.state(now)
        before = self._seen.get(model, "closed")
        if state == before:
            return
        self._seen[model] = state
        _state.set(int(state != "closed"), {"model": model})
        detail = f" for {breaker.remaining(now):.0f} s" if state == "open" else ""
        _log.warning("provider breaker of %s: %s -> %s%s", model, before, state, detail)


def _circuit_open(model: str, seconds: float, why: str) -> ModelFailure:
    words = f"{why}: the provider of {model} is in an outage, next try in {seconds:.0f} s"
    return ModelFailure(ErrorKind.CIRCUIT_OPEN, words, seconds)


def _held_back(why: str, seconds: float) -> ModelFailure:
    return ModelFailure(ErrorKind.RATE_LIMITED, f"not sent: {why}", seconds)
