"""The models of fallback chains that are available, or away, according to a run's calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind

_NEVER = datetime.max.replace(tzinfo=UTC)  # until a person resumes the run


@dataclass
class Outage:
    """An outage of a model until the time `until`, or until a person resumes the run.

    At its end the `first` piece of work calls the model. The `waiting` work follows if that
    succeeds; `rounds` counts first calls that failed.
    """

    why: str
    until: datetime | None = None
    rounds: int = 0
    first: object | None = None
    waiting: set[object] = field(default_factory=set)

    def wait_behind(self, work: object) -> None:
        """Makes work wait until the first one has succeeded."""
        self.waiting.add(work)

    def put_first(self, work: object) -> None:
        """Makes work the first to call the model."""
        self.first = work

    def last_until(self, time: datetime | None) -> None:
        """Moves the end to a later time; None means until a person resumes the run."""
        self.until = None if time is None else max(self.until or time, time)

    def last_for(self, seconds: float, chance: float, now: datetime) -> None:
        """Moves the end by at least `seconds`: more after each failed try, and by chance."""
        rounds = min(self.rounds, 20)  # no date holds more
        pause = limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR**rounds
        least = max(timedelta(seconds=seconds), min(pause, limits.PROVIDER_PAUSE_MAX))
        self.last_until(now + least * (1 + limits.RETRY_JITTER * chance))


class ServingModels:
    """The models that a run leaves out for a time or until a `resume`, and their outages.

    `now` is the run's clock. `outage_ended` is called when waiting work may call its model. The
    `notice` tells users that the model limits the answer. `extract` is True for the stand-in model,
    whose answers have no confidence.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.outage_ended: Callable[[], object] = lambda: None
        self.notice: str | None = None
        self.extract = False
        self._out: dict[str, datetime] = {}  # until when each is left out
        self._outages: dict[str, Outage] = {}

    def describe(self, notice: str | None, *, extract: bool) -> None:
        """Sets the notice to users, and `extract` for the stand-in model."""
        self.notice = notice
        self.extract = extract

    def set_listener(self, work: Callable[[], object]) -> None:
        """Sets the function that is called when an outage ends."""
        self.outage_ended = work

    def outage(self, model: str) -> Outage | None:
        """Returns the known outage of a model; None if there is none."""
        return self._outages.get(model)

    def is_away(self, chain: Sequence[str]) -> bool:
        """True if work with these models would have to wait."""
        return bool(chain) and self.choose(chain) in self._outages

    def went_away(self, model: str, work: object, why: str) -> Outage:
        """Records that a call found the model away.

        Returns the outage, whose first work is not chosen yet.
        """
        outage = self._outages.setdefault(model, Outage(why))
        if outage.first is work:
            outage.first, outage.rounds = None, outage.rounds + 1
        outage.why = why
        return outage

    def answered(self, model: str, work: object) -> None:
        """Ends an outage if its first work was answered.

        A late answer to other work does not end it.
        """
        outage = self._outages.get(model)
        if outage is not None and outage.first is work:
            del self._outages[model]
            self._out.pop(model, None)
            self.outage_ended()

    def leave(self, work: object) -> None:
        """Removes a piece of work from all outages, and ends outages without other work."""
        before = len(self._outages)
        for model, outage in list(self._outages.items()):
            outage.waiting.discard(work)
            if outage.first is work:
                outage.first = None
            if outage.first is None and not outage.waiting:
                del self._outages[model]
        if len(self._outages) < before:
            self.outage_ended()

    def failed(self, model: str, chain: list[str], why: ErrorKind, seconds: float) -> str:
        """Returns the next model of a chain after a call of `model` failed for good.

        A model that is not served is left out, and one in an outage is left out for `seconds`. A
        prompt that is too long for a model, or that it refuses, goes to a later model; the chain
        loses this one, which would fail again. Other failures have no effect on the choice.
        """
        if why in (ErrorKind.CONTEXT_OVERFLOW, ErrorKind.REFUSED):
            following = next(filter(self._serves, chain[chain.index(model) + 1 :]), None)
            if following is None:
                return model
            chain.remove(model)
            return following
        if why is ErrorKind.CIRCUIT_OPEN:
            self._out[model] = self._now() + timedelta(seconds=seconds)
        elif why is ErrorKind.MODEL_NOT_SERVED:
            self._out[model] = _NEVER
        else:
            return model
        return self._best(chain) or model

    def retry_all(self) -> None:
        """Makes all models available again."""
        self._out.clear()

    def choose(self, chain: Sequence[str]) -> str:
        """Returns the first available model of a chain.

        If none is, it is the one that returns first, else the first one.
        """
        return self._best(chain) or chain[0]

    def _best(self, chain: Sequence[str]) -> str | None:
        serving = next(filter(self._serves, chain), None)
        if serving is not None:
            return serving

        returning = [model for model in chain if self._returns_at(model) < _NEVER]
        # Of two that return at the same time the one that comes first by name: the same in a
        # replay.
        return min(returning, key=lambda model: (self._returns_at(model), model), default=None)

    def _returns_at(self, model: str) -> datetime:
        return self._out.get(model, _NEVER)

    def _serves(self, model: str) -> bool:
        return model not in self._outages and self._out.get(model, self._now()) <= self._now()
