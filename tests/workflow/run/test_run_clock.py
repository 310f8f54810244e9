"""The clock of a run starts with its first workflow task, and a replay of its history finds the same time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.run_setup import RunSetupActivities
from tests.scripted_model import ScriptedModel, plan, script
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import Handle, start, status_of
from worker_main import serving

SCHEDULED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED


async def test_a_run_that_is_looked_at_while_it_is_prepared_has_one_deadline(
    model: ScriptedModel, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query's answer ends the first workflow task; a replay takes that one and the next for one."""
    looked_at, goal = asyncio.Event(), RunSetupActivities._goal

    async def slowly(activities: RunSetupActivities, setup: Any) -> str:
        await looked_at.wait()
        return await goal(activities, setup)

    monkeypatch.setattr(RunSetupActivities, "_goal", slowly)
    model.play(run_id, script(plan(answer="none")))
    settings = settings_for(model.url, tmp_path)
    async with own_server() as client, serving(client, settings, ["model"]):
        handle = await start(client, run_id, "lab")
        query = asyncio.create_task(status_of(handle))
        async with serving(client, settings, ["workflows"]):
            deadline_at = (await query).deadline_at
            await until(lambda: _is_tasked_again(client, handle))
            looked_at.set()
            assert (await handle.result()).answer == "none"
            assert (await status_of(handle)).deadline_at == deadline_at
        async with serving(client, settings, ["workflows"]):
            assert (await status_of(handle)).deadline_at == deadline_at


async def _is_tasked_again(client: Client, handle: Handle) -> bool:
    history = await client.get_workflow_handle(handle.id).fetch_history()
    return [event.event_type for event in history.events].count(SCHEDULED) == 2
