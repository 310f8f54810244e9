"""A program's own Worker that serves runs, too, and a workflow of its own with runs as children."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.converter import DataConverter
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from temporal_supervisor import Run, RunRequest, SupervisorPlugin, connect, run
from temporal_supervisor.runtime.settings import Settings
from tests.runtime.briefings import Briefing
from tests.scripted_model import ScriptedModel, as_json
from tests.serving import address_of, own_server, settings_for

QUEUE = "briefings"
DIRECT = as_json({"direct_answer": "Forty pears.", "subtasks": [], "final_instruction": ""})


@pytest.fixture
async def plain() -> AsyncIterator[Client]:
    """A client as any program has it: with the SDK's own data converter."""
    async with own_server() as ours:
        yield await Client.connect(address_of(ours))


async def test_a_program_serves_runs_beside_its_own_workflows(
    plain: Client, model: ScriptedModel, tmp_path: Path
) -> None:
    model.play("*", lambda step: DIRECT)
    plugin = SupervisorPlugin(settings_for(model.url, tmp_path / "artifacts"))
    first, second = (
        Worker(plain, task_queue=queue, workflows=[Briefing], plugins=[plugin]) for queue in (QUEUE, "others")
    )
    async with first:
        async with second:  # ours are shared, and stay until the last Worker ends
            pass
        call = plain.execute_workflow(Briefing.run, args=["child", "lab"], id="b-1", task_queue=QUEUE)
        assert await call == "completed: Forty pears."
        with pytest.raises(WorkflowFailureError) as caught:
            await plain.execute_workflow(Briefing.run, args=["lost", "nobodys"], id="b-2", task_queue=QUEUE)
        cause = caught.value.cause
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.message) == ("UnknownTeam", "partial")
        run = Run(await connect(address=address_of(plain)), "child")
        assert (await run.result()).answer == "Forty pears."
        assert (await run.outcome_so_far()).state == "completed"
    assert first.client.data_converter is DataConverter.default
    assert [task for task in asyncio.all_tasks() if "SupervisorPlugin" in repr(task)] == []


async def test_without_a_key_a_program_brings_the_stand_in_along(
    plain: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = str(tmp_path / "artifacts")
    settings = Settings(_env_file=None, artifacts_url=store, teams_dir=tmp_path / "none")
    plugin = SupervisorPlugin(settings, standin=True)
    worker = Worker(plain, task_queue=QUEUE, workflows=[Briefing], plugins=[plugin])
    asked = RunRequest(goal="What was the life expectancy in Japan in 2007?", team="almanac")
    async with worker:
        result = await run(await connect(address=address_of(plain)), asked)
    assert "82.603" in result.answer
    assert "stand-in model" in result.answer
    assert f"SUPERVISOR_TEAMS_DIR names {tmp_path / 'none'}, where there is no folder" in caplog.text
