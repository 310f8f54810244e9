"""What comes before a run begins, while it does, and together with its end: nothing is lost, and nothing blocks it."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from activities.run.run_activities import RunActivities
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.run import status_and_result
from temporal_supervisor.supervision.run.run_state import RunState
from tests.replay.replaying import replayer
from tests.scripted_model import Reply, plan, script, text, when
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import GOAL, Handle, Lab, activity_is, closed, is_answered, status_of
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import nested_handle, tree
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

CONTENTS: list[list[Any]] = [[], [5], [{"budget": {"tokens": 500_000}}], [{}, {}]]


async def test_updates_and_queries_with_the_start_do_not_block_it(lab: Lab) -> None:
    async def is_taken(number: int, update: str, content: list[Any]) -> bool:
        own = f"{lab.run_id}-{update}-{number}"
        lab.model.play(own, script(plan({"id": "t1"})))
        operation = WithStartWorkflowOperation(
            SupervisorWorkflow.run,
            RunRequest(goal=GOAL, team="lab", max_reviews=0),
            id=own,
            task_queue="supervisor",
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        )
        try:
            reply = await lab.client.execute_update_with_start_workflow(
                update, args=content, start_workflow_operation=operation
            )
            accepted = bool(reply["accepted"])
        except WorkflowUpdateFailedError:
            accepted = False
        handle = await operation.workflow_handle()
        assert (await handle.query(SupervisorWorkflow.status)).phase
        assert (await handle.result()).status == "completed"
        return accepted

    cases = [
        (number, update, content) for update in ("extend_limits", "resume") for number, content in enumerate(CONTENTS)
    ]
    taken = await asyncio.gather(*(is_taken(*case) for case in cases))
    assert taken[:5] == [False, False, True, False, True]


@pytest.fixture(scope="module")
async def own_client() -> AsyncIterator[Client]:
    """A client of a server that only the Workers of one test at a time serve."""
    async with own_server() as client:
        yield client


@pytest.fixture
def alone(lab: Lab, own_client: Client) -> Lab:
    """A run there."""
    return lab.on(own_client)


async def test_a_run_that_is_looked_at_while_it_is_prepared_has_one_deadline(
    alone: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at, goal = asyncio.Event(), RunActivities._goal

    async def slowly(activities: RunActivities, setup: Any, room: int) -> str:
        await looked_at.wait()
        return await goal(activities, setup, room)

    monkeypatch.setattr(RunActivities, "_goal", slowly)
    alone.play(script(plan(answer="There are no pears.")))
    settings = settings_for(alone.model.url, tmp_path)
    async with serving(alone.client, settings, ["model"]):
        handle = await alone.start()
        query = asyncio.create_task(status_of(handle))
        async with serving(alone.client, settings, ["workflows"]):
            deadline_at = (await query).deadline_at
            looked_at.set()
            assert (await handle.result()).answer == "There are no pears."
            assert (await status_of(handle)).deadline_at == deadline_at

        async def a_replay_shows_it() -> bool:
            with contextlib.suppress(RPCError):  # the server gave the query to the Worker that was ending
                again = await handle.query(SupervisorWorkflow.status, rpc_timeout=timedelta(seconds=5))
                return again.deadline_at == deadline_at
            return False

        async with serving(alone.client, settings, ["workflows"]):
            await until(a_replay_shows_it)


RUNS = 4  # by chance a query comes with the last workflow task of a run, or without it


async def test_a_cancel_that_comes_with_a_query_while_the_result_is_stored_loses_nothing(
    alone: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query's answer ends the workflow task, and the next one brings the stored result and the cancellation."""
    asked = {f"{alone.run_id}-{number}": threading.Event() for number in range(RUNS)}
    cancelled, planned, status = threading.Event(), asyncio.Event(), status_and_result.status_of

    def status_after_the_cancel(state: RunState, cursor: int = 0) -> Any:
        if workflow.in_workflow() and state.phase == "done" and not state.published.result_ref:
            asked[workflow.info().workflow_id].set()
            cancelled.wait(1.8)  # below the SDK's two seconds for a workflow task without an await
        return status(state, cursor)

    monkeypatch.setattr(status_and_result, "status_of", status_after_the_cancel)
    settings = settings_for(alone.model.url, tmp_path)
    async with serving(alone.client, settings, ["model"]):
        handles: dict[str, Handle] = {}
        async with serving(alone.client, settings, ["workflows"]):
            for name in asked:
                own = alone.named(name)
                own.play(script(when(planned, plan(answer="There are no pears."))))
                handles[name] = await own.start()
                await until(own.sent("plan.1.1"))
        planned.set()
        for name in asked:
            await until(partial(is_answered, alone.client, name))
        queries = [asyncio.create_task(handle.query(SupervisorWorkflow.status)) for handle in handles.values()]
        await asyncio.sleep(0.5)  # nothing shows that a query waits at the server
        async with serving(alone.client, settings, ["workflows"]):
            for name, handle in handles.items():
                await until(partial(_is_asked_or_closed, asked[name], handle))
            late = [handle for name, handle in handles.items() if asked[name].is_set()]
            for handle in late:
                await handle.cancel()
            cancelled.set()
            for handle in handles.values():
                await until(partial(closed, handle))
            await asyncio.gather(*queries)
            assert {(await handle.query(SupervisorWorkflow.result)).answer for handle in handles.values()} == {
                "There are no pears."
            }
        for handle in handles.values():
            ended = (await handle.describe()).status
            assert ended in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.CANCELED)
            await replayer().replay_workflow(await handle.fetch_history())


