"""Waits of a run: for roles with an open breaker, providers, the store, people, a first finding."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Asked, Wait, WaitKind
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.slots import Slots

AWAITED: dict[WaitKind, str] = {
    "provider": "the model provider",
    "resume": "resume",
    "store": "the artifact store",
    "plan": "a decision on the plan",
    "question": "a reply",
    "tool": "a decision on a tool call",
    "finding": "a person's finding",
}
"""What a wait of each kind is for, as people read it."""

_ON_PROVIDER: tuple[WaitKind, ...] = ("provider", "resume")


class RoleBreaker:
    """The circuit breaker of a role: one that keeps failing gets no attempts for a while.

    `now` is the run's clock. It opens after ROLE_BREAKER_FAILURES failed attempts in a row. After a
    cool-down one probe is admitted, whose success closes the breaker and whose failure opens it
    again. Outcomes of attempts that began before it last opened or closed are ignored.
    """

    def __init__(self, role: str, now: Callable[[], datetime]) -> None:
        self.role = role
        self.failures = 0  # in a row
        self._now = now
        self._open_until: datetime | None = None
        # The attempts whose outcomes count: while half-open the probe.
        self._admitted = set[object]()

    @property
    def state(self) -> Literal["closed", "open", "half_open"]:
        """The state; it is half-open from the cool-down's end to the probe's outcome."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half_open"

    @property
    def retry_at(self) -> datetime | None:
        """The time at which an open breaker admits its probe; None if no time is set."""
        return self._open_until if self.state == "open" else None

    def admits(self) -> bool:
        """True if an attempt may begin now."""
        return self.state == "closed" or (self.state == "half_open" and not self._admitted)

    def admit(self, attempt: object) -> None:
        """Records the start of an attempt: the probe, if the breaker is half-open."""
        self._admitted.add(attempt)

    def settle(self, attempt: object, succeeded: bool | None) -> None:
        """Counts the outcome of an attempt.

        None proves nothing about the role, so another attempt may be the probe.
        """
        if attempt not in self._admitted:
            return
        self._admitted.remove(attempt)
        if succeeded:
            self.failures = 0
            self._open_until = None
        elif succeeded is not None:
            self.failures += 1
            if self.failures >= limits.ROLE_BREAKER_FAILURES:
                self._open_until = self._now() + limits.ROLE_BREAKER_COOLDOWN
                self._admitted.clear()

    def card(self) -> dict[str, JsonValue]:
        """Returns the breaker for `status`."""
        return {
            "role": self.role,
            "state": self.state,
            "failures": self.failures,
            "retry_at": self.retry_at.isoformat() if self.retry_at else None,
        }


class Waits:
    """The role breakers and the waits of a run; nested runs have their own."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._breakers: dict[str, RoleBreaker] = {}
        self._shown: dict[int, Asked] = {}

    def breaker(self, role: str) -> RoleBreaker:
        """Returns the breaker of a role."""
        if role not in self._breakers:
            self._breakers[role] = RoleBreaker(role, self._now)
        return self._breakers[role]

    def add(self, wait: Wait, expires_at: datetime | None, content: str | None = None) -> None:
        """Adds a wait that expires at `expires_at`; `content` is its whole content."""
        end = expires_at.isoformat() if expires_at else None
        shown = wait.model_copy(update={"expires_at": end})
        self._shown[id(wait)] = Asked(wait=shown, content=content)

    def remove(self, wait: Wait) -> None:
        """Removes a wait."""
        self._shown.pop(id(wait), None)

    def with_content(self, wait_id: str) -> Asked:
        """Returns a wait of this run with its whole content.

        Raises ValueError if no wait has that id.
        """
        for asked in self._shown.values():
            if asked.wait.id == wait_id:
                return asked
        raise ValueError(f"nothing with the id '{wait_id}' waits")

    def for_help(self, subtask_id: str) -> Wait | None:
        """Returns the wait of a failed subtask that a person may have retried; None without one."""
        own = (wait for wait in self.current if wait.subtask_id == subtask_id)
        return next((wait for wait in own if "retry" in wait.choices), None)

    def of_subtasks(self) -> set[str]:
        """Returns the subtasks with work that waits for a person's decision."""
        return {wait.subtask_id for wait in self.current if wait.subtask_id and wait.for_decision}

    @property
    def current(self) -> list[Wait]:
        """All waits of this run, without those of nested runs."""
        return [asked.wait for asked in self._shown.values()]

    @property
    def for_provider(self) -> bool:
        """True if something waits for a provider, for a time or until a `resume`."""
        return any(wait.kind in _ON_PROVIDER for wait in self.current)

    @property
    def for_store(self) -> bool:
        """True if some work waits for the artifact store."""
        return any(wait.kind == "store" for wait in self.current)

    @property
    def for_people(self) -> int:
        """The number of waits that need people."""
        return sum(wait.for_person for wait in self.current)

    def cards(self) -> list[dict[str, JsonValue]]:
        """Returns the breakers of roles and providers that are open or have counted failures."""
        roles = [breaker.card() for breaker in self._breakers.values() if breaker.failures]
        return roles + [_provider_card(wait) for wait in self.current if wait.kind == "provider"]

    def notes(self) -> list[str]:
        """Returns a line for people on each wait."""
        breakers = [breaker_note(card) for card in self.cards() if card["state"] != "closed"]
        others = [wait for wait in self.current if wait.kind != "provider"]
        return [*breakers, *map(_wait_note, others)]


class FirstFinding:
    """The first finding of a run: once there is one, the run waits for `resume` instead of failing.

    For a nested run, a finding of a parent run counts if it existed when the nested one began.
    `refused` subtasks are rejected for a reason that holds for all, and wait for the first finding.
    """

    def __init__(self, board: Board, slots: Slots) -> None:
        self.refused: set[str] = set()
        self._board = board
        self._slots = slots
        self._exists_above = False

    @property
    def exists(self) -> bool:
        """True once there is a finding, here or above."""
        return self._exists_above or self._board.has_finding

    @property
    def may_come(self) -> bool:
        """True while there is work under way that is not refused."""
        return self._slots.held > 0 or not self.refused.issuperset(self._board.running())

    def inherit(self, *, exists: bool) -> None:
        """Adopts `exists` of the parent run, when a nested run begins."""
        self._exists_above = exists

    def refuse(self, subtask_id: str) -> None:
        """Adds a subtask that is rejected for a reason that holds for all."""
        self.refused.add(subtask_id)

    def refuse_no_longer(self, subtask_id: str) -> None:
        """Removes a subtask that is no longer rejected."""
        self.refused.discard(subtask_id)


def breaker_note(card: Mapping[str, JsonValue]) -> str:
    """Returns a line on a breaker that is not closed, from its card."""
    when = f"next try at {card['retry_at']}" if card["retry_at"] else "it is being tried"
    if "provider" in card:
        return f"{card['waiting']} waits for the provider of {card['provider']}: {when}"
    failed = f"after {card['failures']} failed attempts in a row"
    return f"role {card['role']} has an open breaker {failed}: {when}"


def _wait_note(wait: Wait) -> str:
    return f"{wait.subject} waits for {AWAITED[wait.kind]}: {wait.prompt_preview}"


def _provider_card(wait: Wait) -> dict[str, JsonValue]:
    return {
        "provider": wait.model,
        "state": "open",
        "waiting": wait.subject,
        "retry_at": wait.expires_at,
        "why": wait.prompt_preview,
    }
