"""The circuit breaker of one role in a run: a role that keeps failing gets no attempts for a while."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from supervision.base import limits

BreakerState = Literal["closed", "open", "half_open"]


class RoleBreaker:
    """Admits the attempts of a role. Deterministic: `now` is the workflow's clock.

    Opens after ROLE_BREAKER_FAILURES failed attempts in a row. After a cool-down one probe is admitted: its success
    closes the breaker, its failure opens it again. Every ticket, a number from 1, is settled once; outcomes of attempts
    that began before the last opening change nothing.
    """

    def __init__(self, role: str, now: Callable[[], datetime]) -> None:
        self.role = role
        self._now = now
        self._tickets = 0
        self._admitted: set[int] = set()  # tickets since the last opening that are not settled
        self.failures = 0  # failed attempts in a row
        self._open_until: datetime | None = None

    @property
    def state(self) -> BreakerState:
        """Half-open from the end of the cool-down until the probe's outcome."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half_open"

    @property
    def retry_at(self) -> datetime | None:
        """When an open breaker will admit its probe; None if no time is set."""
        return self._open_until if self.state == "open" else None

    def admits(self) -> bool:
        """True if `admit` would give a ticket now."""
        return self.state == "closed" or (self.state == "half_open" and not self._admitted)

    def admit(self) -> int | None:
        """Returns a ticket, or None while the breaker is open. In the half-open state the ticket is the probe's."""
        if not self.admits():
            return None
        self._tickets += 1
        self._admitted.add(self._tickets)
        return self._tickets

    def settle(self, ticket: int, succeeded: bool | None) -> None:
        """Counts whether an attempt succeeded; None says nothing about the role, and a probe's lease is free again."""
        if ticket not in self._admitted:
            return
        self._admitted.discard(ticket)
        if succeeded:
            self.failures, self._open_until = 0, None
        elif succeeded is not None:
            self.failures += 1
            if self.failures >= limits.ROLE_BREAKER_FAILURES:
                self._admitted.clear()
                self._open_until = self._now() + limits.ROLE_BREAKER_COOLDOWN

    def card(self) -> dict[str, JsonValue]:
        """Returns what `status` shows."""
        retry_at = self.retry_at
        return {
            "role": self.role,
            "state": self.state,
            "failures": self.failures,
            "retry_at": retry_at.isoformat() if retry_at else None,
        }
