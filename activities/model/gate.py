"""What stands between this process and the provider: breakers by model, pacing after 429, tokens per minute."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from opentelemetry import metrics

from activities.model.port import Json, LanguageModel, ModelFailure, ModelMessage, ModelRequest, Progress
from activities.model.token_limit import Reservation, TokenLimit
from supervision import limits
from supervision.contract.base import Model
from supervision.errors import ErrorKind
from supervision.provider.provider_breaker import Go, Paced, ProviderBreaker, ProviderState, Refused, Ticket

_log = logging.getLogger(__name__)
_meter = metrics.get_meter("temporal-supervisor")
_transitions = _meter.create_counter(
    "supervisor.provider_breaker.transitions", description="changes of a provider breaker's state, by model and state"
)
_state = _meter.create_gauge(
    "supervisor.provider_breaker.open", description="by model: 1 while no call is sent or only a probe, else 0"
)


class ModelGate(LanguageModel):
    """A model whose calls are sent only while its provider can bear them. One per process.

    Beside what the model itself raises: ModelFailure CircuitOpen with the remaining seconds while the breaker of the
    request's model is open, and RateLimited when a 429 or `tokens_per_minute` demands more than GATE_WAIT of
    patience. Shorter waits, and those for calls whose outcome decides, happen inside; cancelling ends them.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokens_per_minute: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._clock = clock
        self._tokens = TokenLimit(tokens_per_minute, clock) if tokens_per_minute else None
        self._breakers: dict[str, ProviderBreaker] = {}
        self._seen: dict[str, ProviderState] = {}
        self._changed = asyncio.Event()

    async def complete(self, request: ModelRequest, progress: Progress) -> ModelMessage:
        """Sends one request as soon as it may be sent."""
        tokens = await self._tokens.reserve(request) if self._tokens else None
        try:
            ticket = await self._admit(request.model)
        except BaseException:
            if tokens:
                tokens.unused()
            raise
        return await self._send(request, progress, ticket, tokens)

    def output_schema(self, model: type[Model]) -> Json:
        """As the model's."""
        return self._model.output_schema(model)

    async def close(self) -> None:
        """Closes the model's connections."""
        await self._model.close()

    def states(self) -> list[dict[str, Any]]:
        """The breakers: {model, state, failures, retry_in, paced_for}; times in seconds, 0 when over."""
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

    async def _admit(self, model: str) -> Ticket:
        breaker = self._breakers.setdefault(model, ProviderBreaker())
        while True:
            now = self._clock()
            answer = breaker.ask(now, any(other.trusted(now) for other in self._breakers.values()))
            if isinstance(answer, Go):
                self._note(model)
                return answer.ticket
            if isinstance(answer, Refused):
                raise _circuit_open(model, answer.seconds)
            if not isinstance(answer, Paced):
                await self._changed.wait()
            elif answer.seconds <= limits.GATE_WAIT.total_seconds():
                await asyncio.sleep(answer.seconds)
            else:
                raise _paced(model, answer.seconds)

    async def _send(
        self, request: ModelRequest, progress: Progress, ticket: Ticket, tokens: Reservation | None
    ) -> ModelMessage:
        breaker, answering = self._breakers[request.model], False

        def on_content() -> None:
            nonlocal answering
            answering = True
            breaker.answering(ticket, self._clock())
            self._wake()

        progress.on_content = on_content
        try:
            message = await self._model.complete(request, progress)
        except BaseException as error:
            if isinstance(error, ModelFailure):
                breaker.failed(ticket, self._clock(), error.kind, error.retry_after)
                rest = breaker.remaining(self._clock())
                if error.retryable and rest >= limits.CIRCUIT_RETRY_BELOW.total_seconds():
                    raise _circuit_open(request.model, rest, error.message) from error
                # there is no use in coming back earlier, nor later as the call may be the next probe
                error.retry_after = max(error.retry_after or 0, rest) or None
            else:  # cancelled
                breaker.released(ticket)
            if tokens and not answering:
                tokens.unused()
            raise
        else:
            breaker.succeeded(ticket, self._clock())
            if tokens:
                tokens.used(message.usage)
            return message
        finally:
            self._note(request.model)
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _note(self, model: str) -> None:
        """Tells the operator of a change, once."""
        breaker, now = self._breakers[model], self._clock()
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
