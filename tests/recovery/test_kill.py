"""kill -9 of the only Worker process, wherever it is: the run completes, and no stored answer is asked for again."""

import asyncio
from pathlib import Path

import pytest

from supervision.base import limits
from supervision.contract.result import RunResult
from tests.recovery.ledger import answered_at, repeated
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools, when
from tests.serving import WorkerProcesses
from tests.waiting import until
from tests.workflow.runs import Lab
from workflows.supervisor import SupervisorWorkflow


async def _finish(lone: Lab, workers: WorkerProcesses) -> RunResult:
    """Starts a new process, waits for the run, and checks both promises."""
    await workers.start()
    async with asyncio.timeout(60):
        result: RunResult = await lone.client.get_workflow_handle_for(SupervisorWorkflow.run, lone.run_id).result()
    ids = [lone.run_id, *[report.workflow_id for report in result.subtasks if report.workflow_id]]
    durable = await answered_at(lone.client, lone.run_id, ids, workers.artifacts)
    assert repeated(lone.calls, durable) == []
    assert len(durable) == len({call.step.call for call in lone.calls})
    return result


def _turns(path: Path | None = None) -> dict[str, object]:
    def turns(step: Step) -> Reply:
        if step.number == 1:
            return tools(("wait_for_file", {"path": str(path)})) if path else tools(("lookup", {"query": "x"}))
        return text("found it")

    return {subtask_id: turns for subtask_id in ("t1", "t2")}


SHAPE = plan({"id": "t1", "role": "counter"}, {"id": "t2", "role": "finder"})


@pytest.mark.parametrize("moment", ["plan.1.1", "t1/1/turn.2", "synthesis.1"])
async def test_a_kill_during_a_model_call_repeats_only_that_call(
    lone: Lab, workers: WorkerProcesses, moment: str
) -> None:
    released = asyncio.Event()
    usual = script(SHAPE, {"t2": _turns()["t2"]}, answer(cites=["t1"]))  # type: ignore[dict-item]

    def reply(step: Step) -> Reply:
        what = usual(step) if step.subtask_id != "t1" else _first_then_found(step)
        return when(released, what) if step.call.endswith(f"/{moment}") else what

    lone.play(reply)
    worker = await workers.start()
    await lone.start()
    await until(lone.sent(moment), 30)
    worker.kill()
    released.set()
    result = await _finish(lone, workers)
    assert result.status == "completed"
    assert lone.steps.count(moment) == 2


async def test_a_call_that_waits_for_the_model_outlives_any_number_of_kills(
    lone: Lab, workers: WorkerProcesses
) -> None:
    released = asyncio.Event()
    lone.play(script(plan({"id": "t1"}), {"t1": lambda step: when(released, text("found it"))}))
    worker = await workers.start()
    await lone.start()
    for kill in range(1, limits.CALL_DEATHS + 2):
        await until(lambda kill=kill: lone.steps.count("t1/1/turn.1") == kill, 30)
        worker.kill()
        if kill <= limits.CALL_DEATHS:
            worker = await workers.start()
    released.set()
    result = await _finish(lone, workers)
    assert result.status == "completed"
    assert lone.steps.count("t1/1/turn.1") == limits.CALL_DEATHS + 2


async def test_a_kill_during_a_tool_repeats_the_tool_and_no_model_call(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    signal = tmp_path / "go"
    lone.play(script(plan({"id": "t1", "role": "counter"}), _turns(signal)))  # type: ignore[arg-type]
    worker = await workers.start()
    await lone.start()
    await until(signal.with_suffix(".started").exists, 30)
    worker.kill()
    signal.touch()
    result = await _finish(lone, workers)
    assert result.status == "completed"
    assert lone.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "synthesis.1"]
    assert signal.with_suffix(".started").read_text().count("started") == 2


async def test_kills_in_a_burst_of_answers_never_repeat_a_stored_one(lone: Lab, workers: WorkerProcesses) -> None:
    burst = asyncio.Event()
    ids = [f"t{i}" for i in range(12)]
    turns = {subtask_id: lambda step: when(burst, text("done")) for subtask_id in ids}
    lone.play(script(plan(*[{"id": subtask_id} for subtask_id in ids]), turns))
    worker = await workers.start()
    await lone.start(max_parallel=12)
    await until(lambda: len(lone.calls) == 13, 30)
    burst.set()
    await until(lambda: sum(call.answered_at is not None for call in lone.calls) >= 7, 30)
    worker.kill()
    result = await _finish(lone, workers)
    assert result.status == "completed"


async def test_sigterm_lets_calls_in_flight_finish(lone: Lab, workers: WorkerProcesses) -> None:
    released = asyncio.Event()
    lone.play(script(plan({"id": "t1"}), {"t1": lambda step: when(released, text("done"))}))
    worker = await workers.start()
    await lone.start()
    await until(lone.sent("t1/1/turn.1"), 30)
    worker.process.terminate()
    await until(lambda: "stopping" in worker.log.read_text())
    released.set()
    assert await asyncio.to_thread(worker.process.wait, 30) == 0
    await _finish(lone, workers)
    assert lone.steps == ["plan.1.1", "t1/1/turn.1", "synthesis.1"]


def _first_then_found(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text("found it")
