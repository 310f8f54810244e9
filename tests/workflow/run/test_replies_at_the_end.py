"""Replies that come together with a cancellation, or after it: they are paid, so they are counted."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scripted_model import Reply, plan, script, text, when
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import Lab, closed, is_answered
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
