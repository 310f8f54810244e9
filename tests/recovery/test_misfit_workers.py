"""A Worker that lacks the store of a run: its calls wait for the right Worker, and fail nothing."""

import asyncio
from pathlib import Path

import pytest

from temporal_supervisor.console.run.standstill import Standstill, observed_standstills
from temporal_supervisor.runs import Run
from tests.scripted_model import plan, script, text, tools
from tests.serving import WorkerProcesses
from tests.workflow.runs import Lab, found

pytestmark = pytest.mark.timeout(300)  # three processes one after the other


async def _awaited(lone: Lab, waits_for: str) -> Standstill:
    """What the server shows the run to wait for, of that kind."""
    run = Run(lone.client, lone.run_id)
    async with asyncio.timeout(120):
        while True:
            for cause in await observed_standstills(run, await run.describe(), answered=True):
                if cause.waits_for == waits_for and "attempt" in cause.text:
                    return cause
            await asyncio.sleep(0.2)


async def test_a_tool_call_waits_for_a_worker_with_the_runs_store(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    store = workers.environ["SUPERVISOR_ARTIFACTS_URL"]
    await workers.start("--roles", "workflows,model")
    workers.environ["SUPERVISOR_ARTIFACTS_URL"] = str(tmp_path / "other")
    misfit = await workers.start("--roles", "tools")
    (tmp_path / "go").touch()
    waits = tools(("wait_for_file", {"path": str(tmp_path / "go")}))
    turns = {"t1": lambda step: waits if step.number == 1 else text(step.prompt)}
    lone.play(script(plan({"id": "t1", "role": "counter"}), turns))
    handle = await lone.start()
    cause = await _awaited(lone, "store")
    assert cause.subjects == ("t1",)
    assert "SUPERVISOR_ARTIFACTS_URL" in cause.line
    misfit.kill()
    workers.environ["SUPERVISOR_ARTIFACTS_URL"] = store
    await workers.start("--roles", "tools")
    ended = await asyncio.wait_for(handle.result(), 120)
    assert (ended.status, ended.subtasks[0].attempts) == ("completed", 1)
    assert "the file is there" in found(ended).summary
