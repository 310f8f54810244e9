"""What the work of a run waits for: roles whose breaker is open, providers of models that do not serve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from pydantic import JsonValue

from supervision.contract.base import Model
from supervision.contract.status import Waiting
from supervision.run.role_breaker import RoleBreaker
from supervision.run.web_details import breaker_note


class ProviderWait(Model):
    """Work that waits for a provider of models: until `retry_at`, or without it for a person's `resume`."""

    name: str
    workflow_id: str
    model: str = ""
    why: str = ""
    retry_at: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Tells waits apart in a tree of runs; candidates of one subtask that wait alike are one."""
        return self.workflow_id, self.name

    def card(self) -> dict[str, JsonValue]:
        """Returns what `status` shows of the provider's breaker."""
        shown = {"provider": self.model, "state": "open", "waiting": self.name, "retry_at": self.retry_at}
        return {**shown, "why": self.why}

    def request(self, expires_at: str) -> Waiting:
        """Returns how `status` asks a person to fix the account."""
        return Waiting(
            id=self.name,
            kind="resume",
            workflow_id=self.workflow_id,
            prompt_preview=self.why,
            expires_at=expires_at,
        )


class Waits:
    """The breakers of a run's roles, and its waits for providers.

    `now` is the run's clock, `below` returns what nested supervisors wait for.
    """

    def __init__(self, now: Callable[[], datetime], below: Callable[[], list[ProviderWait]]) -> None:
        self._now = now
        self._below = below
        self._breakers: dict[str, RoleBreaker] = {}
        self._own: list[ProviderWait] = []

    def breaker(self, role: str) -> RoleBreaker:
        """Returns the breaker of a role."""
        if role not in self._breakers:
            self._breakers[role] = RoleBreaker(role, self._now)
        return self._breakers[role]

    @contextmanager
    def waiting(self, wait: ProviderWait) -> Iterator[None]:
        """Shows `wait` while the block runs."""
        self._own.append(wait)
        try:
            yield
        finally:
            self._own.remove(wait)

    @property
    def current(self) -> list[ProviderWait]:
        """All waits for providers, here and in nested supervisors."""
        return [*self._own, *self._below()]

    @property
    def for_resume(self) -> list[ProviderWait]:
        """The waits that only a person can end."""
        return [wait for wait in self.current if wait.retry_at is None]

    def cards(self) -> list[dict[str, JsonValue]]:
        """Returns the breakers that are open or have counted failures, of roles and of providers."""
        roles = [breaker.card() for breaker in self._breakers.values() if breaker.failures]
        return roles + [wait.card() for wait in self.current if wait.retry_at is not None]

    def notes(self) -> list[str]:
        """Returns one line for people on each wait."""
        breakers = [breaker_note(card) for card in self.cards() if card["state"] != "closed"]
        return breakers + [f"{wait.name} waits for resume: {wait.why}" for wait in self.for_resume]
