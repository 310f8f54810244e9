"""Three processes and a provider whose limit moves, simulated: what the rule for found limits keeps, for any seed.

The provider has a bucket that refills evenly. Calls come from a closed loop of worker agents; a process knows of the
others only what the queue's configuration says.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import mean

import pytest

from supervision import limits
from supervision.provider.found_limit import FoundLimit, QueueLimit

PROCESSES, AGENTS = 3, 200
TICK = limits.FOUND_TICK.total_seconds()


@dataclass
class Provider:
    """A bucket of requests, per second."""

    rate: float
    burst: float
    level: float = 0.0
    at: float = 0.0

    def ask(self, now: float) -> float:
        """Returns 0 for a granted request, else the seconds until one would be."""
        self.level = min(max(1.0, self.rate * self.burst), self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return (1 - self.level) / self.rate
        self.level -= 1
        return 0.0


@dataclass
class Process:
    """What one process knows: the configuration it saw last, and since when."""

    at: str = ""
    version: int = 0
    since: float = 0.0
    paused_until: float = 0.0


@dataclass
class World:
    """The queue, its configuration, the provider and the processes; `phases` are (requests a minute, seconds)."""

    phases: list[tuple[float, float]]
    seed: int
    burst: float
    limit: QueueLimit = field(default_factory=QueueLimit)
    version: int = 0
    ready: float = 0.0
    waiting: int = AGENTS
    now: float = 0.0
    granted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.processes = [Process() for _ in range(PROCESSES)]
        self.provider = Provider(self.phases[0][0] / 60, self.burst)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0

    def run(self) -> "World":
        """Returns the world after all phases."""
        changes, at = [], 0.0
        for rate, seconds in self.phases:
            changes.append((at, rate))
            at += seconds
        for process in self.processes:
            self.later(self.random.random() * TICK, partial(self.tick, process))
        for when, rate in changes:
            self.later(when, partial(setattr, self.provider, "rate", rate / 60))
        self.later(0.0, self.dispatch)
        while self.events[0][0] < at:
            self.now, _, happens = heapq.heappop(self.events)
            happens()
        return self

    def later(self, seconds: float, happens: Callable[[], None]) -> None:
        """Has something happen after so many seconds."""
        self.count += 1
        heapq.heappush(self.events, (self.now + seconds, self.count, happens))

    def dispatch(self) -> None:
        """The server hands out what the configured rate allows, with one second's worth at once."""
        while self.waiting and self.ready <= self.now:
            spacing = 1 / self.limit.rate if self.limit.rate else 0.0
            self.ready = max(self.now, self.ready + 1) - 1 + spacing
            self.waiting -= 1
            process = self.random.choice(self.processes)
            self.later(max(0.005, process.paused_until - self.now), partial(self.send, process, process.at))
        if self.waiting:
            self.later(self.ready - self.now + 0.001, self.dispatch)

    def send(self, process: Process, known: str) -> None:
        """A call goes out; a refused one comes back to the queue after `retry-after`."""
        wait = self.provider.ask(self.now)
        if not wait:
            self.granted.append(self.now)
            self.later(self.random.uniform(0.5, 3), self.back)
            return
        self.refused.append(self.now)
        process.paused_until = self.now + wait
        self.later(0.03, lambda: self.lower(process, known))
        self.later(max(wait, 1) * (1 + limits.RETRY_JITTER * self.random.random()), self.back)

    def back(self) -> None:
        """Another call waits in the queue."""
        self.waiting += 1
        if self.waiting == 1:
            self.later(0.0, self.dispatch)

    def lower(self, process: Process, known: str) -> None:
        """A process answers a refusal, unless the rate was lowered since the call was sent."""
        found, at = self.limit.found, f"{self.now:.3f}"
        if known == (found.at if found else "") and (not found or self.now - float(found.at) >= found.window):
            self.write(QueueLimit(found=found.refused_again(at) if found else FoundLimit.first(0, at)))
        self.see(process)

    def tick(self, process: Process) -> None:
        """A process looks at the queue."""
        self.later(TICK * self.random.uniform(0.75, 1.25), lambda: self.tick(process))
        if process.version != self.version or not self.waiting or self.limit.found is None:
            self.see(process)
            return
        calmer = QueueLimit(found=self.limit.found.calmer(self.now - process.since))
        assert calmer.rate is not None
        assert self.limit.rate is not None
        if abs(calmer.rate / self.limit.rate - 1) >= limits.FOUND_STEP:
            self.write(calmer)
            self.see(process)

    def see(self, process: Process) -> None:
        """A process takes note of the configuration."""
        process.at = self.limit.found.at if self.limit.found else ""
        process.version, process.since = self.version, self.now

    def write(self, limit: QueueLimit) -> None:
        """The configuration goes through its words, as the server keeps them."""
        assert limit.rate is not None
        self.limit = QueueLimit.read(limit.rate, limit.reason())
        self.version += 1
        self.ready = min(self.ready, self.now + 1 + 1 / limit.rate)

    def goodput(self, began: float, ended: float) -> float:
        """Returns the granted requests of a time, to those that the limits allowed."""
        at, allowed = 0.0, 0.0
        for rate, seconds in self.phases:
            allowed += rate / 60 * max(0.0, min(ended, at + seconds) - max(began, at))
            at += seconds
        return self.between(self.granted, began, ended) / allowed

    def refusals(self, began: float, ended: float) -> float:
        """Returns the share of refused requests."""
        refused = self.between(self.refused, began, ended)
        return refused / (refused + self.between(self.granted, began, ended))

    @staticmethod
    def between(moments: list[float], began: float, ended: float) -> int:
        """Returns how many moments are in that time."""
        return sum(began <= at < ended for at in moments)


SEEDS = range(4)


@pytest.mark.parametrize("per_minute", [60, 100])
@pytest.mark.parametrize("burst", [5, 60])
def test_a_limit_that_stays_is_used_and_seldom_met(per_minute: float, burst: float) -> None:
    worlds = [World([(per_minute, 1200)], seed, burst).run() for seed in SEEDS]
    assert min(world.goodput(200, 1200) for world in worlds) >= 0.9
    assert max(world.refusals(200, 1200) for world in worlds) <= 0.03


@pytest.mark.parametrize("burst", [5, 15, 60])
def test_a_limit_that_moves_is_followed(burst: float) -> None:
    for seed in SEEDS:
        world = World([(60, 300), (20, 120), (100, 400)], seed, burst).run()
        assert world.goodput(60, 820) >= 0.9
        assert world.refusals(60, 820) <= 0.03
        # Lowered: soon few are refused. Raised: within a minute it is used.
        assert world.between(world.refused, 360, 420) <= 4
        assert world.goodput(480, 540) >= 0.85


def test_a_limit_that_moves_soon_is_followed_within_its_minute() -> None:
    """In the mean: how soon a raised limit is noticed depends on when it was last met."""
    low = [45 + 5 * number for number in range(10)]  # seconds
    worlds = [World([(60, 120), (20, seconds), (100, 200)], seconds, 5).run() for seconds in low]
    ended = [320 + seconds for seconds in low]
    assert mean(world.goodput(60, end) for world, end in zip(worlds, ended, strict=True)) >= 0.88
    assert mean(world.refusals(60, end) for world, end in zip(worlds, ended, strict=True)) <= 0.03
    assert min(world.goodput(end - 140, end) for world, end in zip(worlds, ended, strict=True)) >= 0.85


def test_a_storm_of_refusals_lowers_the_rate_once() -> None:
    world = World([(60, 3)], 1, 5).run()
    assert world.between(world.refused, 0, 1) > AGENTS / 2
    assert world.version <= 3
