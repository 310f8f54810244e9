"""Workers that lack the store or the team of a run: its calls wait for the right Worker, and fail nothing."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from console.run.run_handle import RunHandle
from console.run.standstill import Standstill, observed
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, Step, plan, script, text, tools
from tests.serving import TEAMS, WorkerProcesses
from tests.workflow.runs import Lab
from workflows.supervisor import SupervisorWorkflow

pytestmark = pytest.mark.timeout(300)  # up to three processes one after the other


async def _start(lone: Lab, role: str, first: Callable[[], Reply]) -> None:
    """A run whose one worker agent makes the `first` reply's tool call and then says what came back."""

    def turns(step: Step) -> Reply:
        return first() if step.number == 1 else text(step.prompt)

    lone.play(script(plan({"id": "t1", "role": role}), {"t1": turns}))
    await lone.start()


async def _awaited(lone: Lab, waits_for: str) -> Standstill:
    """What the server shows the run to wait for, of that kind."""
    run = RunHandle(lone.client, lone.run_id)
    async with asyncio.timeout(120):
        while True:
            for cause in await observed(run, await run.describe(), answered=True):
                if cause.waits_for == waits_for and "attempt" in cause.text:
                    return cause
            await asyncio.sleep(0.2)


async def _summary(lone: Lab) -> str:
    async with asyncio.timeout(120):
        ended: RunResult = await lone.client.get_workflow_handle_for(SupervisorWorkflow.run, lone.run_id).result()
    (report,) = ended.subtasks
    assert (ended.status, report.attempts) == ("completed", 1)
    assert report.finding is not None
    return report.finding.summary


async def test_a_tool_call_waits_for_a_worker_with_the_runs_store(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    store = workers.environ["SUPERVISOR_ARTIFACTS_URL"]
    await workers.start("--roles", "workflows,model")
    workers.environ["SUPERVISOR_ARTIFACTS_URL"] = str(tmp_path / "other")
    misfit = await workers.start("--roles", "tools")
    (tmp_path / "go").touch()
    waits = tools(("wait_for_file", {"path": str(tmp_path / "go")}))
    await _start(lone, "counter", lambda: waits)
    cause = await _awaited(lone, "store")
    assert cause.subjects == ("t1",)
    assert cause.since is not None
    assert "SUPERVISOR_ARTIFACTS_URL" in cause.line
    misfit.kill()
    workers.environ["SUPERVISOR_ARTIFACTS_URL"] = store
    await workers.start("--roles", "tools")
    assert "the file is there" in await _summary(lone)


async def test_a_local_tool_that_a_worker_lacks_is_run_by_another_one(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    folder = tmp_path / "teams"
    shutil.copytree(TEAMS, folder)
    await workers.start("--roles", "model")  # each turn needs the team, so this Worker keeps it
    workers.environ["SUPERVISOR_TEAMS_DIR"] = str(folder)
    misfit = await workers.start("--roles", "workflows,tools")

    def looks_up() -> Reply:
        (folder / "lab" / "tools.py").write_text("TOOLS = []\n")  # as a Worker of an older release has it
        return tools(("lookup", {"query": "pears"}))

    await _start(lone, "finder", looks_up)
    cause = await _awaited(lone, "worker")
    assert cause.text.startswith("a Worker with the run's team: ")
    misfit.kill()
    workers.environ["SUPERVISOR_TEAMS_DIR"] = str(TEAMS)
    await workers.start("--roles", "workflows,tools")
    assert "found pears" in await _summary(lone)
