"""Stopping: by a cancel or the deadline it reaches every child; what was consumed is booked, whoever ended a child."""

import asyncio
import functools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from activities.replies.agent_story import AgentStories
from activities.store.artifacts import ArtifactStore
from supervision.base import limits
from supervision.run.board import Board
from tests.scripted_model import Reply, Step, as_json, plan, script, status, stop, text, tools, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Handle, Lab, closed, status_of
from tests.workflow.scripts import item, subtasks
from workflows.supervisor import SupervisorWorkflow

MANY = tuple(f"t{number}" for number in range(8))
HALF = stop("max_tokens", "so far there are three")
NEVER = when(asyncio.Event(), text("never"))


class Held:
    """A workflow task that is held while its children's starts are not sent yet."""

    def __init__(self) -> None:
        self.reached, self.released = threading.Event(), threading.Event()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """Holds the workflow task that starts the first subtask."""
    held, usual = Held(), Board.start

    def slow_start(board: Board, subtask_id: str, workflow_id: str) -> int:
        if not held.reached.is_set():
            held.reached.set()
            held.released.wait(1.5)  # below the SDK's two seconds for a workflow task without an await
        return usual(board, subtask_id, workflow_id)

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
    def turns(step: Step) -> Reply:
        return HALF if step.number == 1 else NEVER

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
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


async def test_a_terminated_worker_agent_costs_what_it_consumed(lab: Lab) -> None:
    def turns(step: Step) -> Reply:
        if step.attempt == 1:
            return tools(("lookup", {"query": "x"})) if step.number < 4 else NEVER
        return text("found at last")

    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.4"))
    await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").terminate()
    result = await handle.result()
    answered = [call for call in lab.calls if call.answered_at is not None]
    assert result.usage.model_calls == len(answered) == 7  # plan, three turns, refine, the second attempt, the answer
    assert result.usage.tool_calls == 3
    assert (result.subtasks[0].attempts, result.subtasks[0].turns) == (2, 4)


async def test_a_terminated_nested_supervisor_costs_what_its_tree_consumed(lab: Lab) -> None:
    nested_plan = subtasks(item("f1", "walker"), item("f2", "walker", depends_on=["f1"]))

    def reply(step: Step) -> Reply:
        if step.kind == "plan":
            return nested_plan if step.subtask_id else subtasks(item("t1", "storey"), item("t2", "hand"))
        if step.call.endswith("f2/1/turn.1"):
            return NEVER
        return usual(step)

    usual = script(plan())
    lab.play(reply)
    handle = await lab.start(team="house")
    await until(lambda: any(step.endswith("f2/1/turn.1") for step in lab.steps))
    await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").terminate()
    await until(lambda: sum(step.endswith("f2/1/turn.1") for step in lab.steps) == 2)

    async def is_booked() -> bool:
        return (await status_of(handle)).subtasks[0].usage.model_calls == 2

    await until(is_booked)
    await handle.cancel()
    await until(functools.partial(closed, handle))


