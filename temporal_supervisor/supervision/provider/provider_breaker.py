"""The circuit breaker of one provider and model in a process.

An outage costs a handful of requests, then single probes. A 429 opens nothing: it narrows the
window of calls in flight. Callers request a ticket before they send, and report the outcome with
it. The clock is an argument, in seconds.
"""

from datetime import timedelta
from typing import Literal, NamedTuple

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import OUTAGES, ErrorKind

# Unanswered calls while nothing proves that the provider serves: 5 failures + 3 in flight < 10.
BREAKER_WINDOW = 4
# A provider that answered this recently gets any number of calls at once.
BREAKER_TRUST = timedelta(seconds=30)
_NEVER = float("-inf")
_RECENT = limits.BREAKER_RECENT.total_seconds()
_HALVINGS_APART = 1.0  # seconds: a burst is refused as one, within a moment
# For one call more, at most: with as many as a large window has, slow calls would take an hour to
# fill it.
_GRANTS = 4


class CallWindow:
    """The number of calls that may be in flight, at most `most`.

    A 429 halves it, and some granted calls widen it by one. A call is granted with its first
    content: the duration of an answer is no sign of the limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = most  # calls that may be in flight
        self._granted = 0  # since the size changed
        self._halved_at = _NEVER

    def narrow(self, most: int) -> None:
        """Lowers the maximum; calls in flight beyond it may end normally."""
        self._most = most
        self.size = min(self.size, most)

    def refused(self, in_flight: int, now: float) -> None:
        """Records a rejected call; `in_flight` includes it."""
        if now - self._halved_at >= _HALVINGS_APART:
            self._halved_at = now
            self._granted = 0
            self.size = max(min(self.size, in_flight) // 2, 1)

    def granted(self) -> None:
        """Records a call to which the provider has sent its first content."""
        self._granted += 1
        if self._granted >= min(self.size, _GRANTS):
            self._granted = 0
            self.size = min(self.size + 1, self._most)


ProviderState = Literal["closed", "open", "half_open"]

CallTicket = int
"""An admitted call, to be sent and reported on: its place in the order of sending."""


class Hold(NamedTuple):
    """A call that may not be sent now, for a number of seconds or until another call progresses.

    It is `open` if the breaker is, and `paced` if the provider asked for fewer calls. Without
    `seconds`, the hold ends when a call in flight gives content, ends or stalls.
    """

    why: Literal["open", "paced", "no room"]
    seconds: float = 0.0


class ProviderBreaker:
    """Opens after BREAKER_FAILURES outages in a row, or at one with a wait of a cool-down or more.

    A row of failures is not enough where many calls are in flight, of which five may fail one after
    the other by bad luck: of the calls that were decided within BREAKER_RECENT, BREAKER_SHARE must
    have failed, too, each by its last attempt.

    A row ends with a call that was sent after the row began: its first content takes back refused
    calls, so that a few of them among many slow good ones do not open the breaker; only a whole
    answer takes back answers that broke off.

    The window bounds the calls in flight, without those that have stalled. Unless the provider is
    trusted, at most BREAKER_WINDOW of them are unanswered, which bounds the requests that an outage
    costs. It is trusted for BREAKER_TRUST after content, until a failure.

    Half-open leases one probe at a time. Any readable answer to it closes the breaker, a 429 or a
    rejection too. An outage or an unreadable answer opens it for another cool-down.
    """

    def __init__(self, most: int = limits.MODEL_SLOTS) -> None:
        self.window = CallWindow(most)
        self._sent = 0  # calls admitted, ever: the latest ticket
        self._in_flight: dict[CallTicket, float] = {}  # when they were sent; without outcome yet
        self._calls: dict[CallTicket, str] = {}  # the names of those
        # By name: when, and True for content; the latest last.
        self._decided: dict[str, tuple[float, bool]] = {}
        self._unanswered: set[CallTicket] = set()  # those of them without content
        self._trusted_until = _NEVER  # any number of calls may be unanswered until then
        self.failures = 0  # outages in a row
        self._broken = 0  # those of them that came after first content
        self._row_start = 0  # answers to calls up to this number say nothing about the present
        self._opened_at = 0  # outages of calls up to this number were before the last opening
        self._open_until: float | None = None  # end of the cool-down; None while closed
        self._probe: CallTicket | None = None  # the one call that is out while half-open
        self._paced_until = _NEVER  # a 429 asked for no calls until then

    def state(self, now: float) -> ProviderState:
        """Returns the state; it is half-open from the cool-down's end to the probe's outcome."""
        if self._open_until is None:
            return "closed"
        return "open" if now < self._open_until else "half_open"

    def remaining(self, now: float) -> float:
        """Returns the remaining cool-down in seconds; 0 if the breaker is not open."""
        return max((self._open_until or now) - now, 0.0)

    def request_ticket(self, now: float, call: str = "") -> CallTicket | Hold:
        """Returns a ticket for a call, or the hold for which it has to wait.

        All attempts at a call share its name `call`.
        """
        if wait := self.remaining(now):
            return Hold("open", wait)
        if (wait := self._paced_until - now) > 0:
            return Hold("paced", wait)
        undecided = now >= self._trusted_until and len(self._unanswered) >= BREAKER_WINDOW
        is_full = undecided or len(self._at_work(now)) >= self.window.size
        probing = self._open_until is not None
        if self._probe is not None or (is_full and not probing):
            return Hold("no room")
        self._sent += 1
        self._in_flight[self._sent] = now
        self._calls[self._sent] = call or str(self._sent)
        self._unanswered.add(self._sent)
        self._probe = self._sent if probing else None
        return self._sent

    def next_stall(self, now: float) -> float | None:
        """Returns the seconds until a call in flight may count as stalled; None if none can.

        A call that has given content does not stall: its own watchdog ends it if it falls silent.
        """
        stalled = now - limits.STALLED_AFTER.total_seconds()
        waiting = (
            self._in_flight[ticket] for ticket in self._unanswered if ticket in self._in_flight
        )
        first = min((sent for sent in waiting if sent > stalled), default=None)
        return None if first is None else first - stalled

    def answering(self, ticket: CallTicket, now: float) -> None:
        """Records a call's first content: the provider works, but the call may still fail."""
        if ticket in self._unanswered:
            self._unanswered.discard(ticket)
            self.window.granted()
        self._decide(ticket, now, has_content=True)
        if self._open_until is None and ticket > self._row_start:
            self.failures = self._broken
            self._trusted_until = now + BREAKER_TRUST.total_seconds()

    def succeeded(self, ticket: CallTicket, now: float) -> None:
        """Records a call with a complete answer."""
        if ticket == self._probe:
            self._open_until = self._probe = None
        if ticket > self._row_start:
            self._broken = 0
        self.answering(ticket, now)
        self._in_flight.pop(ticket, None)
        self._calls.pop(ticket, None)

    def failed(
        self, ticket: CallTicket, now: float, kind: ErrorKind, retry_after: float | None = None
    ) -> None:
        """Records a failed call; `retry_after` is the provider's own wait in seconds."""
        asked = retry_after or 0.0
        if kind is ErrorKind.RATE_LIMITED:
            self.window.refused(len(self._in_flight), now)
            if self.window.size == 1:  # no narrower: less is later
                asked = asked or limits.MODEL_RETRY_INITIAL.total_seconds()
            self._paced_until = max(
                self._paced_until, now + min(asked, limits.PACE_MAX.total_seconds())
            )
            self._unanswered.discard(ticket)  # answered, not granted
        if kind not in OUTAGES | {ErrorKind.BAD_RESPONSE}:
            self.succeeded(ticket, now)  # an answer, whatever it says
            return
        is_probe, has_content = ticket == self._probe, ticket not in self._unanswered
        self._decide(ticket, now, has_content=False)
        self.released(ticket)
        if is_probe:
            self._open(now, asked)
        elif kind in OUTAGES and ticket > self._opened_at:
            self._row_start = self._row_start if self.failures else self._sent
            self.failures += 1
            self._broken += has_content
            self._trusted_until = _NEVER
            if (
                self.failures >= limits.BREAKER_FAILURES and self._fails_most(now)
            ) or asked >= limits.BREAKER_COOLDOWN.total_seconds():
                self._open(now, asked)

    def released(self, ticket: CallTicket) -> None:
        """Records a call that was given up.

        It proves nothing, and another call may be the probe.
        """
        self._in_flight.pop(ticket, None)
        self._calls.pop(ticket, None)
        self._unanswered.discard(ticket)
        if ticket == self._probe:
            self._probe = None

    def _decide(self, ticket: CallTicket, now: float, *, has_content: bool) -> None:
        """Records the outcome of a call, in place of its previous attempt's outcome."""
        call = self._calls.get(ticket)
        if call is None:
            return
        self._decided.pop(call, None)
        self._decided[call] = now, has_content
        while (oldest := next(iter(self._decided))) and self._decided[oldest][0] < now - _RECENT:
            del self._decided[oldest]

    def _fails_most(self, now: float) -> bool:
        """True if too large a share of the recently decided calls has failed."""
        recent = [has_content for at, has_content in self._decided.values() if at >= now - _RECENT]
        return recent.count(False) >= len(recent) * limits.BREAKER_SHARE

    def _at_work(self, now: float) -> list[float]:
        """Returns the start times of the calls in flight that have not stalled.

        A call without content for long may be dead, which its watchdog takes longer to notice.
        """
        stalled = now - limits.STALLED_AFTER.total_seconds()
        calls = self._in_flight.items()
        return [sent for ticket, sent in calls if ticket not in self._unanswered or sent > stalled]

    def _open(self, now: float, asked: float) -> None:
        wait = max(limits.BREAKER_COOLDOWN.total_seconds(), asked)
        self._open_until = now + min(wait, limits.BREAKER_COOLDOWN_MAX.total_seconds())
        self._opened_at = self._sent
        self._trusted_until = _NEVER
