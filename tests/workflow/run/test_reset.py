"""`temporal workflow reset` to any point: nothing finished or under way is done twice, and the clock begins anew."""

import asyncio
import functools
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from activities.child_records import ChildActivities
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from activities.store.artifacts import open_store
from runtime.settings import Settings
from runtime.workers import workflow_runner
from supervision.contract.result import RunResult
from supervision.contract.updates import ExtendLimits, Resume
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, status, text, tools, when
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.resets import reset, task_of_update, workflow_tasks
from tests.workflow.runs import (
    Handle,
    closed,
    events,
    failure,
    scheduled,
    sent,
    started_children,
    status_of,
    waits_for_provider,
)
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

start = functools.partial(runs.start, team="lab")

pytestmark = pytest.mark.usefixtures("worker")

AT_ONCE, TURNS = ("t1", "t2", "t3"), 2


def agents_calls(model: ScriptedModel, run_id: str) -> Counter[str]:
    return Counter(step for step in model.steps(run_id) if "/turn." in step)


def two_turns(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text(f"found by {step.subtask_id}")


async def replays(client: Client, handle: Handle) -> None:
    history: WorkflowHistory = await handle.fetch_history()
    replayer = Replayer(
        workflows=[SupervisorWorkflow, WorkerAgentWorkflow],
        workflow_runner=workflow_runner(),
        data_converter=client.data_converter,
    )
    await replayer.replay_workflow(history)


def books_all(result: RunResult, model: ScriptedModel, run_id: str) -> bool:
    """True if the agents' calls are booked, each once."""
    return sum(report.usage.model_calls for report in result.subtasks) == sum(agents_calls(model, run_id).values())


async def test_a_reset_to_any_workflow_task_repeats_no_finished_subtask(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    shape = plan(*[{"id": subtask_id} for subtask_id in AT_ONCE], {"id": "t4", "after": ["t1"]})
    model.play(run_id, script(shape, dict.fromkeys((*AT_ONCE, "t4"), two_turns)))
    base = await start(client, run_id)
    await base.result()
    points = await workflow_tasks(base)
    for point in points:
        handle = await reset(client, base, point)
        result = await handle.result()
        assert result.status == "completed"
        assert {report.attempts for report in result.subtasks} == {1}
        assert set(agents_calls(model, run_id).values()) == {1}
        assert books_all(result, model, run_id)
        assert "refine.t1.2" not in model.steps(run_id)
        await replays(client, handle)


async def test_a_reset_awaits_the_worker_agents_that_are_under_way(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    released = asyncio.Event()
    shape = plan(*[{"id": subtask_id} for subtask_id in AT_ONCE])
    model.play(run_id, script(shape, dict.fromkeys(AT_ONCE, lambda step: when(released, text("found")))))
    base = await start(client, run_id)
    await until(sent(model, run_id, *(f"{subtask_id}/1/turn.1" for subtask_id in AT_ONCE)))
    handle = await reset(client, base, (await workflow_tasks(base))[0])
    await until(lambda: model.steps(run_id).count("plan.1.1") == 2)

    async def are_joined() -> bool:
        described = await handle.describe()
        return len(described.raw_description.pending_activities) == len(AT_ONCE)

    await until(are_joined)
    released.set()
    result = await handle.result()
    assert result.status == "completed"
    assert set(agents_calls(model, run_id).values()) == {1}
    assert books_all(result, model, run_id)


async def test_a_reset_goes_on_with_the_attempt_that_followed_a_terminated_one(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    released = asyncio.Event()

    def turns(step: Step) -> Reply:
        return when(asyncio.Event() if step.attempt == 1 else released, text("found"))

    model.play(run_id, script(plan({"id": "t1"}), {"t1": turns}))
    base = await start(client, run_id)
    await until(sent(model, run_id, "t1/1/turn.1"))
    await client.get_workflow_handle(f"{run_id}/t1/1").terminate()
    await until(sent(model, run_id, "t1/2/turn.1"))
    handle = await reset(client, base, (await workflow_tasks(base))[0])

    async def is_joined() -> bool:
        return [subtask.attempts for subtask in (await status_of(handle)).subtasks] == [2]

    await until(is_joined)
    released.set()
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert agents_calls(model, run_id) == {"t1/1/turn.1": 1, "t1/2/turn.1": 1}
    await replays(client, handle)


async def test_what_was_looked_up_before_a_reset_is_looked_up_again(
    client: Client, model: ScriptedModel, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The execution before the second reset finds no child, which has one started right after that."""
    released, asking, chains = asyncio.Event(), list[str](), ChildActivities._own_chains

    async def none_at_first(children: ChildActivities, workflow_id: str) -> list[str]:
        if activity.info().workflow_id == run_id:
            asking.append(activity.info().workflow_run_id or "")
            if asking[-1] == asking[0]:
                return []
        return await chains(children, workflow_id)

    monkeypatch.setattr(ChildActivities, "_own_chains", none_at_first)
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: when(released, text("found"))}))
    base = await start(client, run_id)
    await until(sent(model, run_id, "t1/1/turn.1"))
    second = await reset(client, base, (await workflow_tasks(base))[0])

    async def looked_up() -> list[int]:
        """The ends of the workflow tasks after the look-up."""
        events = [event async for event in second.fetch_history_events()]
        done = [event.event_id for event in events if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED]
        return [task for task in await workflow_tasks(second) if len(done) > 1 and task > done[-1]]

    async def is_looked_up() -> bool:
        return bool(await looked_up())

    await until(is_looked_up)
    third = await reset(client, second, (await looked_up())[0])
    await until(lambda: len(set(asking)) == 2)
    released.set()
    result = await third.result()
    assert (result.status, result.subtasks[0].attempts) == ("completed", 1)
    awaited = await scheduled(client, run_id, "activity")
    names = [event.activity_task_scheduled_event_attributes.activity_type.name for event in awaited]
    assert names == ["plan", "find_child", "find_child", "await_child", "synthesize"]
    await replays(client, third)


async def test_a_cancel_reaches_worker_agents_from_before_the_reset(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: when(asyncio.Event(), text("never"))}))
    base = await start(client, run_id)
    await until(sent(model, run_id, "t1/1/turn.1"))
    handle = await reset(client, base, (await workflow_tasks(base))[0])

    async def is_joined() -> bool:
        return bool((await handle.describe()).raw_description.pending_activities) and (
            model.steps(run_id).count("plan.1.1") == 2 and (await status_of(handle)).counts.running == 1
        )

    await until(is_joined)
    await handle.cancel()
    await until(functools.partial(closed, handle))
    calls = [call for call in model.of(run_id) if call.step.subtask_id]
    assert len(calls) == 1
    await until(lambda: calls[0].aborted_at is not None)


async def test_an_expired_run_goes_on_after_a_reset_with_new_limits(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    slow = {"on": True}

    def turns(step: Step) -> Reply:
        if step.number == 1:
            return tools(("lookup", {"query": "x"}))
        return when(asyncio.Event(), text("never")) if slow["on"] else text("found at last")

    model.play(run_id, script(plan({"id": "t1"}), {"t1": turns}))
    expired = await start(client, run_id, deadline="PT6S")
    assert (await failure(expired)).type == "DeadlineExceeded"
    slow["on"] = False
    handle = await reset(client, expired, (await workflow_tasks(expired))[0])
    reply = await handle.execute_update(SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(minutes=2)))
    assert reply.accepted
    result = await handle.result()
    assert result.status == "completed"
    assert "run_reset" in await events(handle)
    calls = agents_calls(model, run_id)
    assert (calls["t1/1/turn.1"], calls["t1/1/turn.2"]) == (1, 2)  # the finished turn is not made again
    assert result.subtasks[0].attempts == 1
    await replays(client, handle)


async def test_nothing_begins_after_the_deadline(model: ScriptedModel, settings: Settings, run_id: str) -> None:
    planned = asyncio.Event()
    model.play(run_id, script(when(planned, plan({"id": "t1"}))))
    async with own_server() as client, serving(client, settings, ["model"]):
        async with serving(client, settings, ["workflows", "tools"]):
            handle = await start(client, run_id, deadline="PT10S")
            await until(sent(model, run_id, "plan.1.1"))
            deadline = datetime.fromisoformat((await status_of(handle)).deadline_at)
        planned.set()  # the plan comes in time, but there is nobody to begin with it
        await until(lambda: datetime.now(UTC) > deadline)
        async with serving(client, settings, ["workflows", "tools"]):
            assert (await failure(handle)).type == "DeadlineExceeded"
            assert await started_children(client, run_id) == []
    assert model.steps(run_id) == ["plan.1.1"]


async def test_the_same_run_id_twice_touches_nothing_of_the_first_run(
    client: Client, model: ScriptedModel, run_id: str, settings: Settings
) -> None:
    results = []
    for words in ("the first finding", "another finding"):
        model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step, words=words: text(words)}))  # type: ignore[misc]
        results.append(await (await start(client, run_id)).result())
    first, second = results
    assert first.result_ref != second.result_ref
    assert [result.subtasks[0].finding.summary for result in results if result.subtasks[0].finding] == [
        "the first finding",
        "another finding",
    ]
    stored = await open_store(settings.artifacts_url).get(first.result_ref or "")
    kept = RunResult.model_validate_json(stored)
    assert kept.subtasks[0].finding is not None
    assert kept.subtasks[0].finding.summary == "the first finding"
    assert await started_children(client, run_id) == [f"{run_id}/t1/1"]


async def test_a_reset_to_the_task_of_an_update_that_let_a_subtask_go_on_does_not_repeat_it(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    """The server gives the update again, together with the word of the reset."""
    refused = {"on": True}

    def turns(step: Step) -> Reply:
        return status(401, "authentication_error") if refused["on"] else text("found")

    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
    base = await start(client, run_id)
    await until(functools.partial(waits_for_provider, base))
    refused["on"] = False
    await base.execute_update(SupervisorWorkflow.resume, Resume())
    await base.result()
    handle = await reset(client, base, await task_of_update(base))
    result = await handle.result()
    assert result.status == "completed"
    assert {report.attempts for report in result.subtasks} == {1}
    assert agents_calls(model, run_id) == {"t1/1/turn.1": 2, "t2/1/turn.1": 1}
    await replays(client, handle)
