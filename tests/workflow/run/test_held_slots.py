"""Runs whose workflow tasks take long, or were lost with their slots, do not keep other runs from going on."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.run_setup import RunSetupActivities
from runtime.queues.task_slots import TaskSlots
from supervision import limits
from tests.scripted_model import ScriptedModel, answer, plan, script
from tests.serving import own_server, settings_for
from tests.waiting import until
from tests.workflow.runs import run, start
from worker_main import serving


async def test_runs_that_wait_for_their_preparation_hold_up_no_other(
    model: ScriptedModel, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local activity that takes long, or is tried again, keeps the workflow task of its run open."""
    reading, is_back, goal = set(), asyncio.Event(), RunSetupActivities._goal
    slow = [f"{run_id}-{number}" for number in range(limits.WORKFLOW_TASK_SLOTS + 1)]

    async def slowly(activities: RunSetupActivities, setup: Any) -> str:
        reading.add(setup.run.run_id)
        if setup.run.run_id in slow:
            await is_back.wait()
        return await goal(activities, setup)

    monkeypatch.setattr(RunSetupActivities, "_goal", slowly)
    monkeypatch.setattr(limits, "REPLAY_LONGEST", timedelta(seconds=1))
    async with own_server() as client, serving(client, settings_for(model.url, tmp_path)):
        waiting = []
        for name in slow:
            model.play(name, script(plan(answer="late")))
            waiting.append(await start(client, name, "lab"))
        try:
            await until(lambda: reading.issuperset(slow))
            model.play(run_id, script(plan(answer="none")))
            assert (await run(client, run_id, "lab")).answer == "none"
        finally:
            is_back.set()
        for handle in waiting:
            assert (await handle.result()).answer == "late"


async def test_slots_that_are_lost_are_replaced(
    model: ScriptedModel, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskSlots, "release_slot", lambda slots, ctx: None)
    monkeypatch.setattr(limits, "REPLAY_LONGEST", timedelta(milliseconds=100))
    monkeypatch.setattr(limits, "REPLAY_PATIENCE", timedelta(milliseconds=100))
    chain = plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}, {"id": "t3", "after": ["t2"]})
    model.play(run_id, script(chain, answer_reply=answer(cites=["t3"])))
    async with own_server() as client, serving(client, settings_for(model.url, tmp_path)):
        assert (await run(client, run_id, "lab")).status == "completed"