async def _is_asked_or_closed(asked: threading.Event, handle: Handle) -> bool:
    return asked.is_set() or await closed(handle)


# --- replies at the end ------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "paused"), [("plan.1.1", False), ("t1/1/turn.1", False), ("t1/1/turn.1", True)])
async def test_a_reply_that_comes_together_with_a_cancel_is_booked(
    alone: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, paused: bool
) -> None:
    """A pause has asked for the call's end, of which the call learns with its next heartbeat."""
    if paused:
        monkeypatch.setattr(limits, "HEARTBEAT_EVERY", limits.HEARTBEAT_TIMEOUT * 0.8)
    settings, answered = settings_for(alone.model.url, tmp_path), asyncio.Event()

    def held(reply: Reply, of: str) -> Reply:
        return when(answered, reply) if of == step else reply

    found = held(text("found it"), "t1/1/turn.1")
    alone.play(script(held(plan({"id": "t1"}), "plan.1.1"), {"t1": lambda step: found}))
    caller = nested_handle(alone.client, alone.run_id if step.startswith("plan") else f"{alone.run_id}/t1/1")
    async with serving(alone.client, settings, ["model"]):
        async with serving(alone.client, settings, ["workflows"]):
            handle = await alone.start()
            await until(alone.sent(step))
            if paused:
                await handle.execute_update("pause", {"now": True})
                await until(partial(activity_is, "cancel_requested", caller, "call_model"))
        # No Worker takes workflow tasks now: the reply and the cancellation wait for the same one.
        answered.set()
        await until(lambda: is_answered(alone.client, caller.id))
        await caller.cancel()
        async with serving(alone.client, settings, ["workflows"]):
            await until(lambda: closed(caller))
            if paused:
                await handle.cancel()
            await until(lambda: closed(handle))
            result = await handle.query(SupervisorWorkflow.result)
    assert alone.repeated == []
    assert result.usage.model_calls == len(alone.calls)
    names = [
        event.activity_task_scheduled_event_attributes.activity_type.name for event in await alone.scheduled("activity")
    ]
    assert names == ["prepare_run", "plan", "publish_result"]


async def test_a_reply_that_comes_while_a_nested_run_stores_its_result_is_booked_above(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    storing, answered, counted = asyncio.Event(), asyncio.Event(), asyncio.Event()
    below, whole = nested_handle(lab.client, f"{lab.run_id}/t1/1"), RunActivities._whole_result

    async def whole_once_counted(activities: RunActivities, *publication: Any) -> Any:
        if activity.info().workflow_id == below.id:
            storing.set()
            await counted.wait()
        return await whole(activities, *publication)

    monkeypatch.setattr(RunActivities, "_whole_result", whole_once_counted)
    plan_below = when(answered, subtasks(item("f1", "walker")))
    lab.play(tree({"": subtasks(item("t1", "storey")), "t1/1": plan_below}))
    handle = await lab.start(team="house", models={"supervisor": "no-price-known"})
    await until(lab.sent("t1/1/plan.1.1"))
    await handle.cancel()
    await storing.wait()
    answered.set()
    await until(partial(activity_is, "completed", below, "plan"))
    counted.set()
    await until(lambda: closed(handle))
    result = await handle.query(SupervisorWorkflow.result)
    assert result.usage.model_calls == len(lab.calls) == 2
    assert "the dollar budget is not kept: the price of no-price-known is unknown" in result.warnings
    assert (await below.result()).warnings == [], "the run above has warned of it"
