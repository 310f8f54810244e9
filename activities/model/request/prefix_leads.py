"""The first call with a prefix that many share goes ahead, so that the others read what it wrote.

A prefix is readable in the provider's cache once the reply that wrote it has begun. Calls that start together would
each pay for writing it.
"""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable

from cachetools import LRUCache

from activities.model.port import ModelRequest, StreamProgress
from activities.model.request.endpoint_profile import profile_of
from supervision import limits

Clock = Callable[[], float]


class PrefixLeads:
    """The prefixes that are being written, and those that the provider has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._written: LRUCache[str, float] = LRUCache(limits.KNOWN_PREFIXES)
        self._leading: dict[str, asyncio.Event] = {}

    @contextlib.asynccontextmanager
    async def turn(self, request: ModelRequest, progress: StreamProgress) -> AsyncIterator[None]:
        """Begins when the call may be sent: at once if it leads, or if its prefix is written or not worth the wait."""
        key = _key(request)
        if key is None or not await self._leads(key):
            yield
            if key is not None:
                self._written[key] = self._clock()
            return
        begun = self._leading[key] = asyncio.Event()

        def written() -> None:
            self._written[key] = self._clock()
            begun.set()

        progress.listen(written)
        try:
            yield
        finally:
            # Whether it came to a reply or not: the next one to wake up leads, if the prefix is still not written.
            del self._leading[key]
            begun.set()

    async def _leads(self, key: str) -> bool:
        """True if this call is to write the prefix; False once another one has, or took too long for it."""
        until = self._clock() + limits.PREFIX_WAIT.total_seconds()
        while not self._is_written(key):
            if (leader := self._leading.get(key)) is None:
                return True
            try:
                async with asyncio.timeout(until - self._clock()):
                    await leader.wait()  # others may lead by the time this one runs again
            except TimeoutError:
                return False
        return False

    def _is_written(self, key: str) -> bool:
        at = self._written.get(key)
        return at is not None and self._clock() - at < limits.PREFIX_LIFE.total_seconds()


def _key(request: ModelRequest) -> str | None:
    """Returns a name of the prefix; None if the call caches none, or one that is not worth a wait."""
    if request.cache == "none":
        return None
    prefix = json.dumps([request.model, request.tools, request.system])
    least = max(limits.LED_PREFIX_TOKENS, profile_of(request.model).least_cached)
    if len(prefix) < least * limits.CHARS_PER_TOKEN:
        return None
    return hashlib.sha256(prefix.encode("utf-8", "surrogatepass")).hexdigest()
