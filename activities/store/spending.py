"""Spending in the store: samples for estimates, the cost of runs, the daily spend of Workers."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base.store_keys import encode, spend_prefix, stats_prefix
from temporal_supervisor.supervision.base.text import money
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.planning.estimate import RunSample

M = TypeVar("M", bound=Model)
# Samples of each team: more would say little more, and are read for each plan that waits for
# approval.
_KEPT = 200
_SUM_AGE = 5.0  # seconds: calls that begin in them may go beyond the ceiling
_DAY = timedelta(days=1)
# Most calls end within some seconds, and cost less than their estimate.
_IN_FLIGHT_WAIT = timedelta(seconds=5)
# A raised ceiling, of Workers that were started again, is noticed by then.
_LOOK_AGAIN = timedelta(minutes=10)


class RunSpend(Model):
    """The cost of a run at its end, over all levels."""

    run_id: str
    owner: str = ""
    team: str = ""
    ended_at: datetime
    usage: Usage = Usage()


class _Spent(Model):
    usd: float = 0.0


async def keep_sample(
    store: ArtifactStore,
    team: str,
    run_id: str,
    ended_at: datetime,
    sample: RunSample,
) -> None:
    """Stores the usage of a run as a sample, and deletes the oldest samples."""
    prefix = stats_prefix(team)
    new = prefix + encode(f"{ended_at:%Y%m%dT%H%M%S.%f}-{run_id}")  # sorts by time
    await store.put(new, sample.model_dump_json().encode("utf-8", "replace"))
    keys = await store.list_keys(prefix)
    for old in keys[:-_KEPT]:
        await store.delete(old)


async def newest_samples(store: ArtifactStore, team: str) -> list[RunSample]:
    """Returns the samples of a team, the newest last."""
    keys = await store.list_keys(stats_prefix(team))
    return await _read_objects(store, keys[-_KEPT:], RunSample)


async def keep_run_spend(store: ArtifactStore, spent: RunSpend) -> None:
    """Stores the cost of a run."""
    key = spend_prefix(spent.ended_at.date(), "runs") + encode(spent.run_id)
    await store.put(key, spent.model_dump_json().encode("utf-8", "replace"))


async def run_spends(store: ArtifactStore, days: int, today: date) -> list[RunSpend]:
    """Returns the costs of runs that ended in the last `days`; for a reset run, its last end."""
    found: dict[str, RunSpend] = {}
    for back in reversed(range(days)):
        keys = await store.list_keys(spend_prefix(today - back * _DAY, "runs"))
        found |= {spent.run_id: spent for spent in await _read_objects(store, keys, RunSpend)}
    return [*found.values()]


async def _read_objects(store: ArtifactStore, keys: Iterable[str], kind: type[M]) -> list[M]:
    """Returns the objects at some keys, except deleted ones and ones of another version."""
    found = []
    for data in await asyncio.gather(*map(store.find, keys)):
        with contextlib.suppress(ValidationError):
            found.append(kind.model_validate_json(data or b""))
    return found


class NoCall(NamedTuple):
    """The reason why no call may begin now, and the time until the next try.

    `is_over` is True for the rest of the day.
    """

    why: str
    wait: timedelta
    is_over: bool


class DailySpend:
    """The ceiling of dollars per UTC day, over all Workers of a store.

    Each Worker writes one object per day, and reads the others. Calls in flight count by their
    estimates, so that a burst does not pass the ceiling; a single call may always begin.
    """

    def __init__(self, store: ArtifactStore, ceiling: float | None) -> None:
        self.ceiling = ceiling
        self._store = store
        self._name = secrets.token_hex(8)
        self._day = datetime.now(UTC).date()
        self._own = self._others = 0.0
        self._in_flight: list[float] = []  # the estimates of calls that are not paid yet
        self._summed_at: float | None = None
        self._summing: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    @asynccontextmanager
    async def call(self, estimate: float | None) -> AsyncIterator[NoCall | None]:
        """A block in which a call of about `estimate` dollars is in flight.

        Yields the reason why the call may not begin; None if it may.
        """
        if self.ceiling is None:
            yield None
            return
        await self._sum_others()
        # From here to the reservation nothing is awaited: of many calls that wait for the sum each
        # sees the others.
        reserved = estimate or 0.0
        refused = self._refusal(self.ceiling, reserved)
        if refused:
            yield refused
            return
        self._in_flight.append(reserved)
        try:
            yield None
        finally:
            self._in_flight.remove(reserved)

    async def add(self, usd: float | None) -> None:
        """Adds the cost of a call, in dollars."""
        if self.ceiling is None or not usd:
            return
        self._begin_day()
        self._own += usd
        async with self._writing:  # an older sum must not be written last
            await self._store.put(self._key, _Spent(usd=self._own).model_dump_json().encode())

    def _refusal(self, ceiling: float, estimate: float) -> NoCall | None:
        spent = self._own + self._others
        if spent >= ceiling:
            now = datetime.now(UTC)
            ends = datetime.combine(self._day + _DAY, datetime.min.time(), UTC)
            why = (
                f"the ceiling of {money(ceiling)} a day is reached (SUPERVISOR_DAILY_USD, "
                f"{money(spent)} spent since 00:00 UTC): calls begin again at "
                f"{ends:%Y-%m-%d %H:%M} UTC"
            )
            return NoCall(why, min(ends - now, _LOOK_AGAIN), is_over=True)
        if self._in_flight and spent + sum(self._in_flight) + estimate > ceiling:
            left = f"what is left of {money(ceiling)} a day (SUPERVISOR_DAILY_USD)"
            why = f"calls in flight may use up {left}"
            return NoCall(why, _IN_FLIGHT_WAIT, is_over=False)
        return None

    async def _sum_others(self) -> None:
        """Waits until the recent spending of the other Workers is known; callers share one sum."""
        self._begin_day()
        if self._summed_at is not None and time.monotonic() - self._summed_at <= _SUM_AGE:
            return
        if self._summing is None or self._summing.done():
            self._summing = asyncio.create_task(self._read_others())
        await asyncio.shield(self._summing)  # others wait for it, too

    async def _read_others(self) -> None:
        day = self._day
        own_key = self._key
        keys = set(await self._store.list_keys(spend_prefix(day, "workers"))) - {own_key}
        spends = await _read_objects(self._store, keys, _Spent)
        if day == self._day:  # else a call has begun the next day meanwhile
            self._others = sum(spent.usd for spent in spends)
            self._summed_at = time.monotonic()

    @property
    def _key(self) -> str:
        return spend_prefix(self._day, "workers") + encode(self._name)

    def _begin_day(self) -> None:
        today = datetime.now(UTC).date()
        if today != self._day:
            self._day = today
            self._own = self._others = 0.0
            self._summed_at = None
