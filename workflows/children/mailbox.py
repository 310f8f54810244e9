"""Signals between supervisors and their children: the latest of something, one at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError

T = TypeVar("T")


@dataclass
class Mailbox(Generic[T]):
    """Sends a workflow the latest of something whenever the `news` in it changed, one signal at a time.

    Two at a time could overtake each other. The workflow is signalled by its id, once that is known: through a child's
    handle no signal arrives after this run was reset.
    """

    signal: str
    latest: Callable[[], T]
    sent: T | None = None
    workflow_id: str = ""
    news: Callable[[T], object] = lambda value: value
    _sending: asyncio.Task[None] | None = None

    def post(self) -> None:
        """Sends what the workflow does not have yet."""
        if self.workflow_id and (self._sending is None or self._sending.done()) and self._due():
            self._sending = asyncio.create_task(self._send())

    def _due(self) -> T | None:
        latest = self.latest()
        return latest if self.sent is None or self.news(latest) != self.news(self.sent) else None

    async def _send(self) -> None:
        # It may change while a signal is on its way: then it is sent next.
        while (latest := self._due()) is not None:
            self.sent = latest
            await send_signal(self.workflow_id, self.signal, latest)


async def send_signal(workflow_id: str, signal: str, what: object) -> None:
    """Signals a workflow; one that has ended takes nothing."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, what)
    except FailureError:
        workflow.logger.debug("%s has ended and takes no %s", workflow_id, signal)
