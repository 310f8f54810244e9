"""Waits for people's decisions about subtasks, and the storing of people's words."""

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

    from workflows.background import in_background, let_ready_tasks_finish


class DecisionWaits:
    """The waits of a run's subtasks for decisions, which share one timer.

    A timer for each would cost two events of the history per decision. The timer is set for the
    earliest end. If that wait is decided before, the timer stays and fires in vain, which costs
    less than setting another one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._rings_at: datetime | None = None
        self._timer: asyncio.Task[None] | None = None

    async def until_decided(
        self, sha256: str, is_decided: Callable[[], bool], until: datetime
    ) -> None:
        """Returns once the wait with that hash is decided, or at the time `until`."""
        try:
            # Woken by a decision or by the timer, which may have been set for another wait: so it
            # looks again.
            while not is_decided() and workflow.now() < until:
                self._set_timer(until)
                woken = self._waiting[sha256] = asyncio.Future()
                await woken
        finally:
            self._waiting.pop(sha256, None)
            if not self._waiting:
                self._cancel_timer()

    def wake(self, sha256: str) -> None:
        """Wakes the work that waits for a decision about the wait with that hash."""
        woken = self._waiting.get(sha256)
        if woken is not None and not woken.done():
            woken.set_result(None)

    def _set_timer(self, until: datetime) -> None:
        is_set = self._timer is not None and not self._timer.done()
        if is_set and self._rings_at is not None and self._rings_at <= until:
            return
        self._cancel_timer()
        self._rings_at = until
        self._timer = in_background(self._run_timer(until - workflow.now()))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _run_timer(self, left: timedelta) -> None:
        await workflow.sleep(left, summary="the first wait for a person that ends by itself")
        for sha256 in self._waiting:
            self.wake(sha256)


@dataclass
class _Due:
    """Words that are to be stored, and the future of the work that waits for that."""

    words: PersonWords
    stored: "asyncio.Future[Finding]" = field(default_factory=asyncio.Future)

    @property
    def is_awaited(self) -> bool:
        """True if the work still waits for its words: it may have been stopped meanwhile."""
        return not self.stored.done()


class Words:
    """Stores people's words; words that come together go into one activity."""

    def __init__(
        self, store_texts: Callable[[list[PersonWords]], Awaitable[list[Finding]]]
    ) -> None:
        """`store_texts` stores texts, and returns each as a finding."""
        self._store_texts = store_texts
        self._due: list[_Due] = []
        self._storing: asyncio.Task[None] | None = None

    async def store(self, words: PersonWords) -> Finding:
        """Stores a person's words, and returns them as a finding.

        Raises the error of storing them.
        """
        due = _Due(words)
        self._due.append(due)
        if self._storing is None or self._storing.done():
            self._storing = in_background(self._store_batches())
        return await due.stored

    async def _store_batches(self) -> None:
        while self._due:
            # The decisions of one update wake their work one after the other: by then the words of
            # all are due.
            await let_ready_tasks_finish()
            batch = self._next_batch()
            try:
                findings = await self._store_texts([due.words for due in batch])
            except Exception as failed:  # raised where the words are awaited
                for due in batch:
                    if due.is_awaited:
                        due.stored.set_exception(failed)
                continue
            for due, finding in zip(batch, findings, strict=True):
                if due.is_awaited:
                    due.stored.set_result(finding)

    def _next_batch(self) -> list[_Due]:
        """Removes and returns the first words that fit into one payload, at least one text."""
        batch: list[_Due] = []
        room = limits.PAYLOAD_AIM_BYTES
        for due in self._due:
            room -= size(due.words.text)
            if batch and room < 0:
                break
            batch.append(due)
        self._due = self._due[len(batch) :]
        return batch
