"""The circuit breaker of one provider and model in a process: an outage costs a handful of requests, then probes.

Every caller asks before it sends and settles its ticket after. The clock is an argument, in seconds.
"""

from dataclasses import dataclass
from typing import Literal

from supervision import limits
from supervision.errors import ODD, OUTAGES, PACING

ProviderState = Literal["closed", "open", "half_open"]

_NEVER = float("-inf")


@dataclass(frozen=True)
class Ticket:
    """One admitted call: how many openings came before it, its place in the order of sending."""

    epoch: int
    number: int
    probe: bool


@dataclass(frozen=True)
class Go:
    """Send the call, then settle the ticket."""

    ticket: Ticket


@dataclass(frozen=True)
class Wait:
    """Ask again after the next change: calls in flight will show whether the provider serves."""


@dataclass(frozen=True)
class Refused:
    """The breaker is open for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Paced:
    """The provider asked for fewer calls: none for `seconds`."""

    seconds: float


Admission = Go | Wait | Refused | Paced


class ProviderBreaker:
    """Opens after BREAKER_FAILURES outages in a row, at once when an outage names a wait of a cool-down or more.

    *In a row* is broken only by evidence younger than the row: the success of a call sent after it began. A sign of
    life (first content) breaks a row of calls that failed without one, so that some refused calls among many slow
    good ones open nothing; calls that broke off after it keep counting until one succeeds.

    Unless the provider is trusted, at most BREAKER_WINDOW calls are unanswered at a time, so an outage met by any
    number of callers costs at most BREAKER_FAILURES + BREAKER_WINDOW - 1 requests until it is open. It is trusted for
    BREAKER_TRUST after a sign of life that is younger than the last failure; what was sent then, before the first
    failure came back, is on top.

    Half-open leases one probe at a time. A probe that is answered in any readable way closes the breaker, a 429 or a
    rejection too: the outage is over, and pacing or the caller takes over from there. An outage or an unreadable
    answer opens it for another cool-down.
    """

    def __init__(self) -> None:
        self._epoch = 0
        self._sent = 0
        self._unanswered: set[Ticket] = set()
        self._trusted_until = _NEVER
        self._row_from = 0
        self._refused = 0
        self._broken = 0
        self._open_until: float | None = None
        self._probe: Ticket | None = None
        self._paced_until = _NEVER

    def state(self, now: float) -> ProviderState:
        """Half-open from the end of the cool-down until the probe's outcome."""
        if self._open_until is None:
            return "closed"
        return "open" if now < self._open_until else "half_open"

    @property
    def failures(self) -> int:
        """Outages in a row."""
        return self._refused + self._broken

    def remaining(self, now: float) -> float:
        """Seconds of cool-down left, 0 when not open."""
        return max((self._open_until or now) - now, 0.0)

    def paced(self, now: float) -> float:
        """Seconds for which the provider wants no call, 0 when it wants them."""
        return max(self._paced_until - now, 0.0)

    def trusted(self, now: float) -> bool:
        """Whether the provider has shown lately that it serves this model."""
        return now < self._trusted_until

    def ask(self, now: float, vouched: bool = False) -> Admission:
        """What a call should do now. `vouched`: the provider is trusted for another model."""
        if wait := self.remaining(now):
            return Refused(wait)
        if wait := self.paced(now):
            return Paced(wait)
        probing = self._open_until is not None
        trusted = self.trusted(now) or (vouched and not self.failures)
        if self._probe if probing else not trusted and len(self._unanswered) >= limits.BREAKER_WINDOW:
            return Wait()
        self._sent += 1
        ticket = Ticket(self._epoch, self._sent, probing)
        self._unanswered.add(ticket)
        if probing:
            self._probe = ticket
        return Go(ticket)

    def answering(self, ticket: Ticket, now: float) -> None:
        """The call's first content has come: a sign of life, not yet a success."""
        self._unanswered.discard(ticket)
        if self._young(ticket):
            self._trust(now)
            self._refused = 0

    def succeeded(self, ticket: Ticket, now: float) -> None:
        """The call was answered in full."""
        if ticket == self._probe:
            self._close(now)
        self.answering(ticket, now)
        if self._young(ticket):
            self._broken = 0

    def failed(self, ticket: Ticket, now: float, kind: str, retry_after: float | None = None) -> None:
        """The call failed; `kind` is the project's name of the failure, `retry_after` the provider's wish."""
        if kind in PACING and retry_after:
            self._paced_until = max(self._paced_until, now + min(retry_after, limits.PACE_MAX.total_seconds()))
        if kind not in OUTAGES | ODD:
            if ticket == self._probe:
                self._close(now)
            self.answering(ticket, now)
            return
        silent = ticket in self._unanswered
        self._unanswered.discard(ticket)
        if ticket == self._probe:
            self._open(now, retry_after)
        elif kind in OUTAGES and ticket.epoch == self._epoch and not ticket.probe:
            self._count(now, silent, retry_after)

    def released(self, ticket: Ticket) -> None:
        """The call was given up before an outcome: it says nothing, and a probe's lease is free again."""
        self._unanswered.discard(ticket)
        if ticket == self._probe:
            self._probe = None

    def _young(self, ticket: Ticket) -> bool:
        """Whether the ticket's outcome says something about the present of a closed breaker."""
        return self._open_until is None and ticket.epoch == self._epoch and ticket.number > self._row_from

    def _count(self, now: float, silent: bool, retry_after: float | None) -> None:
        if self.trusted(now) or not self.failures:
            self._row_from = self._sent
        self._trusted_until = _NEVER
        self._refused += silent
        self._broken += not silent
        if self.failures >= limits.BREAKER_FAILURES or (retry_after or 0) >= limits.BREAKER_COOLDOWN.total_seconds():
            self._open(now, retry_after)

    def _open(self, now: float, retry_after: float | None) -> None:
        wait = max(limits.BREAKER_COOLDOWN.total_seconds(), retry_after or 0)
        self._open_until = now + min(wait, limits.BREAKER_COOLDOWN_MAX.total_seconds())
        self._epoch += 1
        self._probe = None
        self._trusted_until = _NEVER

    def _close(self, now: float) -> None:
        self._open_until = self._probe = None
        self._row_from = self._sent
        self._refused = self._broken = 0
        self._trust(now)

    def _trust(self, now: float) -> None:
        self._trusted_until = now + limits.BREAKER_TRUST.total_seconds()
