"""Replies that come together with a cancellation, or after it: they are paid, so they are counted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.replies.agent_story import AgentStories
from supervision.base import limits
from tests.scripted_model import Reply, plan, script, text, when
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import Lab, closed, is_answered
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import nested_handle, tree
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow


@pytest.fixture
async def alone(lab: Lab) -> AsyncIterator[Lab]:
    """A run on a server that only the test's Workers serve."""
    async with own_server() as client:
        yield lab.on(client)


@pytest.mark.parametrize("step", ["plan.1.1", "t1/1/turn.1"])
async def test_a_reply_that_comes_together_with_a_cancel_is_booked(alone: Lab, tmp_path: Path, step: str) -> None:
    settings, answered = settings_for(alone.model.url, tmp_path), asyncio.Event()

    def held(reply: Reply, of: str) -> Reply:
        return when(answered, reply) if of == step else reply

    found = held(text("found it"), "t1/1/turn.1")
    alone.play(script(held(plan({"id": "t1"}), "plan.1.1"), {"t1": lambda step: found}))
    async with serving(alone.client, settings, ["model"]):
        async with contextlib.AsyncExitStack() as workflows:
            await workflows.enter_async_context(serving(alone.client, settings, ["workflows"]))
            handle = await alone.start()
            await until(alone.sent(step))
        # No Worker takes workflow tasks now: the reply and the cancellation wait for the same one.
        caller = alone.run_id if step.startswith("plan") else f"{alone.run_id}/t1/1"
        answered.set()
        await until(lambda: is_answered(alone.client, caller))
        await alone.client.get_workflow_handle(caller).cancel()
        async with serving(alone.client, settings, ["workflows"]):
            await until(lambda: closed(handle))
            result = await handle.query(SupervisorWorkflow.result)
    assert result.usage.model_calls == len(alone.calls)
    names = [
        event.activity_task_scheduled_event_attributes.activity_type.name for event in await alone.scheduled("activity")
    ]
    assert names == ["prepare_run", "plan", "publish_result"]


async def test_a_reply_that_comes_together_with_a_cancel_after_a_pause_is_booked(
    alone: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause has asked for the call's end, of which the call learns with its next heartbeat."""
    monkeypatch.setattr(limits, "HEARTBEAT_EVERY", limits.HEARTBEAT_TIMEOUT * 0.8)
    settings, answered, caller = settings_for(alone.model.url, tmp_path), asyncio.Event(), f"{alone.run_id}/t1/1"
    alone.play(script(plan({"id": "t1"}), {"t1": lambda step: when(answered, text("found it"))}))
    async with serving(alone.client, settings, ["model"]):
        async with contextlib.AsyncExitStack() as workflows:
            await workflows.enter_async_context(serving(alone.client, settings, ["workflows"]))
            handle = await alone.start()
            await until(alone.sent("t1/1/turn.1"))
            await handle.execute_update("pause", {"now": True})
            await until(partial(_has, alone.client, caller, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED))
        answered.set()
        await until(lambda: is_answered(alone.client, caller))
        await alone.client.get_workflow_handle(caller).cancel()
        async with serving(alone.client, settings, ["workflows"]):
            await until(lambda: closed(alone.client.get_workflow_handle(caller)))
            await handle.cancel()
            await until(lambda: closed(handle))
            result = await handle.query(SupervisorWorkflow.result)
    assert result.usage.model_calls == len(alone.calls) == 2


async def test_a_reply_that_comes_while_a_nested_run_stores_its_result_is_booked_above(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested, storing, answered, counted = f"{lab.run_id}/t1/1", asyncio.Event(), asyncio.Event(), asyncio.Event()
    whole = AgentStories.whole

    async def whole_once_counted(stories: AgentStories, *story: Any) -> Any:
        if activity.info().workflow_id == nested:
            storing.set()
            await counted.wait()
        return await whole(stories, *story)

    monkeypatch.setattr(AgentStories, "whole", whole_once_counted)
    plan_below = when(answered, subtasks(item("f1", "walker")))
    lab.play(tree({"": subtasks(item("t1", "storey")), "t1/1": plan_below}))
    # A workflow task that waits for a local activity hears of other events only when most of its time is over.
    async with (
        own_server({"history.defaultWorkflowTaskTimeout": "2s"}) as client,
        serving(client, settings_for(lab.model.url, tmp_path)),
    ):
        handle = await lab.on(client).start(team="house", models={"supervisor": "no-price-known"})
        await until(lab.sent("t1/1/plan.1.1"))
        await handle.cancel()
        await storing.wait()
        answered.set()
        await until(partial(_has, client, nested, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED))
        counted.set()
        await until(lambda: closed(handle))
        result = await handle.query(SupervisorWorkflow.result)
        below = await nested_handle(client, nested).result()
    assert result.usage.model_calls == len(lab.calls) == 2
    assert below.warnings == ["the dollar budget is not kept: the price of no-price-known is unknown"]


async def _has(client: Client, workflow_id: str, kind: EventType.ValueType) -> bool:
    """True if a workflow's history has an event of that kind."""
    events = (await client.get_workflow_handle(workflow_id).fetch_history()).events
    return any(event.event_type == kind for event in events)
