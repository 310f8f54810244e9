"""The rate of this process's queue of model calls: lowered when the provider refuses, raised while calls wait.

Temporal's configuration of the queue is the only store: every change reads it first, and goes on from there.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from secrets import SystemRandom

from activities.model.pace.named_limits import NamedLimits
from activities.model.port import RequestLimits
from supervision import limits
from supervision.provider.found_limit import FoundLimit, QueueLimit
from supervision.provider.queue_rates import QueueRates, QueueView, RatesUnavailable, share

_log = logging.getLogger(__name__)
_random = SystemRandom()

Refusal = tuple[str, float | None]
"""What was known of the limit when the queue gave a call out."""


class QueuePace:
    """The pace of one queue, as this process takes part in it.

    `total` is the rate that SUPERVISOR_MODEL_RPM allows all of `queues` together, the own one among them. With `find`
    a limit that nobody set is found. Where the server keeps no rates, or refuses this process, nothing is done, and
    tried again later.
    """

    def __init__(
        self,
        rates: QueueRates,
        queue: str,
        *,
        total: float | None = None,
        queues: Sequence[str] = (),
        find: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = rates
        self._queue = queue
        self._total = total
        self._others = [other for other in queues if other != queue]
        self._find = find
        self._clock = clock
        self._limit = QueueLimit()
        self._version = ""
        self._since = clock()  # when that version was first seen, or the queue was last seen empty
        self._sent_at = clock()  # a process that has just started looks, too
        self._lowered_at = float("-inf")
        self._next_send = float("-inf")
        self._named = NamedLimits(clock)
        self._changing = asyncio.Lock()

    @property
    def rate(self) -> float | None:
        """The rate of the queue as this process knows it, per second."""
        return self._limit.rate

    def handed_out(self, model: str) -> Refusal:
        """Takes note of a call that the queue has just given to this process. Returns what `refused` needs to know.

        A call that waited in the process for its turn came at the rate before, so its refusal says nothing of the rate
        now.
        """
        self._sent_at = self._clock()
        self._named.sent(model)
        return _refusal(self._limit)

    def answered(self, model: str, named: RequestLimits | None) -> None:
        """Takes note of what the provider's headers say of its limit for a model."""
        self._named.heard(model, named)

    async def spaced(self) -> None:
        """Returns when this process may send its next call: behind a pause calls would all go out at once."""
        if self._limit.found is None or not (rate := self.rate):
            return
        now = self._clock()
        at = max(now, self._next_send)
        self._next_send = at + limits.SPACING_SHARE / rate
        await asyncio.sleep(min(at - now, limits.GATE_WAIT.total_seconds()))

    async def refused(self, sent: Refusal, named: RequestLimits | None) -> None:
        """Lowers the rate after a 429, unless it was lowered since the queue gave that call out, by whomever.

        `answered` comes first.
        """
        if not self._find:
            return
        with suppress(RatesUnavailable):
            async with self._changing:
                window = self._limit.found.window if self._limit.found else 0.0
                if _refusal(self._limit) != sent or self._clock() - self._lowered_at < window:
                    return
                view = await self._read()
                # Another process may have changed the rate meanwhile: that was this refusal's answer, too.
                if _refusal(self._limit) == sent:
                    await self._write(await self._bounded(self._lowered(view, named), view))

    def _lowered(self, view: QueueView, named: RequestLimits | None) -> QueueLimit:
        limit, at = self._limit, datetime.now(UTC).isoformat(timespec="milliseconds")
        ceiling = self._named.rate()
        if named is not None and named.exhausted and ceiling is not None:
            told = replace(limit, named=ceiling, found=None)
            if limit.rate is None or (told.rate or 0) < limit.rate * (1 - limits.FOUND_STEP):
                return told
        if limit.found is not None:
            return replace(limit, found=limit.found.refused_again(at))
        before = limit.rate if limit.rate is not None else self._total
        rate = max(view.dispatched, self._named.sent_lately())
        return replace(limit, found=FoundLimit.first(rate if before is None else min(rate, before), at))

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Looks after the queue's rate for the time of an `async with` block."""
        task = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _keep(self) -> None:
        warned = False
        while True:
            try:
                await self.look()
                pause = limits.FOUND_TICK if self._find or self._sharing else limits.FOUND_RETRY
                warned = False
            except RatesUnavailable as error:
                pause = limits.FOUND_RETRY
                if not warned:
                    _log.warning("the rate of queue %s can't be kept: %s", self._queue, error)
                warned = True
            # At moments of their own: then one process writes, and the others find it done.
            await asyncio.sleep(pause.total_seconds() * (0.75 + 0.5 * _random.random()))

    async def look(self) -> None:
        """Raises the rate if calls have waited since the last look and none was refused; takes its share anew."""
        active = self._clock() - self._sent_at < limits.FOUND_ACTIVE.total_seconds()
        if not (self._sharing or active or self._limit.found):
            return
        async with self._changing:
            now, version = self._clock(), self._version
            view = await self._read()
            limit = self._limit
            # Calls that wait for a slow process, at a rate that is not used, say nothing about the provider.
            used = view.dispatched >= limits.FOUND_USED * (view.rate or 0)
            if self._version != version or not (view.waiting and used):
                self._since = now
            elif limit.found is not None:
                limit = replace(limit, found=limit.found.calmer(now - self._since))
            limit = await self._bounded(self._renamed(limit), view)
            if limit.found and limit.found.is_over(limit.ceiling):
                limit = await self._bounded(replace(limit, found=None), view)
            if self._is_news(view, limit, now):
                await self._write(limit)

    @property
    def _sharing(self) -> bool:
        return self._total is not None and bool(self._others)

    async def _bounded(self, limit: QueueLimit, view: QueueView) -> QueueLimit:
        """Returns the limit with this queue's part of the total; what was set by hand stands in its place.

        A queue that shares with no other is bounded by its Workers, so its configuration needs no bound of its own.
        """
        known = limit.found is not None or limit.named is not None
        if self._total is None or limit.by_hand is not None or not (self._others or known):
            return replace(limit, share=None, total=None)
        return replace(limit, share=await self._share(self._total, view), total=self._total)

    async def _share(self, total: float, view: QueueView) -> float:
        views = {self._queue: view}
        for other in self._others:
            seen = await self._rates.read(other)
            # A queue whose rate was set by hand has an account of its own, for all that is known here.
            if QueueLimit.read(seen.rate, seen.reason).by_hand is None:
                views[other] = seen
        return share(total, self._queue, views)

    def _renamed(self, limit: QueueLimit) -> QueueLimit:
        """Returns the limit with what the provider names now; a new word of it ends the search."""
        named = self._named.rate()
        if not self._find:
            return replace(limit, found=None, named=None)
        if named is None:
            # An endpoint that no longer names its limit would otherwise be kept to the last one for ever.
            return replace(limit, named=None) if self._named.is_silent else limit
        if limit.named is None:
            return replace(limit, named=named) if limit.found or self._named.is_near() else limit
        if abs(named / limit.named - 1) <= limits.NAMED_CHANGE:
            return limit
        return replace(limit, named=named, found=None)

    def _is_news(self, view: QueueView, limit: QueueLimit, now: float) -> bool:
        before, rate = view.rate, limit.rate
        if before is None or rate is None:
            return before is not rate
        if abs(rate / before - 1) >= limits.FOUND_STEP if before else rate != before:
            return True
        saved = self._limit.found.calm if self._limit.found else 0.0
        return limit.found is not None and limit.found.calm - saved >= limits.FOUND_SAVE.total_seconds()

    async def _read(self) -> QueueView:
        view = await self._rates.read(self._queue)
        if view.version != self._version:
            self._take(QueueLimit.read(view.rate, view.reason), view.version)
        return view

    async def _write(self, limit: QueueLimit) -> None:
        version = await self._rates.write(self._queue, limit.rate, limit.reason())
        lowered = limit.rate is not None and (self.rate is None or limit.rate < self.rate)
        if lowered and _refusal(limit) != _refusal(self._limit):
            _log.warning("queue %s is lowered to %.1f calls a minute", self._queue, 60 * (limit.rate or 0))
        self._take(limit, version)

    def _take(self, limit: QueueLimit, version: str) -> None:
        if _refusal(limit) != _refusal(self._limit):
            self._lowered_at = self._clock()
        self._limit, self._version, self._since = limit, version, self._clock()


def _refusal(limit: QueueLimit) -> Refusal:
    return (limit.found.at if limit.found else "", limit.named)
