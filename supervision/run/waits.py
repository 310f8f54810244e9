"""What holds the work of a run back: roles that rest, providers of models that do not serve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from pydantic import JsonValue

from supervision.contract.base import Model
from supervision.contract.status import Waiting
from supervision.run.board import Board
from supervision.run.role_breaker import RoleBreaker
from supervision.run.web_details import rest_note


class ProviderWait(Model):
    """Work that waits for a provider of models: until `retry_at`, or without it for a person's `resume`."""

    name: str
    workflow_id: str
    model: str = ""
    why: str = ""
    retry_at: str | None = None

    def card(self) -> dict[str, JsonValue]:
        """How `status` shows the provider's breaker."""
        return {"provider": self.model, "state": "open", "waiting": self.name, "retry_at": self.retry_at}

    def request(self, expires_at: str) -> Waiting:
        """How `status` asks a person to mend the account."""
        return Waiting(
            id=self.name,
            kind="resume",
            workflow_id=self.workflow_id,
            prompt_preview=self.why,
            expires_at=expires_at,
        )


class Holds:
    """The breakers of a run's roles, and its waits for providers. `now` is the run's clock.

    `nested` are the waits inside the nested supervisors, by the subtask that they work on.
    """

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        self._board = board
        self._now = now
        self._breakers: dict[str, RoleBreaker] = {}
        self._own: list[ProviderWait] = []
        self.nested: dict[str, list[ProviderWait]] = {}

    def breaker(self, role: str) -> RoleBreaker:
        """The breaker of a role."""
        if role not in self._breakers:
            self._breakers[role] = RoleBreaker(role, self._now)
        return self._breakers[role]

    @contextmanager
    def waiting(self, wait: ProviderWait) -> Iterator[None]:
        """Marks that something waits for a provider."""
        self._own.append(wait)
        try:
            yield
        finally:
            self._own.remove(wait)

    @property
    def waits(self) -> list[ProviderWait]:
        """What waits for a provider, here and in nested supervisors that run."""
        running = {report.id for report in self._board.reports() if report.state == "running"}
        return [*self._own, *(wait for id, waits in self.nested.items() if id in running for wait in waits)]

    def asked(self) -> list[ProviderWait]:
        """Those of the waits that only a person can end."""
        return [wait for wait in self.waits if wait.retry_at is None]

    def cards(self) -> list[dict[str, JsonValue]]:
        """The breakers that hold something back, of roles and of providers."""
        roles = [breaker.card() for breaker in self._breakers.values() if breaker.failures]
        return roles + [wait.card() for wait in self.waits if wait.retry_at is not None]

    def notes(self) -> list[str]:
        """One line for people on each of them."""
        resting = [rest_note(card) for card in self.cards() if card["state"] != "closed"]
        return resting + [f"{wait.name} waits for resume: {wait.why}" for wait in self.asked()]