@pytest.mark.usefixtures("time_to_answer")
async def test_a_child_that_does_not_answer_is_booked_from_the_journal(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHILD_CLOSE_SHARE", 0.0)  # the run waits as short as it can

    def turns(step: Step) -> Reply:
        return tools(("lookup", {"query": "x"})) if step.number == 1 else NEVER

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.2"))
    await until(functools.partial(runs.is_in, handle, "completed", "t2"))
    await runs.end_soon(handle)
    result = await handle.result()
    answered = [call for call in lab.calls if call.answered_at is not None]
    assert result.usage.model_calls == len(answered)


def half_done(step: Step) -> Reply:
    """A nested run of two worker agents, of which one is never answered."""
    nested, usual = item("t1", "storey"), script(plan())
    if step.kind == "plan":
        return subtasks(item("f1", "walker"), item("f2", "walker")) if step.subtask_id else subtasks(nested)
    return NEVER if step.call.endswith("f2/1/turn.1") else usual(step)


async def start_half_done(lab: Lab) -> Handle:
    """Starts such a run, and returns once one of the two has found something and the other one is asked."""
    lab.play(half_done)
    handle = await lab.start(team="house")
    await until(lambda: len(lab.calls) == 4)
    await until(functools.partial(closed, lab.client.get_workflow_handle(f"{lab.run_id}/t1/1/f1/1")))
    return handle


async def assert_finding_is_kept(handle: Handle) -> None:
    """Checks that the run has the nested run's finding."""
    finding = (await handle.query(SupervisorWorkflow.result)).subtasks[0].finding
    assert finding is not None
    assert "finding of t1" in finding.summary


async def test_what_a_child_returns_while_the_run_gives_up_on_it_is_kept(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run looks up what a child consumed when it waits for it no longer; here the child ends during that."""
    monkeypatch.setattr(limits, "CHILD_CLOSE_SHARE", 0.0)  # the run waits as short as it can
    given_up, whole, list_keys = asyncio.Event(), AgentStories.whole, ArtifactStore.list_keys

    async def whole_once_given_up(stories: AgentStories, *story: Any) -> Any:
        if activity.info().workflow_id != lab.run_id:
            await given_up.wait()
        return await whole(stories, *story)

    async def list_keys_once_it_ended(store: ArtifactStore, prefix: str) -> list[str]:
        given_up.set()
        await lab.client.get_workflow_handle(f"{lab.run_id}/t1/1").result()
        return await list_keys(store, prefix)

    monkeypatch.setattr(AgentStories, "whole", whole_once_given_up)
    monkeypatch.setattr(ArtifactStore, "list_keys", list_keys_once_it_ended)
    handle = await start_half_done(lab)
    await handle.cancel()
    await until(functools.partial(closed, handle))
    assert given_up.is_set()
    await assert_finding_is_kept(handle)


async def test_a_call_that_is_answered_after_the_cancel_is_booked(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge answers while the run, which was cancelled, still waits for its nested supervisor."""
    asked, judged, whole = asyncio.Event(), asyncio.Event(), AgentStories.whole

    async def whole_once_judged(stories: AgentStories, *story: Any) -> Any:
        if activity.info().workflow_id != lab.run_id:
            await judged.wait()
        return await whole(stories, *story)

    def reply(step: Step) -> Reply:
        match step.kind:
            case "plan":
                return subtasks(item("f1", "walker")) if step.subtask_id else subtasks(twice, item("t2", "storey"))
            case "judge":
                return when(asked, as_json({"choice": 1, "reason": "it is better"}))
        return NEVER if step.call.endswith("f1/1/turn.1") else usual(step)

    monkeypatch.setattr(AgentStories, "whole", whole_once_judged)
    twice, usual = item("t1", candidates=2), script(plan())
    lab.play(reply)
    handle = await lab.start(team="house")
    await until(lambda: len(lab.calls) == 6)  # two plans, three turns, the judge
    await handle.cancel()
    await until(lambda: _has(handle, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED))
    asked.set()
    ends = (EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED)
    await until(lambda: _has(handle, *ends, more_than=1))  # the plan, and the judge however it ends
    judged.set()
    await until(functools.partial(closed, handle))
    answered = [call for call in lab.calls if call.answered_at is not None]
    assert (await handle.query(SupervisorWorkflow.result)).usage.model_calls == len(answered)


async def _has(handle: runs.Handle, *kinds: "EventType.ValueType", more_than: int = 0) -> bool:
    events = (await handle.fetch_history()).events
    return sum(event.event_type in kinds for event in events) > more_than


async def test_a_run_fails_once_all_candidates_are_refused_and_keeps_what_they_had(lab: Lab) -> None:
    def turns(step: Step) -> Reply:
        refused = status(401, "authentication_error")
        if "/1.2/" in step.call:
            return refused
        return stop("max_tokens", "three so far") if step.number == 1 else refused

    lab.play(script(subtasks(item("t1", "finder", candidates=2)), {"t1": turns}))
    error = await lab.failure()
    assert error.type == "ProviderAuthentication"
    result = runs.partial_result(error)
    assert result.usage.model_calls == 2
    assert result.subtasks[0].finding is not None
    assert result.subtasks[0].finding.summary == "three so far"
