"""Stopping reaches every child and books what was consumed; a reset to any point does nothing a second time."""

import asyncio
import functools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.store_keys import run_prefix
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.updates import ExtendLimits
from temporal_supervisor.supervision.run.board import Board
from tests.replay.replaying import replayer
from tests.scripted_model import Reply, Step, hang, plan, script, stop, text, tools, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Lab, closed, end_soon, events, failure
from tests.workflow.scripts import in_order
from workflows.children.child_contracts import WorkerAgentResult
from workflows.supervisor import SupervisorWorkflow
from workflows.tool_loop.agent_attempt import AgentAttempt

MANY = tuple(f"t{number}" for number in range(8))
HALF = stop("max_tokens", "so far there are three")
LOOK, NEVER = tools(("lookup", {"query": "x"})), hang()


class Held:
    """A workflow task that is held while its children's starts are not sent yet."""

    def __init__(self) -> None:
        self.reached, self.released = threading.Event(), threading.Event()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Holds the workflow task that starts the first subtask."""
    held, usual = Held(), Board.start

    def slow_start(board: Board, subtask_id: str, role: str) -> SubtaskReport:
        if not held.reached.is_set():
            held.reached.set()
            held.released.wait(1.5)  # below the SDK's two seconds for a workflow task without an await
        return usual(board, subtask_id, role)

    monkeypatch.setattr(Board, "start", slow_start)
    yield held
    held.released.set()


async def ends_of(lab: Lab) -> list[WorkflowExecutionStatus | None]:
    """How the children of a run ended."""
    children = await lab.started_children()
    return [(await lab.client.get_workflow_handle(child).describe()).status for child in children]


async def test_a_cancel_reaches_children_whose_start_is_under_way(lab: Lab, held: Held) -> None:
    lab.play(script(plan(*[{"id": i} for i in MANY]), dict.fromkeys(MANY, lambda step: NEVER)))
    handle = await lab.start()
    await until(held.reached.is_set)
    await handle.cancel()
    held.released.set()
    await until(functools.partial(closed, handle))
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert await ends_of(lab) == [WorkflowExecutionStatus.COMPLETED] * len(MANY)
    result = await handle.query(SupervisorWorkflow.result)
    assert {report.state for report in result.subtasks} == {"cancelled"}
    assert all(call.aborted_at or call.answered_at for call in lab.calls if call.step.subtask_id is None)


@pytest.mark.usefixtures("short_deadlines")
async def test_the_deadline_reaches_children_whose_start_is_under_way(lab: Lab, held: Held) -> None:
    planned = asyncio.Event()
    shape = when(planned, plan(*[{"id": i} for i in MANY]))
    lab.play(script(shape, dict.fromkeys(MANY, lambda step: NEVER)))
    handle = await lab.start(deadline="PT3S")
    work_until = (await handle.describe()).start_time.timestamp() + 2.4
    await until(lambda: time.time() > work_until - 0.7)
    planned.set()
    error = await runs.failure(handle)
    assert error.type == "DeadlineExceeded"
    result = runs.partial_result(error)
    assert {(report.state, report.error.type) for report in result.subtasks if report.error} == {
        ("cancelled", "DeadlineExceeded")
    }
    assert await ends_of(lab) == [WorkflowExecutionStatus.COMPLETED] * len(MANY)


async def test_a_subtask_whose_worker_agent_somebody_cancels_is_cancelled_and_keeps_its_half(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": in_order(HALF, NEVER)}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.2"))
    await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").cancel()
    result = await handle.result()
    assert (result.status, {report.id: report.state for report in result.subtasks}) == (
        "partial",
        {"t1": "cancelled", "t2": "completed"},
    )
    report = result.subtasks[0]
    assert (report.attempts, report.error.message if report.error else "") == (1, "its worker agent was cancelled")
    assert [gap.subtask_id for gap in result.gaps] == ["t1"]
    assert report.usage.model_calls == 1
    assert report.finding is not None
    assert report.finding.summary == "so far there are three"


WRITER = {
    "name": "writer",
    "description": "Writes.",
    "system_prompt": "You write.",
    "tools": ["lab/append", "lab/wait_for_file"],
}


async def test_a_worker_agent_that_is_stopped_keeps_the_results_of_calls_that_have_ended(
    lab: Lab, tmp_path: Path
) -> None:
    log, never = tmp_path / "log", tmp_path / "never"
    both = tools(("append", {"path": str(log)}), ("wait_for_file", {"path": str(never)}))
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: both}))
    run = await lab.start(team={"name": "own", "generalist": "writer", "roles": [WRITER]})
    agent = lab.client.get_workflow_handle(f"{lab.run_id}/t1/1", result_type=WorkerAgentResult)

    async def is_written() -> bool:
        if not lab.sent("t1/1/turn.1")():
            return False
        kinds = [event.event_type async for event in agent.fetch_history_events()]
        return kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED) == 2  # the turn, and the short call

    await until(is_written)
    await until(never.with_suffix(".started").exists)
    await agent.cancel()
    result = await agent.result()
    assert result.usage.tool_calls == 1
    assert [effect.partition("(")[0] for effect in result.effects] == ["append"]
    assert result.progress is not None
    written, stopped = result.progress.results
    assert written.ref
    assert stopped.text.startswith("This call was stopped.")
    await run.cancel()


async def test_a_terminated_worker_agent_costs_what_it_consumed(lab: Lab) -> None:
    turns = in_order(LOOK, LOOK, LOOK, NEVER, text("found at last"))
    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.4"))
    await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").terminate()
    result = await handle.result()
    answered = [call for call in lab.calls if call.answered_at is not None]
    assert (
        result.usage.model_calls == len(answered) == 8
    )  # plan, three turns, refine, the second attempt, which is sent back, the answer
    assert result.usage.tool_calls == 3
    assert (result.subtasks[0].attempts, result.subtasks[0].turns) == (2, 5)


@pytest.mark.usefixtures("time_to_answer")
async def test_a_child_that_does_not_answer_is_booked_from_the_journal(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers only once it is looked up."""
    monkeypatch.setattr(limits, "CHILD_CLOSE_SHARE", 0.0)  # the run waits as short as it can
    looked_up, list_keys, stopped = threading.Event(), ArtifactStore.list_keys, AgentAttempt.stopped

    async def noted(store: ArtifactStore, prefix: str) -> list[str]:
        if prefix.startswith(run_prefix(lab.run_id)):
            looked_up.set()
        return await list_keys(store, prefix)

    def slowly(attempt: AgentAttempt) -> WorkerAgentResult:
        looked_up.wait(1.8)  # below the SDK's two seconds for a workflow task without an await
        return stopped(attempt)

    monkeypatch.setattr(ArtifactStore, "list_keys", noted)
    monkeypatch.setattr(AgentAttempt, "stopped", slowly)
    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": in_order(LOOK, NEVER)}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.2"))
    await until(functools.partial(runs.is_in, handle, "completed", "t2"))
    await runs.end_soon(handle)
    result = await handle.result()
    answered = [call for call in lab.calls if call.answered_at is not None]
    assert (looked_up.is_set(), result.usage.model_calls) == (True, len(answered))


