"""The gate before the real adapter and a real HTTP server: which calls reach the provider, which are held back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from activities.contracts.turn_contracts import FailedCall
from activities.model import gate as model_gate
from activities.model.gate import GATE_WAIT, ModelGate
from activities.model.journalled_call import to_application_error
from activities.model.port import ModelFailure, ModelMessage, StreamProgress
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange, ModelServer, Reply
from tests.activity.model.test_anthropic_model import adapter, ask
from tests.waiting import until

COOLDOWN = limits.BREAKER_COOLDOWN.total_seconds()
GOOD = http.message(http.text("fine"))
OUTAGE = http.error(529, "overloaded_error")
BROKEN = http.stream(http.start(), *http.block(0, http.text("first words"))[:2], end=http.cut)


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Held:
    """Answers once told what with."""

    def __init__(self) -> None:
        self.told = asyncio.Event()
        self.then = GOOD

    async def __call__(self, exchange: Exchange) -> None:
        await self.told.wait()
        await self.then(exchange)

    def tell(self, then: Reply) -> None:
        self.then = then
        self.told.set()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def gated(reply: Reply, clock: Clock, **options: Any) -> AsyncIterator[tuple[ModelServer, ModelGate]]:
    async with http.model_server(reply) as server, adapter(server) as model:
        yield server, ModelGate(model, clock=clock, **options)


async def call(gate: ModelGate, **changes: Any) -> ModelMessage:
    return await gate.complete(ask(**changes), StreamProgress())


async def failures(gate: ModelGate, count: int, **changes: Any) -> list[str]:
    """The kinds of failure of that many calls at once."""
    found = await asyncio.gather(*(call(gate, **changes) for _ in range(count)), return_exceptions=True)
    return [error.kind if isinstance(error, ModelFailure) else repr(error) for error in found]


async def test_a_good_probe_lets_everyone_waiting_through(clock: Clock) -> None:
    async with gated(OUTAGE, clock) as (server, gate):
        await failures(gate, 20)
        sent, probe = len(server.requests), Held()
        server.reply = probe
        clock.now += COOLDOWN
        calls = [asyncio.create_task(call(gate)) for _ in range(30)]
        await until(lambda: len(server.requests) == sent + 1)
        assert gate.breaker(ask().model).state(clock()) == "half_open"
        probe.tell(GOOD)
        answers = await asyncio.gather(*calls)
    assert [answer.text() for answer in answers] == ["fine"] * 30
    assert len(server.requests) == sent + 30


async def test_an_endpoint_that_breaks_off_each_answer_is_left_alone(clock: Clock) -> None:
    async with gated(BROKEN, clock) as (server, gate):
        kinds = [kind for _ in range(limits.BREAKER_FAILURES + 1) for kind in await failures(gate, 1)]
        assert kinds[-1] == "CircuitOpen"
        assert len(server.requests) == limits.BREAKER_FAILURES


async def test_a_429_holds_the_models_other_calls_back_and_opens_nothing(clock: Clock) -> None:
    async with gated(http.error(429, "rate_limit_error", retry_after="20"), clock) as (server, gate):
        assert await failures(gate, 1) == ["RateLimited"]
        server.reply = GOOD
        with pytest.raises(ModelFailure) as caught:
            await call(gate)
        assert (caught.value.kind, caught.value.retry_after) == ("RateLimited", 20)
        assert len(server.requests) == 1
        assert (await call(gate, model="other")).text() == "fine"
        assert gate.breaker(ask().model).state(clock()) == "closed"
        clock.now += 20
        assert (await call(gate)).text() == "fine"


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (529, "overloaded_error")])
async def test_a_wish_for_years_holds_up_no_other_run(clock: Clock, status: int, kind: str) -> None:
    async with gated(GOOD, clock) as (server, gate):
        await call(gate)
        server.reply = http.error(status, kind, retry_after="31536000000")
        with pytest.raises(ModelFailure) as caught:
            await call(gate, run="unlucky")
        assert caught.value.retry_after is None
        server.reply = GOOD
        clock.now += limits.MODEL_RETRY_INITIAL.total_seconds()  # after a 429 that leaves one place
        assert (await call(gate, run="other")).text() == "fine"


async def test_runs_are_served_in_turn(clock: Clock) -> None:
    began: list[str] = []

    async with gated(GOOD, clock, most=1) as (server, gate):
        await call(gate)
        held = server.reply = Held()
        first = asyncio.create_task(call(gate))
        await until(lambda: len(server.requests) == 2)
        server.reply = GOOD

        async def one(run: str) -> None:
            await call(gate, run=run)
            began.append(run)

        calls = [asyncio.create_task(one(run)) for run in ["large"] * 10 + ["small"] * 2 + ["third"]]
        await asyncio.sleep(0)
        held.tell(GOOD)
        await asyncio.gather(first, *calls)
    assert began == ["large", "small", "third", "large", "small"] + ["large"] * 8


async def test_who_finds_no_room_for_long_gives_its_slot_back(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GATE_PATIENCE", timedelta(seconds=0.1))
    async with gated(GOOD, clock, most=1) as (server, gate):
        await call(gate)
        held = server.reply = Held()
        first = asyncio.create_task(call(gate))
        await until(lambda: len(server.requests) == 2)
        with pytest.raises(ModelFailure) as caught:
            await call(gate)
        assert (caught.value.kind, caught.value.retry_after) == ("RateLimited", GATE_WAIT.total_seconds())
        assert len(server.requests) == 2
        held.tell(GOOD)
        await first
        server.reply = GOOD
        assert (await call(gate)).text() == "fine"


async def test_a_call_that_waits_for_its_turn_says_so_and_is_no_failed_call(clock: Clock) -> None:
    async with gated(GOOD, clock) as (server, gate):
        gate.limit_calls(1)  # as the endpoint serves one at a time
        held = server.reply = Held()
        first, second = StreamProgress(), StreamProgress()
        calls = [asyncio.create_task(gate.complete(ask(), progress)) for progress in (first, second)]
        await until(lambda: len(server.requests) == 1)
        clock.now += 10 * 60  # however long that takes
        await asyncio.sleep(0.05)
        assert (first.stage, second.stage, len(server.requests)) == ("reading", "turn", 1)
        held.tell(GOOD)
        assert [message.text() for message in await asyncio.gather(*calls)] == ["fine", "fine"]
        assert (first.stage, second.stage) == ("writing", "writing")


@pytest.mark.parametrize(("failures", "least"), [(1, 1), (4, 8), (5000, 60)])
def test_without_a_wish_of_the_provider_the_wait_grows(failures: int, least: float) -> None:
    failure = ModelFailure(ErrorKind.PROVIDER_ERROR, "")
    delay = to_application_error(failure, FailedCall(failures={failure.kind: failures})).next_retry_delay
    assert delay is not None
    assert least <= delay.total_seconds() <= least * (1 + limits.RETRY_JITTER)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = provider.get_meter("test")
    monkeypatch.setattr(model_gate, "_state", meter.create_gauge("supervisor.provider_breaker.open"))
    yield reader
    provider.shutdown()


async def test_each_change_is_logged_once_and_the_gauge_shows_the_last(
    clock: Clock, caplog: pytest.LogCaptureFixture, measured: InMemoryMetricReader
) -> None:
    with caplog.at_level(logging.WARNING, model_gate.__name__):
        async with gated(OUTAGE, clock) as (server, gate):
            await failures(gate, 20, model="m")
            clock.now += COOLDOWN
            server.reply = GOOD
            await call(gate, model="m")
    assert [record.getMessage() for record in caplog.records] == [
        "provider breaker of m: closed -> open for 10 s",
        "provider breaker of m: open -> half_open",
        "provider breaker of m: half_open -> closed",
    ]
    data = measured.get_metrics_data()
    assert data is not None
    found = {metric.name: metric.data.data_points for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    gauge: list[Any] = list(found["supervisor.provider_breaker.open"])
    assert [(g.attributes["model"], g.value) for g in gauge] == [("m", 0)]
