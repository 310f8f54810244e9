"""Questions to people about a run's subtasks, and their words."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PersonWords
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import size
    from temporal_supervisor.supervision.contract.finding import Finding

    from workflows.background import in_background


class Awaited:
    """Waits of a run's subtasks for people: a decision wakes its work, a timer the rest.

    One timer serves all: one each would cost two events of the history for every decision. It is
    set for the end that comes first. If that wait is decided before, the timer stays and ends for
    nothing, which costs less than setting another one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._rings_at: datetime | None = None
        self._timer: asyncio.Task[None] | None = None

    async def decided(self, sha256: str, is_decided: Callable[[], bool], until: datetime) -> None:
        """Returns once what has that hash is decided, or at the time `until`."""
        try:
            # Woken by a decision or by the timer, which may have been set for another wait: so it
            # looks again.
            while not is_decided() and workflow.now() < until:
                self._ring_by(until)
                woken = self._waiting[sha256] = asyncio.Future()
                await woken
        finally:
            self._waiting.pop(sha256, None)
            if not self._waiting:
                self._set_none()

    def wake(self, sha256: str) -> None:
        """Wakes the work that waits for a decision about what has that hash."""
        woken = self._waiting.get(sha256)
        if woken is not None and not woken.done():
            woken.set_result(None)

    def _ring_by(self, until: datetime) -> None:
        is_set = self._timer is not None and not self._timer.done()
        if is_set and self._rings_at is not None and self._rings_at <= until:
            return
        self._set_none()
        self._rings_at = until
        self._timer = in_background(self._ring(until - workflow.now()))

    def _set_none(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _ring(self, left: timedelta) -> None:
        await workflow.sleep(left, summary="the first wait for a person that ends by itself")
        for sha256 in self._waiting:
            self.wake(sha256)


@dataclass
class _Due:
    """Words that are to be stored, and the future of the work that waits for that."""

    words: PersonWords
    stored: "asyncio.Future[Finding]" = field(default_factory=asyncio.Future)


class Words:
    """Stores words of people, all that came together in one activity: fifty replies cost one."""

    def __init__(self, keep: Callable[[list[PersonWords]], Awaitable[list[Finding]]]) -> None:
        """`keep` stores texts, and returns each as a finding."""
        self._keep = keep
        self._due: list[_Due] = []
        self._storing: asyncio.Task[None] | None = None

    async def kept(self, words: PersonWords) -> Finding:
        """Returns a person's words, stored, as a finding. Raises the error of storing them."""
        due = _Due(words)
        self._due.append(due)
        if self._storing is None or self._storing.done():
            self._storing = in_background(self._store())
        return await due.stored

    async def _store(self) -> None:
        while self._due:
            # The decisions of one update wake their work one after the other: by then all have said
            # what they have.
            await workflow.wait_condition(lambda: True)
            batch = self._next_batch()
            try:
                findings = await self._keep([due.words for due in batch])
            except Exception as failed:  # it is theirs who wait for it
                for due in _awaited(batch):
                    due.stored.set_exception(failed)
                continue
            by_place = dict(zip(map(id, batch), findings, strict=True))
            for due in _awaited(batch):
                due.stored.set_result(by_place[id(due)])

    def _next_batch(self) -> list[_Due]:
        """Takes the first words that fit into one payload, and at least one text."""
        batch: list[_Due] = []
        room = limits.PAYLOAD_AIM_BYTES
        for due in self._due:
            room -= size(due.words.text)
            if batch and room < 0:
                break
            batch.append(due)
        self._due = self._due[len(batch) :]
        return batch


def _awaited(batch: list[_Due]) -> list[_Due]:
    """Returns the words that somebody waits for still: the others' work was stopped meanwhile."""
    return [due for due in batch if not due.stored.done()]