# --- resets ------------------------------------------------------------------------------------------


def agents_calls(lab: Lab) -> Counter[str]:
    return Counter(step for step in lab.steps if "/turn." in step)


async def test_a_reset_to_any_workflow_task_pays_and_writes_nothing_again(lab: Lab, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def turns(step: Step) -> Reply:
        if step.number > 1:
            return text(f"found by {step.subtask_id}")
        called = ("append", {"path": str(log)}) if step.subtask_id == "t2" else ("lookup", {"query": "x"})
        return tools(called)

    shape = plan({"id": "t1"}, {"id": "t2", "role": "keeper"}, {"id": "t3", "after": ["t1"]})
    lab.play(script(shape, dict.fromkeys(("t1", "t2", "t3"), turns)))
    base = await lab.start(team="lab", max_reviews=1)
    whole = await base.result()
    for point in await workflow_tasks(base):
        handle = await reset(lab.client, base, point)
        result = await handle.result()
        assert (result.status, result.answer, result.warnings) == ("completed", whole.answer, [])
        assert {report.attempts for report in result.subtasks} == {1}
        assert lab.repeated == []
        booked = sum(report.usage.model_calls for report in result.subtasks)
        assert booked == sum(agents_calls(lab).values()), "each call is booked once"
        await replayer().replay_workflow(await handle.fetch_history())
    assert len(log.read_text().splitlines()) == 1


async def test_an_expired_run_goes_on_after_a_reset_with_new_limits(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}), {"t1": in_order(LOOK, NEVER, text("found at last"))}))
    expired = await lab.start()
    await until(lab.sent("t1/1/turn.2"))
    await end_soon(expired)
    assert (await failure(expired)).type == "DeadlineExceeded"
    handle = await reset(lab.client, expired, (await workflow_tasks(expired))[0])
    reply = await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(minutes=2)))
    assert reply.accepted
    result = await handle.result()
    assert result.status == "completed"
    assert "run_reset" in await events(handle)
    calls = agents_calls(lab)
    assert (calls["t1/1/turn.1"], calls["t1/1/turn.2"]) == (1, 2)  # the finished turn is not made again
    assert result.subtasks[0].attempts == 1
    await replayer().replay_workflow(await handle.fetch_history())
