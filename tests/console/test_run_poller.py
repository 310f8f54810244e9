"""How often a followed run is queried: when there is news, and hardly while there is none."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import Client, Interceptor, OutboundInterceptor, QueryWorkflowInput

from console.run.run_handle import RunHandle
from console.view import follow
from console.view.event_lines import Line
from console.view.follow import RunPoller
from tests.scripted_model import plan, script, text, tools, when
from tests.waiting import until
from tests.workflow.runs import Lab

ROUNDS = 20


class Queries(Interceptor):
    """Counts the queries of a client, by workflow."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002
        """Returns what counts and asks."""
        counts = self.counts

        class Counting(OutboundInterceptor):
            async def query_workflow(self, input: QueryWorkflowInput) -> Any:  # noqa: A002
                counts[input.id] += 1
                return await super().query_workflow(input)

        return Counting(next)

    def taken(self) -> dict[str, int]:
        """Returns the counts since the last time."""
        taken = dict(self.counts)
        self.counts.clear()
        return taken


@pytest.fixture
def queries() -> Queries:
    """The queries of `poller`."""
    return Queries()


@pytest.fixture
def poller(client: Client, queries: Queries, run_id: str) -> RunPoller:
    """What asks the run of the test."""
    config = client.config()
    config["interceptors"] = [queries]
    return RunPoller(RunHandle(Client(**config), run_id))


async def test_what_has_no_news_is_not_queried(
    lab: Lab, poller: RunPoller, queries: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = asyncio.Event(), asyncio.Event()

    def turns(step: Any) -> Any:
        if step.number == 1:
            return when(first, tools(("lookup", {"query": "x"})))
        return when(second, text("found"))

    def still(step: Any) -> Any:
        return when(second, text("found"))

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns, "t2": still}))
    handle = await lab.start()
    lines: list[Line] = []

    async def quiet() -> bool:
        before = queries.counts.total()
        lines.extend(await poller.poll())
        return len(poller.picture.agents) == 2 and queries.counts.total() == before

    async def told(text: str) -> bool:
        lines.extend(await poller.poll())
        return any(line.text.startswith(text) for line in lines)

    monkeypatch.setattr(follow, "IDLE", timedelta(hours=1))
    await until(lambda: {"t1/1/turn.1", "t2/1/turn.1"} <= set(lab.steps))
    await until(quiet)
    queries.taken()
    for _ in range(ROUNDS):
        lines += await poller.poll()
    assert queries.taken() == {}

    first.set()
    await until(lambda: "t1/1/turn.2" in lab.steps)
    await until(lambda: told("turn 1"))
    await until(quiet)
    assert set(queries.taken()) == {f"{lab.run_id}/t1/1"}, "only the worker agent that took a turn has news"

    monkeypatch.setattr(follow, "IDLE", timedelta())
    for _ in range(ROUNDS):
        await poller.poll()
    assert queries.taken() == {lab.run_id: ROUNDS}

    second.set()
    await handle.result()
    await until(lambda: told("done"))
    await until(lambda: poller.caught_up)
    shown = [(line.subject, line.text) for line in lines]
    assert shown.count(("t1", "completed after 2 turns")) == 1
    assert shown.count(("t2", "turn 1: found")) == 1
    assert {report.state for report in poller.picture.reports.values()} == {"completed"}


async def test_each_page_of_a_large_run_is_read_after_the_news(lab: Lab, poller: RunPoller, queries: Queries) -> None:
    ids = [f"t{number}" for number in range(110)]
    lab.play(script(plan(*[{"id": each} for each in ids])))
    handle = await lab.start(max_subtasks=len(ids), max_parallel=50)
    await handle.result()
    for _ in range(2):
        await poller.poll()
    assert set(poller.picture.reports) == set(ids)
    assert queries.taken()[lab.run_id] <= 2 * 3
    await poller.poll()
    assert lab.run_id not in queries.taken()
