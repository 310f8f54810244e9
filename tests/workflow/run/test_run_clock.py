"""The clock of a run starts with its first workflow task, and a replay of its history finds the same time."""

import asyncio
import contextlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.service import RPCError

from activities.run.run_setup import RunSetupActivities
from tests.scripted_model import plan, script
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import Lab, status_of
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow


async def test_a_run_that_is_looked_at_while_it_is_prepared_has_one_deadline(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at, goal = asyncio.Event(), RunSetupActivities._goal

    async def slowly(activities: RunSetupActivities, setup: Any) -> str:
        await looked_at.wait()
        return await goal(activities, setup)

    monkeypatch.setattr(RunSetupActivities, "_goal", slowly)
    lab.play(script(plan(answer="none")))
    settings = settings_for(lab.model.url, tmp_path)
    async with own_server() as client, serving(client, settings, ["model"]):
        handle = await lab.on(client).start()
        query = asyncio.create_task(status_of(handle))
        async with serving(client, settings, ["workflows"]):
            deadline_at = (await query).deadline_at
            looked_at.set()
            assert (await handle.result()).answer == "none"
            assert (await status_of(handle)).deadline_at == deadline_at

        async def a_replay_shows_it() -> bool:
            with contextlib.suppress(RPCError):  # the server gave the query to the Worker that was ending
                again = await handle.query(SupervisorWorkflow.status, rpc_timeout=timedelta(seconds=5))
                return again.deadline_at == deadline_at
            return False

        async with serving(client, settings, ["workflows"]):
            await until(a_replay_shows_it)
