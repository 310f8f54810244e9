"""The gate between this process and the provider: breakers by model, pacing after 429, tokens per minute."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from cachetools import LRUCache
from opentelemetry import metrics

from activities.model.pace.queue_pace import QueuePace, Refusal
from activities.model.pace.token_limit import TokenLimit
from activities.model.port import Json, LanguageModel, ModelFailure, ModelMessage, ModelRequest, StreamProgress
from activities.model.request.prefix_leads import PrefixLeads
from supervision import limits
from supervision.contract.base import Model
from supervision.errors import PACING, ErrorKind
from supervision.provider.provider_breaker import (
    BreakerOpen,
    CallTicket,
    Go,
    Paced,
    ProviderBreaker,
    ProviderState,
    Wait,
)

_log = logging.getLogger(__name__)
_meter = metrics.get_meter("temporal-supervisor")
_transitions = _meter.create_counter(
    "supervisor.provider_breaker.transitions", description="changes of a provider breaker's state, by model and state"
)
_state = _meter.create_gauge(
    "supervisor.provider_breaker.open", description="by model: 1 while no call is sent or only a probe, else 0"
)


class ModelGate(LanguageModel):
    """A model whose calls are sent only while its provider can serve them. One per process.

    Beside the failures of the model itself it raises ModelFailure CircuitOpen with the remaining seconds while the
    breaker of the request's model is open, and RateLimited if a 429 or `tokens_per_minute` would make the call wait
    for more than GATE_WAIT. It waits itself for less than that, for the outcome of calls that decide whether the
    breaker opens, and for the first call with a prefix that many share; cancelling ends the wait.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        pace: QueuePace | None = None,
    ) -> None:
        self._model = model
        self._pace = pace
        self._clock = clock
        self._tokens = TokenLimit(tokens_per_minute, clock) if tokens_per_minute else None
        self._leads = PrefixLeads(clock)
        # Bounded, as requests may name models of their own.
        self._breakers: LRUCache[str, ProviderBreaker] = LRUCache(limits.KNOWN_MODELS)
        self._seen: LRUCache[str, ProviderState] = LRUCache(limits.KNOWN_MODELS)
        self._last_failures: LRUCache[str, str] = LRUCache(limits.KNOWN_MODELS)
        self._changed = asyncio.Event()

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Returns the answer to a request, which is sent as soon as it may be."""
        sent = self._pace.handed_out(request.model) if self._pace else None
        tokens = await self._tokens.reserve(request) if self._tokens else None
        answered = False
        try:
            async with self._leads.turn(request, progress):
                await self._spaced()
                message = await self._send(request, progress, await self._admit(request.model), sent)
            answered = True
        finally:
            # Content that has come is paid for, even if the call failed or was cancelled later.
            if tokens and not answered and not progress.has_content:
                tokens.unused()
        if tokens:
            tokens.used(message.usage)
        return message

    def output_schema(self, model: type[Model]) -> Json:
        """Returns the schema that the model gives."""
        return self._model.output_schema(model)

    async def close(self) -> None:
        """Closes the model's connections."""
        await self._model.close()

    def states(self) -> list[dict[str, Any]]:
        """Returns the breakers: {model, state, failures, retry_in, paced_for}; times in seconds, 0 when over."""
        now = self._clock()
        return [
            {
                "model": name,
                "state": breaker.state(now),
                "failures": breaker.failures,
                "retry_in": breaker.remaining(now),
                "paced_for": breaker.paced(now),
            }
            for name, breaker in self._breakers.items()
        ]

    async def _admit(self, model: str) -> CallTicket:
        breaker = self._breaker(model)
        while True:
            now = self._clock()
            admission = breaker.ask(now, any(other.trusted(now) for other in self._breakers.values()))
            match admission:
                case Go():
                    self._note(model)
                    return admission.ticket
                case BreakerOpen():
                    raise _circuit_open(model, admission.seconds, self._last_failures.get(model, "not sent"))
                case Paced() if admission.seconds > limits.GATE_WAIT.total_seconds():
                    raise _paced(model, admission.seconds)
                case Paced():
                    await asyncio.sleep(admission.seconds)
                    await self._spaced()
                case Wait():
                    # Other callers ask and report meanwhile, so the breaker is asked again after every change.
                    await self._changed.wait()

    async def _send(
        self, request: ModelRequest, progress: StreamProgress, ticket: CallTicket, sent: Refusal | None
    ) -> ModelMessage:
        """Sends the call and reports its outcome to the breaker, whatever it is."""
        breaker = self._breaker(request.model)

        def on_content() -> None:
            breaker.answering(ticket, self._clock())
            self._wake()

        progress.listen(on_content)
        try:
            message = await self._model.complete(request, progress)
            breaker.succeeded(ticket, self._clock())
            if self._pace:
                self._pace.answered(request.model, progress.request_limits)
        except ModelFailure as failure:
            breaker.failed(ticket, self._clock(), failure.kind, failure.retry_after)
            self._last_failures[request.model] = failure.message
            if self._pace and sent and failure.kind in PACING:
                self._pace.answered(request.model, progress.request_limits)
                # Before the call is given back: it returns to the queue, whose rate should be lower by then.
                await self._pace.refused(sent, progress.request_limits)
            cooldown = breaker.remaining(self._clock())
            if failure.retryable and cooldown >= limits.CIRCUIT_RETRY_BELOW.total_seconds():
                raise _circuit_open(request.model, cooldown, failure.message) from failure
            if cooldown > (failure.retry_after or 0):
                # Retry exactly when the breaker half-opens: earlier is refused, later delays the probe.
                raise failure.after(cooldown) from None
            raise
        finally:
            breaker.released(ticket)  # after an outcome it changes nothing; without one the call was given up
            self._note(request.model)
            self._wake()
        return message

    async def _spaced(self) -> None:
        if self._pace:
            await self._pace.spaced()

    def _breaker(self, model: str) -> ProviderBreaker:
        breaker: ProviderBreaker = self._breakers.setdefault(model, ProviderBreaker())
        return breaker

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _note(self, model: str) -> None:
        """Records a change of the breaker's state in metrics and log, once."""
        breaker, now = self._breaker(model), self._clock()
        state, before = breaker.state(now), self._seen.get(model, "closed")
        if state == before:
            return
        self._seen[model] = state
        _transitions.add(1, {"model": model, "state": state})
        _state.set(int(state != "closed"), {"model": model})
        detail = f" for {breaker.remaining(now):.0f} s" if state == "open" else ""
        _log.warning("provider breaker of %s: %s -> %s%s", model, before, state, detail)


def _circuit_open(model: str, seconds: float, why: str = "not sent") -> ModelFailure:
    return ModelFailure(
        ErrorKind.CIRCUIT_OPEN,
        f"{why}: the provider of {model} is in an outage, next try in {seconds:.0f} s",
        retryable=seconds < limits.CIRCUIT_RETRY_BELOW.total_seconds(),
        retry_after=seconds,
    )


def _paced(model: str, seconds: float) -> ModelFailure:
    return ModelFailure(
        ErrorKind.RATE_LIMITED,
        f"not sent: the provider of {model} asked for no calls for another {seconds:.0f} s",
        retryable=True,
        retry_after=seconds,
    )
