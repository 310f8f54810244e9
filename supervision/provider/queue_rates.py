"""The rates of the queues of model calls: a port to where they are kept, and how a set limit is shared out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from supervision import limits


@dataclass(frozen=True)
class QueueView:
    """A queue as its server knows it: the rate that is configured for it, per second, and why; the work in it.

    `version` changes with every change of the configuration. `dispatched` is the recent rate of calls handed out.
    """

    rate: float | None = None
    reason: str = ""
    version: str = ""
    waiting: int = 0
    dispatched: float = 0.0

    @property
    def is_busy(self) -> bool:
        """True if calls wait, or went out lately."""
        return self.waiting > 0 or self.dispatched >= limits.SHARE_BUSY_RATE


class RatesUnavailable(Exception):
    """The server keeps no rates of queues, or does not let this process see or change them."""


class QueueRates(Protocol):
    """Where the rates of queues are kept, for all processes. Raises RatesUnavailable."""

    async def read(self, queue: str) -> QueueView:
        """Returns the queue."""
        ...

    async def write(self, queue: str, rate: float | None, reason: str) -> str:
        """Sets a queue's rate, None for no limit. Returns the new version of its configuration."""
        ...


def share(total: float, queue: str, queues: Mapping[str, QueueView]) -> float:
    """Returns what of `total` the queue may have now, beside the other queues that share it.

    An idle queue keeps a small reserve, so that its first calls need not wait; the busy ones have equal parts of the
    rest, and those that want less leave it to the others. No queue rises into what another still has.
    """
    reserve = total * min(limits.SHARE_RESERVE, 1 / (2 * len(queues)))
    busy = [name for name, view in queues.items() if view.is_busy]
    if queue not in busy:
        return reserve if busy else total / len(queues)
    left, parts = total - reserve * (len(queues) - len(busy)), len(busy)
    for name in sorted(busy, key=lambda name: _wanted(queues[name])):
        part = max(min(_wanted(queues[name]), left / parts), reserve)
        if name == queue:
            break
        left, parts = left - part, parts - 1
    if parts == 1:  # the queue that wants the most has all that is left
        part = left
    held = sum(_held(view, reserve) for name, view in queues.items() if name != queue)
    return max(min(part, total - held), reserve)


def _wanted(view: QueueView) -> float:
    return float("inf") if view.waiting else view.dispatched * limits.SHARE_HEADROOM


def _held(view: QueueView, reserve: float) -> float:
    return view.rate if view.is_busy and view.rate is not None else reserve
