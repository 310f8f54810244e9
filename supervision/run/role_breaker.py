"""The circuit breaker of one role in a run: a role that keeps failing gets no attempts for a while."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import JsonValue

from supervision.base import limits

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, eq=False)
class RoleTicket:
    """One admitted attempt. `epoch` counts the openings before it, so that a late outcome is known as one."""

    epoch: int
    probe: bool


class RoleBreaker:
    """Admits the attempts of a role. Deterministic: `now` is the workflow's clock.

    Opens after ROLE_BREAKER_FAILURES failed attempts in a row. After a cool-down one probe is admitted: its success
    closes the breaker, its failure opens it for twice as long, up to ROLE_BREAKER_COOLDOWN_MAX. Every ticket is
    settled once, by `succeeded`, `failed` or `released`; outcomes of attempts that began before the last opening
    change nothing.
    """

    def __init__(self, role: str, now: Callable[[], datetime]) -> None:
        self.role = role
        self._now = now
        self._epoch = 0
        self.failures = 0  # failed attempts in a row
        self._open_until: datetime | None = None
        self._cooldown = limits.ROLE_BREAKER_COOLDOWN
        self._probe: RoleTicket | None = None

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
        state = self.state
        return state == "closed" or (state == "half_open" and self._probe is None)

    def admit(self) -> RoleTicket | None:
        """Returns a ticket, or None while the breaker is open. In the half-open state the ticket is the probe's."""
        if not self.admits():
            return None
        ticket = RoleTicket(self._epoch, probe=self._open_until is not None)
        if ticket.probe:
            self._probe = ticket
        return ticket

    def succeeded(self, ticket: RoleTicket) -> None:
        """Counts an attempt that gave a finding."""
        if not self._counts(ticket):
            return
        self.failures = 0
        self._open_until = self._probe = None
        self._cooldown = limits.ROLE_BREAKER_COOLDOWN

    def failed(self, ticket: RoleTicket) -> None:
        """Counts an attempt that failed for a reason that says something about the role."""
        if not self._counts(ticket):
            return
        self.failures += 1
        if ticket.probe:
            self._open(min(self._cooldown * 2, limits.ROLE_BREAKER_COOLDOWN_MAX))
        elif self.failures >= limits.ROLE_BREAKER_FAILURES:
            self._open(limits.ROLE_BREAKER_COOLDOWN)

    def released(self, ticket: RoleTicket) -> None:
        """Takes back the ticket of an attempt that says nothing about the role; a probe's lease is free again."""
        if ticket is self._probe:
            self._probe = None

    def card(self) -> dict[str, JsonValue]:
        """Returns what `status` shows."""
        retry_at = self.retry_at
        return {
            "role": self.role,
            "state": self.state,
            "failures": self.failures,
            "retry_at": retry_at.isoformat() if retry_at else None,
        }

    def _counts(self, ticket: RoleTicket) -> bool:
        return ticket is self._probe if ticket.probe else ticket.epoch == self._epoch

    def _open(self, cooldown: timedelta) -> None:
        self._epoch += 1
        self._probe = None
        self._cooldown = cooldown
        self._open_until = self._now() + cooldown
