"""Tasks of a workflow: work that nobody awaits, and the ends of tasks that are cancelled."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

from temporalio import workflow

T = TypeVar("T")


def in_background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Starts work that nobody awaits.

    An unexpected error fails the workflow task, as an error of the main work does: the run stops
    until its code is fixed, instead of continuing without that work.
    """
    task = asyncio.create_task(_with_its_errors_seen(work))
    task.add_done_callback(lambda _: work.close())  # it may be cancelled before it begins
    return task


async def _with_its_errors_seen(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except Exception as error:
        # The SDK fails the workflow task with what a condition raises. It looks at conditions once
        # no task is ready.
        await workflow.wait_condition(partial(_fail, error))
        raise


def _fail(error: Exception) -> NoReturn:
    raise error


async def let_ready_tasks_finish() -> None:
    """Returns when no other task is ready: only then does the SDK check conditions.

    A result may come together with a cancellation or with the end of a wait, and reach its task
    only after that.
    """
    await workflow.wait_condition(lambda: True)


async def stop_all(tasks: Sequence[asyncio.Task[Any]]) -> bool:
    """Cancels tasks and awaits their ends. Returns True if the caller was cancelled meanwhile."""
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
    """Begins a piece of work whenever one is due and none is under way.

    The dispatch calls `begin_if_due` after every change.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def _is_due(self) -> bool:
        """True if a piece of work should begin now."""

    @abstractmethod
    async def _work(self) -> None:
        """Does one piece of work. Expected failures and a cancellation end it without an error."""

    @property
    def running(self) -> bool:
        """True while a piece of work is under way."""
        return self._task is not None and not self._task.done()

    def begin_if_due(self) -> None:
        """Begins a piece of work if one is due."""
        if not self.running and self._is_due():
            self._task = in_background(self._work())

    def discard(self) -> None:  # noqa: B027 (most have nothing to drop)
        """Drops all work based on findings, because one of them is redone."""

    def tasks(self) -> list[asyncio.Task[None]]:
        """Returns the task under way, if there is one, for the dispatch to await."""
        return [self._task] if self._task is not None and self.running else []

    async def stop(self) -> None:
        """Cancels the work under way and awaits its end, so that its usage is booked.

        Raises CancelledError if the caller was cancelled meanwhile.
        """
        if await stop_all(self.tasks()):
            raise asyncio.CancelledError

    async def end(self) -> None:
        """Stops the work for a run that is closing; a cancellation meanwhile is ignored."""
        await stop_all(self.tasks())
