"""Which models of a fallback chain can be used, by what the calls of a run have met."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from supervision.errors import ErrorKind

_LEAVING = (ErrorKind.CIRCUIT_OPEN, ErrorKind.MODEL_NOT_SERVED)


class ServingModels:
    """The models that a run leaves out: until a time, or until a person has done something about it.

    `now` is the run's clock.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._out: dict[str, datetime | None] = {}

    def failed(self, model: str, chain: Sequence[str], why: ErrorKind, seconds: float) -> str:
        """Returns the model of the chain to go on with after a call of `model` failed for good.

        One that is not served is left out, and one in an outage for so many seconds. A prompt too long for a window
        goes to the next model; other failures say nothing about the other models.
        """
        if why is ErrorKind.CONTEXT_OVERFLOW:
            return self.following(chain, model) or model
        if why not in _LEAVING:
            return model
        outage = why is ErrorKind.CIRCUIT_OPEN
        self._out[model] = self._now() + timedelta(seconds=seconds) if outage else None
        return self._best(chain) or model

    def bring_back(self) -> None:
        """Tries all models again."""
        self._out.clear()

    def choose(self, chain: Sequence[str]) -> str:
        """Returns the first model of a chain that is not left out.

        If all are, the one that comes back first, which is worth waiting for; the first one if none does.
        """
        return self._best(chain) or chain[0]

    def following(self, chain: Sequence[str], model: str) -> str | None:
        """Returns the first model after `model` that is not left out; None if there is none."""
        later = chain[chain.index(model) + 1 :] if model in chain else []
        return next((other for other in later if self._serves(other)), None)

    def _best(self, chain: Sequence[str]) -> str | None:
        for model in chain:
            if self._serves(model):
                return model
        returning = [(until, model) for model in chain if (until := self._out[model]) is not None]
        return min(returning)[1] if returning else None

    def _serves(self, model: str) -> bool:
        if model not in self._out:
            return True
        until = self._out[model]
        return until is not None and until <= self._now()
