"""Calls that freeze or end their Worker process: it dies within the limit, and the run is finished by another one."""

import asyncio
from pathlib import Path

import pytest

from activities.prompts.agent_prompts import DEADLY_CALL
from temporal_supervisor.runtime.watchdog import FROZEN
from temporal_supervisor.supervision.base import limits
from tests.scripted_model import Reply, Step, plan, script, text, tools
from tests.serving import WorkerProcess, WorkerProcesses
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, found

TEAMS = Path(__file__).parent / "teams"


async def start(lone: Lab, tool: str, path: Path, calls: int = 2) -> Handle:
    """Starts a run whose one worker agent calls `tool` some times and then says what came back."""

    def turns(step: Step) -> Reply:
        return tools((tool, {"path": str(path)})) if step.number <= calls else text(step.prompt)

    lone.play(script(plan({"id": "t1", "role": "daredevil"}), {"t1": turns}))
    return await lone.start(team="hazard")


async def summary(handle: Handle) -> str:
    """What the worker agent said in the end."""
    return found(await asyncio.wait_for(handle.result(), 100)).summary


async def dead(workers: list[WorkerProcess]) -> WorkerProcess:
    """The process that has ended."""
    await until(lambda: any(worker.code is not None for worker in workers), 60)
    return next(worker for worker in workers if worker.code is not None)


async def test_a_frozen_worker_dies_and_another_finishes_the_run(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    workers.environ |= {"SUPERVISOR_TEAMS_DIR": str(TEAMS), "SUPERVISOR_CACHE_DIR": str(tmp_path / "cache")}
    both = list(await asyncio.gather(workers.start(), workers.start()))
    handle = await start(lone, "freeze_once", tmp_path / "begun")
    frozen = await dead(both)
    assert frozen.code == FROZEN
    assert "most recent call first" in frozen.log.read_text()
    assert f"watchdog: under way: run_tool of run {lone.run_id}/t1/1" in frozen.log.read_text()
    await workers.start()
    # Until it dies, a frozen process takes calls that were meant for others: at worst all attempts of this one.
    finding = await summary(handle)
    assert "it thawed" in finding or DEADLY_CALL in finding


@pytest.mark.long
async def test_a_tool_that_ends_its_process_is_not_called_a_fourth_time(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    """The count of such deaths is tested without processes, too: tests/activity/test_attempt_interceptor.py."""
    workers.environ |= {"SUPERVISOR_TEAMS_DIR": str(TEAMS), "SUPERVISOR_CACHE_DIR": str(tmp_path / "cache")}
    running = await workers.start()
    handle = await start(lone, "die", tmp_path / "begun", calls=1)
    for _ in range(limits.CALL_DEATHS):
        died = await dead([running])
        assert died.code == 9
        running = await workers.start()
    assert DEADLY_CALL in await summary(handle)
    assert lone.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "t1/1/turn.3", "synthesis.1"], (
        "no model call was repeated"
    )
    assert running.code is None
    assert (tmp_path / "begun").read_text().count("begun") == limits.CALL_DEATHS
