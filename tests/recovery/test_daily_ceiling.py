"""The ceiling of dollars a day over all Workers of a store, and what `spend` shows of it."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client

from activities.store import spending
from activities.store.artifacts import open_store
from activities.store.spending import DailySpend
from supervision.contract.status import Status
from temporal_supervisor import RunRequest, start
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
    assert (owner["owner"], owner["runs"], owner["tokens"]) == ("ann", 2, 2 * 3 * 20)


async def test_each_worker_counts_what_the_others_have_spent_on_this_day_alone(
    tmp_path: Path, monkeypatch: Any
) -> None:
    store = open_store(tmp_path)
    one, other = DailySpend(store, 1.0), DailySpend(store, 1.0)
    await asyncio.gather(*(worker.add(0.15) for worker in (one, other) for _ in range(3)))
    assert await one.reached() is None
    await other.add(0.2)
    assert await one.reached() is None  # what it has read is some seconds old
    monkeypatch.setattr(spending, "_SUM_AGE", -1.0)
    assert await one.reached() is not None
    assert await DailySpend(store, 1.2).reached() is None

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=1)

    monkeypatch.setattr(spending, "datetime", Tomorrow)
    assert await one.reached() is None
