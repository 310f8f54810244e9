"""What the work of a run waits for: roles whose breaker is open, providers of models that do not serve."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from pydantic import JsonValue

from supervision.contract.base import Model
from supervision.contract.status import Waiting
from supervision.run.board import Board
from supervision.run.role_breaker import RoleBreaker
from supervision.run.web_details import breaker_note


class ProviderWait(Model):
    """Work that waits for a provider of models: until `retry_at`, or without it for a person's `resume`."""

    name: str
    workflow_id: str
    model: str = ""
    why: str = ""
    retry_at: str | None = None

    def card(self) -> dict[str, JsonValue]:
        """Returns what `status` shows of the provider's breaker."""
        return {"provider": self.model, "state": "open", "waiting": self.name, "retry_at": self.retry_at}

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
    """The breakers of a run's roles, and its waits for providers. `now` is the run's clock."""

    def __init__(self, board: Board, now: Callable[[], datetime]) -> None:
        self._board = board
        self._now = now
        self._breakers: dict[str, RoleBreaker] = {}
        self._own: list[ProviderWait] = []
        self._nested: dict[str, list[ProviderWait]] = {}

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

    def set_nested(self, subtask_id: str, waits: list[ProviderWait]) -> None:
        """Takes over what the nested supervisor of a subtask waits for."""
        self._nested[subtask_id] = waits

    @property
    def current(self) -> list[ProviderWait]:
        """All waits for providers, here and in nested supervisors that run."""
        if not self._nested:
            return list(self._own)
        running = {report.id for report in self._board.reports() if report.state == "running"}
        below = (wait for subtask_id, waits in self._nested.items() if subtask_id in running for wait in waits)
        return [*self._own, *below]

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
