"""What a provider's headers say of its limits, model by model, and the rate of a queue that follows from it."""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from activities.model.port import RequestLimits
from supervision import limits

_RECENT_CALLS = 300
_MINUTE = 60.0


@dataclass(frozen=True)
class _Sent:
    model: str
    at: float


class NamedLimits:
    """The limits that a provider named lately, and the calls of this process that they are about.

    A provider limits each model on its own, a queue holds the calls of all: the queue may be as fast as the model
    allows that would be the first to reach its limit, at the share of calls that each has now.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        life = limits.NAMED_LIFE.total_seconds()
        self._named: TTLCache[str, RequestLimits] = TTLCache(limits.KNOWN_MODELS, life, timer=clock)
        self._sent: deque[_Sent] = deque(maxlen=_RECENT_CALLS)
        self._silent = 0

    def sent(self, model: str) -> None:
        """Takes note of a call that goes out."""
        self._sent.append(_Sent(model, self._clock()))

    def heard(self, model: str, named: RequestLimits | None) -> None:
        """Takes note of what an answer said, or that it named no limit."""
        self._silent = self._silent + 1 if named is None else 0
        if named is not None:
            self._named[model] = named

    @property
    def is_silent(self) -> bool:
        """True if a number of answers in a row named no limit."""
        return self._silent >= limits.NAMED_SILENCE and not self._named

    def rate(self) -> float | None:
        """Returns the highest rate of the queue at which no model's named limit is reached; None if none is named."""
        shares = self._shares()
        rates = [
            named.per_minute / _MINUTE / shares.get(model, 1.0)
            for model, named in self._named.items()
            if shares.get(model, 0.0) >= limits.NAMED_MODEL_SHARE
        ]
        return max(min(rates), limits.FOUND_LEAST_RATE) if rates else None

    def is_near(self) -> bool:
        """True if little is left of one of the limits."""
        return any(named.left <= limits.NAMED_NEAR * named.per_minute for named in self._named.values())

    def sent_lately(self) -> float:
        """Returns the calls a second of this process in the last ten seconds."""
        since = self._clock() - 10
        return sum(call.at >= since for call in self._sent) / 10

    def _shares(self) -> dict[str, float]:
        since = self._clock() - _MINUTE
        counts = Counter(call.model for call in self._sent if call.at >= since)
        return {model: count / counts.total() for model, count in counts.items()}
