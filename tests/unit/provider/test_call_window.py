"""The window of calls in flight: the rule, and what it makes of a provider whose limit moves, in simulated time."""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standin.server.faults import RequestBucket, RequestLimit
from supervision.base import limits
from supervision.base.errors import ErrorKind
from supervision.provider.provider_breaker import CallWindow, Go, Paced, ProviderBreaker


def test_a_refusal_leaves_half_of_what_was_in_flight() -> None:
    window = CallWindow(200)
    window.refused(9, 0)
    assert window.size == 4
    window.refused(200, 1)
    assert window.size == 2


def test_refusals_within_a_second_are_one() -> None:
    window = CallWindow(64)
    for _ in range(20):
        window.refused(64, 7.0)
    window.refused(64, 7.9)
    assert window.size == 32
    window.refused(64, 8.0)
    assert window.size == 16


def test_there_is_one_more_for_as_many_grants_as_the_window_has_and_for_four_in_a_large_one() -> None:
    window = CallWindow(7)
    window.refused(1, 0)
    sizes = []
    for _ in range(22):
        window.granted()
        sizes.append(window.size)
    assert sizes == [2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7]


def test_grants_before_a_refusal_do_not_count_after_it() -> None:
    window = CallWindow(8)
    for _ in range(3):
        window.granted()
    window.refused(8, 0)
    window.granted()
    assert window.size == 4


@given(st.integers(1, 50), st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.floats(0, 3)), max_size=200))
def test_it_is_never_below_one_nor_above_the_most_and_halved_once_a_second(
    most: int, course: list[tuple[bool, int, float]]
) -> None:
    window, now, halved = CallWindow(most), 0.0, -math.inf
    for is_refused, in_flight, seconds in course:
        now += seconds
        before = window.size
        if is_refused:
            window.refused(in_flight, now)
        else:
            window.granted()
        assert 1 <= window.size <= most
        assert before // 2 <= window.size or in_flight < before
        assert window.size <= before + (not is_refused)
        if window.size < before:
            assert now - halved >= 1
            halved = now


@dataclass
class Process:
    """A Worker process: its breaker, and the calls that wait in it."""

    breaker: ProviderBreaker = field(default_factory=ProviderBreaker)
    waiting: deque[None] = field(default_factory=deque)
    resumes: float = 0.0


@dataclass
class World:
    """Three processes with calls of `latency` before a provider with a hidden limit, in seconds."""

    latency: float
    seed: int
    names_wait: bool = True
    now: float = 0.0
    granted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random, self.numbers = Random(self.seed), count()
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.processes = [Process() for _ in range(3)]
        self.bucket = RequestBucket(lambda: self.now)

    def run(self, phases: list[tuple[float, float]]) -> list[float]:
        """Returns the share of each phase's limit that was granted, the first minute aside."""
        agents = 600
        for _ in range(agents):
            self.later(self.random.random(), self.come)
        began, shares = 0.0, []
        for per_minute, seconds in phases:
            self.limit = RequestLimit(per_minute=per_minute)
            while self.events[0][0] < began + seconds:
                self.now, _, happens = heapq.heappop(self.events)
                happens()
            counted = max(began, 60.0)
            allowed = per_minute / 60 * (began + seconds - counted)
            shares.append(sum(at >= counted for at in self.granted) / allowed)
            began += seconds
        return shares

    def later(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + seconds, next(self.numbers), happens))

    def come(self) -> None:
        """The queue gives a call to one of the processes."""
        process = self.random.choice(self.processes)
        process.waiting.append(None)
        self.admit(process)

    def admit(self, process: Process) -> None:
        while process.waiting:
            admission = process.breaker.ask(self.now)
            if isinstance(admission, Paced) and process.resumes <= self.now:
                process.resumes = self.now + admission.seconds
                self.later(admission.seconds, lambda: self.admit(process))
            if not isinstance(admission, Go):
                return
            process.waiting.popleft()
            self.send(process, admission)

    def send(self, process: Process, admission: Go) -> None:
        breaker, ticket = process.breaker, admission.ticket

        def refused() -> None:
            breaker.failed(ticket, self.now, ErrorKind.RATE_LIMITED, retry_after)
            self.admit(process)

        def answered() -> None:
            breaker.succeeded(ticket, self.now)
            self.later(0.05, self.come)
            self.admit(process)

        if wait := self.bucket.take(self.limit):
            self.refused.append(self.now)
            retry_after = math.ceil(wait) if self.names_wait else None
            self.later(0.02, refused)
            self.later((retry_after or 1) * (1 + limits.RETRY_JITTER * self.random.random()), self.come)
        else:
            self.granted.append(self.now)
            takes = self.latency * self.random.uniform(0.6, 1.4)
            self.later(takes / 5, lambda: breaker.answering(ticket, self.now))
            self.later(takes, answered)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("latency", "minutes", "names_wait", "refused"),
    [(1.0, (2, 1, 1), True, 0.25), (1.0, (2, 1, 1), False, 0.75), (20.0, (6, 3, 6), True, 0.15)],
)
def test_a_limit_that_moves_is_used(
    latency: float, minutes: tuple[float, ...], names_wait: bool, refused: float, seed: int
) -> None:
    world = World(latency, seed, names_wait)
    rates = (600, 200, 1000)
    shares = world.run([(rate, 60 * length) for rate, length in zip(rates, minutes, strict=True)])
    assert min(shares) >= 0.7
    assert len(world.refused) <= refused * len(world.granted)


@pytest.mark.parametrize("seed", range(3))
def test_a_low_limit_is_used_and_not_stormed(seed: int) -> None:
    world = World(1.0, seed, names_wait=False)
    assert world.run([(60, 300)])[0] >= 0.9
    assert len(world.refused) <= 5 * len(world.granted)
