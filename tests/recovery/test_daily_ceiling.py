"""The ceiling of dollars a day over all Workers of a store, and what `spend` shows of it."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.store import spending
from activities.store.spending import DailySpend, NoCall
from activities.store.store_urls import open_store
from temporal_supervisor import RunRequest, start
from temporal_supervisor.supervision.contract.status import Status
from tests.scripted_model import ScriptedModel, plan, script
from tests.serving import ROOT, WorkerProcesses
from tests.waiting import until


async def _command(workers: WorkerProcesses, *words: str) -> Any:
    command = [sys.executable, str(ROOT / "starter.py"), *words, "--json"]
    done = await asyncio.to_thread(subprocess.run, command, env=workers.environ, capture_output=True, timeout=60)
    return json.loads(done.stdout)


async def test_a_run_waits_when_another_worker_has_spent_the_dollars_of_the_day(
    workers: WorkerProcesses, lone_model: ScriptedModel, lone_client: Client, run_id: str
) -> None:
    for run in (run_id, f"{run_id}-2"):
        lone_model.play(run, script(plan({"id": "t1"})))
    request = RunRequest(goal="goal", team="lab", max_reviews=0, metadata={"owner": "ann"})
    workers.environ["SUPERVISOR_DAILY_USD"] = "5"
    first = await workers.start()
    await lone_client.get_workflow_handle(await start(lone_client, request, run_id)).result()
    await first.stopped()
    workers.environ["SUPERVISOR_DAILY_USD"] = "0.0001"
    second = await workers.start()
    waiting = lone_client.get_workflow_handle(await start(lone_client, request, f"{run_id}-2"))

    async def waits() -> bool:
        status: Status = await waiting.query("status", result_type=Status)
        return status.flags.waiting_provider

    await until(waits)
    (wait,) = (await waiting.query("status", result_type=Status)).waiting
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert wait.kind == "provider"
    assert "$0.0001 a day is reached (SUPERVISOR_DAILY_USD" in wait.prompt_preview
    assert f"calls begin again at {tomorrow} 00:00 UTC" in wait.prompt_preview
    assert lone_model.of(f"{run_id}-2") == []

    await second.stopped()
    workers.environ["SUPERVISOR_DAILY_USD"] = "5"
    await workers.start()
    await waiting.execute_update("resume", {})
    assert (await waiting.result())["status"] == "completed"
    (owner,) = await _command(workers, "spend", "--by", "owner")
    assert (owner["owner"], owner["runs"], owner["tokens"]) == ("ann", 2, 2 * 4 * 20)
    assert owner["usd"] > 0


async def refused(daily: DailySpend) -> NoCall | None:
    """Returns why no call may begin now."""
    async with daily.call(0.0) as no_call:
        return no_call


async def test_each_worker_counts_what_the_others_have_spent_on_this_day_alone(
    tmp_path: Path, monkeypatch: Any
) -> None:
    store = open_store(tmp_path)
    one, other = DailySpend(store, 1.0), DailySpend(store, 1.0)
    await asyncio.gather(*(worker.add(0.15) for worker in (one, other) for _ in range(3)))
    assert await refused(one) is None
    await other.add(0.2)
    assert await refused(one) is None  # what it has read is some seconds old
    monkeypatch.setattr(spending, "_SUM_AGE", -1.0)
    assert await refused(one) is not None
    assert await refused(DailySpend(store, 1.2)) is None

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=1)

    monkeypatch.setattr(spending, "datetime", Tomorrow)
    assert await refused(one) is None


@pytest.mark.parametrize("spent", [2.5, 0.4])
async def test_a_burst_in_a_fresh_process_does_not_pass_the_ceiling(tmp_path: Path, spent: float) -> None:
    """Of 200 calls at once, as after a crash: none, or as many as their estimates have room for."""
    store = open_store(tmp_path)
    await DailySpend(store, 1.0).add(spent)
    fresh, ends = DailySpend(store, 1.0), asyncio.Event()
    sent, held = list[int](), list[NoCall]()

    async def one_call(number: int) -> None:
        async with fresh.call(0.25) as no_call:
            if no_call is not None:
                held.append(no_call)
                return
            sent.append(number)
            await ends.wait()

    calls = [asyncio.create_task(one_call(number)) for number in range(200)]
    await until(lambda: len(sent) + len(held) == len(calls))
    ends.set()
    await asyncio.gather(*calls)
    assert len(sent) == (0 if spent > 1 else 2)
    assert {no_call.is_over for no_call in held} == {spent > 1}
    assert (await refused(fresh) is None) == (spent < 1)


async def test_a_call_dearer_than_what_is_left_is_made_alone(tmp_path: Path) -> None:
    daily = DailySpend(open_store(tmp_path), 1.0)
    async with daily.call(5.0) as first, daily.call(0.1) as second:
        assert first is None
        assert second is not None
        assert not second.is_over
    assert await refused(daily) is None
