"""Work of the supervisor that goes on beside its subtasks, one piece at a time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from temporalio import workflow


async def let_ready_tasks_finish() -> None:
    """Returns when all other tasks have done what they can with what this workflow task brought.

    A result may come together with a cancellation or with the end of a wait, and reach its task only after that.
    The SDK looks at conditions once no task is ready to run any more.
    """
    await workflow.wait_condition(lambda: True)


async def stop_all(tasks: Sequence[asyncio.Task[Any]]) -> bool:
    """Cancels tasks and returns when all have ended: True if the caller was cancelled meanwhile, as they are then."""
    cancelled = False
    for task in tasks:
        task.cancel()
    while pending := [task for task in tasks if not task.done()]:
        try:
            await workflow.wait(pending)
        except asyncio.CancelledError:
            cancelled = True
            for task in pending:
                task.cancel()
    return cancelled


class BackgroundTask(ABC):
    """Begins a piece of work whenever one is due and none is under way. The dispatch asks it after every change."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def _is_due(self) -> bool:
        """True if a piece of work should begin now."""

    @abstractmethod
    async def _work(self) -> None:
        """Does one piece of work. Anticipated failures and cancellation end it quietly."""

    @property
    def running(self) -> bool:
        """True while a piece of work is under way."""
        return self._task is not None and not self._task.done()

    def consider(self) -> None:
        """Begins a piece of work if one is due."""
        if not self.running and self._is_due():
            self._task = asyncio.create_task(self._work())

    def tasks(self) -> list[asyncio.Task[None]]:
        """Returns what a dispatch has to await: the piece of work under way, if any."""
        return [self._task] if self._task is not None and self.running else []

    async def stop(self) -> None:
        """Cancels the work under way and awaits its end: what it consumed is booked before the caller goes on.

        Raises CancelledError if the caller was cancelled meanwhile.
        """
        if await stop_all(self.tasks()):
            raise asyncio.CancelledError
