"""How a process takes part in the rate of its queue: once lowered for many refusals, raised only while calls wait."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from activities.model.gate import ModelGate
from activities.model.pace.queue_pace import QueuePace
from activities.model.port import ModelFailure, RequestLimits, StreamProgress
from supervision import limits
from supervision.errors import ErrorKind
from supervision.provider.found_limit import QueueLimit
from supervision.provider.queue_rates import QueueView, RatesUnavailable
from tests.activity.model import http_fixture as http
from tests.activity.model.test_anthropic_model import adapter, ask
from tests.activity.model.test_gate import Clock

QUEUE, POOL = "supervisor-model", "supervisor.far"
TICK = limits.FOUND_TICK.total_seconds()


@dataclass
class Server:
    """Queues and their configuration, in memory."""

    queues: dict[str, QueueView] = field(default_factory=dict)
    writes: int = 0
    away: bool = False
    used: float = 1.0

    async def read(self, queue: str) -> QueueView:
        await asyncio.sleep(0)
        if self.away:
            raise RatesUnavailable("not permitted")
        view = self.queues.get(queue, QueueView())
        return replace(view, dispatched=self.used * (view.rate or 0) if view.waiting else 0.0)

    async def write(self, queue: str, rate: float | None, reason: str) -> str:
        await asyncio.sleep(0)
        self.writes += 1
        before = self.queues.get(queue, QueueView())
        self.queues[queue] = replace(before, rate=rate, reason=reason, version=f"v{self.writes}")
        return f"v{self.writes}"

    def by_hand(self, rate: float | None, reason: str) -> None:
        """Somebody uses `temporal task-queue config set`."""
        self.queues[QUEUE] = QueueView(rate, reason, f"by hand {rate}")

    def waits(self, count: int, queue: str = QUEUE) -> None:
        """So many calls wait in a queue."""
        self.queues[queue] = replace(self.queues.get(queue, QueueView()), waiting=count)

    @property
    def rate(self) -> float | None:
        """The rate of the queue."""
        return self.queues[QUEUE].rate if QUEUE in self.queues else None

    @property
    def reason(self) -> str:
        """And why."""
        return self.queues[QUEUE].reason


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Server:
    return Server()


async def looks(pace: QueuePace, clock: Clock, seconds: float) -> None:
    """The process has model calls and looks at its queue for so long."""
    for _ in range(int(seconds / TICK)):
        clock.now += TICK
        pace.handed_out("m")
        await pace.look()


async def test_many_refusals_at_once_lower_the_rate_once(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    sent = [pace.handed_out("m") for _ in range(50)]
    await asyncio.gather(*(pace.refused(one, None) for one in sent))
    assert server.writes == 1
    assert "429 at 300/min" in server.reason


async def test_a_refusal_that_another_process_has_answered_changes_nothing(server: Server, clock: Clock) -> None:
    first, second = (QueuePace(server, QUEUE, clock=clock) for _ in range(2))
    sent = first.handed_out("m"), second.handed_out("m")
    await first.refused(sent[0], None)
    await second.refused(sent[1], None)
    assert server.writes == 1
    assert second.rate == pytest.approx(first.rate, rel=0.01)


async def test_a_call_sent_at_the_lower_rate_lowers_it_again(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    before = server.rate
    clock.now += 5 * limits.FOUND_WINDOW.total_seconds()
    await pace.refused(pace.handed_out("m"), None)
    assert before is not None
    assert server.rate is not None
    assert server.rate < before * 0.6


async def test_the_rate_rises_while_calls_wait_and_only_then(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    low = server.rate
    assert low is not None
    await looks(pace, clock, 60)
    assert server.rate == low
    server.waits(9)
    await looks(pace, clock, 60)
    assert server.rate is not None
    assert server.rate > 2 * low


async def test_a_call_that_waited_in_the_process_says_nothing_of_the_rate_since(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    waited, first = pace.handed_out("m"), pace.handed_out("m")
    await pace.refused(first, None)
    clock.now += 10
    await pace.refused(waited, None)
    assert server.writes == 1


async def test_a_rate_so_low_that_no_call_came_lately_is_still_raised(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    before = server.rate
    server.waits(9)
    for _ in range(30):
        clock.now += TICK
        await pace.look()
    assert before is not None
    assert server.rate is None or server.rate > 2 * before


async def test_a_rate_that_slow_processes_do_not_use_is_not_raised(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    before, server.used = server.rate, 0.2
    server.waits(9)
    await looks(pace, clock, 60)
    assert server.rate == before


async def test_two_processes_raise_the_rate_as_one_would(server: Server, clock: Clock) -> None:
    alone = Server()
    one, *two = (QueuePace(where, QUEUE, clock=clock) for where in (alone, server, server))
    await one.refused(one.handed_out("m"), None)
    await two[0].refused(two[0].handed_out("m"), None)
    for where in (alone, server):
        where.waits(9)
    for _ in range(20):
        clock.now += TICK
        for pace in (one, *two):
            pace.handed_out("m")
            await pace.look()
    assert alone.rate is not None
    assert server.rate == pytest.approx(alone.rate, rel=0.1)


async def test_a_limit_that_is_gone_is_forgotten(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    server.waits(9)
    await looks(pace, clock, 180)
    assert server.rate is None


async def test_a_rate_set_by_hand_is_never_exceeded_and_comes_back(server: Server, clock: Clock) -> None:
    server.by_hand(2.0, "agreed with the provider")
    pace = QueuePace(server, QUEUE, clock=clock)
    await looks(pace, clock, TICK)
    clock.now += 5 * limits.FOUND_WINDOW.total_seconds()
    await pace.refused(pace.handed_out("m"), None)
    assert server.rate is not None
    assert server.rate < 2.0
    assert "agreed with the provider" in server.reason
    server.waits(9)
    await looks(pace, clock, 180)
    assert (server.rate, server.reason) == (2.0, "agreed with the provider")


async def test_a_change_by_hand_wins_over_what_was_found(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    server.by_hand(0.5, "slowly")
    server.waits(9)
    await looks(pace, clock, 30)
    assert (server.rate, server.reason) == (0.5, "slowly")


async def test_a_named_limit_is_kept_at_once(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    for left in (30.0, 5.0):
        pace.handed_out("m")
        pace.answered("m", RequestLimits(60, left))
        await pace.look()
        assert server.rate == (None if left == 30 else pytest.approx(limits.FOUND_NAMED_SHARE))
    pace.handed_out("m")
    pace.answered("m", RequestLimits(120, 100))
    await pace.look()
    assert server.rate == pytest.approx(2 * limits.FOUND_NAMED_SHARE)
    assert "the provider names 120/min" in server.reason


async def test_a_refusal_with_a_named_limit_needs_no_search(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    sent, named = pace.handed_out("m"), RequestLimits(600, 0)
    pace.answered("m", named)
    await pace.refused(sent, named)
    assert server.rate == pytest.approx(10 * limits.FOUND_NAMED_SHARE)


async def test_a_refusal_for_tokens_lowers_the_rate_below_the_named_limit(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    sent, named = pace.handed_out("m"), RequestLimits(600, 500)
    pace.answered("m", named)
    await pace.refused(sent, named)
    assert server.rate is not None
    assert server.rate < 1


async def test_a_limit_that_is_no_longer_named_is_forgotten(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    pace.handed_out("m")
    pace.answered("m", RequestLimits(60, 0))
    await pace.look()
    assert server.rate is not None
    clock.now += limits.NAMED_LIFE.total_seconds()
    for _ in range(limits.NAMED_SILENCE):
        pace.handed_out("m")
        pace.answered("m", None)
    await pace.look()
    assert server.rate is None


async def test_an_absurd_limit_stops_no_queue(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    pace.handed_out("m")
    pace.answered("m", RequestLimits(1e-9, 0))
    await pace.look()
    assert server.rate is not None
    assert server.rate >= limits.FOUND_LEAST_RATE * limits.FOUND_NAMED_SHARE


async def test_a_model_with_few_calls_does_not_bound_the_others(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, clock=clock)
    for _ in range(19):
        pace.handed_out("many")
    pace.handed_out("few")
    pace.answered("few", RequestLimits(20, 0))
    pace.answered("many", RequestLimits(600, 100))
    await pace.look()
    assert server.rate == pytest.approx(10 / 0.95 * limits.FOUND_NAMED_SHARE)


async def test_what_was_found_is_taken_back_where_nothing_is_to_be_found(server: Server, clock: Clock) -> None:
    await (pace := QueuePace(server, QUEUE, clock=clock)).refused(pace.handed_out("m"), None)
    fixed = QueuePace(server, QUEUE, find=False, clock=clock)
    await fixed.refused(fixed.handed_out("m"), None)
    await fixed.look()
    assert server.rate is None


async def test_queues_share_the_set_limit(server: Server, clock: Clock) -> None:
    both = [QUEUE, POOL]
    main, pool = (QueuePace(server, queue, total=10.0, queues=both, clock=clock) for queue in both)
    server.waits(9)
    for pace in (pool, main):
        await pace.look()
    assert server.rate == pytest.approx(9.5)
    assert "a share of SUPERVISOR_MODEL_RPM 600" in server.reason
    server.waits(9, POOL)
    for pace in (pool, main, pool):
        await pace.look()
    assert server.rate == pytest.approx(5)
    assert server.queues[POOL].rate == pytest.approx(5)


async def test_a_queue_alone_is_left_to_its_workers(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, total=1.0, queues=[QUEUE], clock=clock)
    server.waits(9)
    await looks(pace, clock, 30)
    assert server.writes == 0


async def test_a_found_limit_stays_below_the_set_one(server: Server, clock: Clock) -> None:
    pace = QueuePace(server, QUEUE, total=0.5, queues=[QUEUE], clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    server.waits(9)
    await looks(pace, clock, 30)
    assert server.rate is not None
    assert server.rate <= 0.5


async def test_a_server_without_rates_stops_no_call(server: Server, clock: Clock) -> None:
    server.away = True
    pace = QueuePace(server, QUEUE, clock=clock)
    await pace.refused(pace.handed_out("m"), None)
    with pytest.raises(RatesUnavailable):
        await pace.look()
    assert pace.rate is None


async def test_the_gate_reports_refusals_with_the_headers_of_the_answer(server: Server, clock: Clock) -> None:
    headers = {"anthropic_ratelimit_requests_limit": "50", "anthropic_ratelimit_requests_remaining": "0"}
    reply = http.error(429, "rate_limit_error", **headers)
    async with http.model_server(reply) as provider, adapter(provider) as model:
        gate = ModelGate(model, clock=clock, pace=QueuePace(server, QUEUE, clock=clock))
        with pytest.raises(ModelFailure) as caught:
            await gate.complete(ask(), StreamProgress())
    assert caught.value.kind == ErrorKind.RATE_LIMITED
    limit = QueueLimit.read(server.rate, server.reason)
    assert limit.named is None or limit.named == pytest.approx(50 / 60, rel=0.01)
    assert server.rate == pytest.approx(50 / 60 * limits.FOUND_NAMED_SHARE, rel=0.01)
