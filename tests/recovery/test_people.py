"""What waits for people through restarts of Workers and of the server: no event is added, and each answer arrives."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.client import Client

from tests.scripted_model import Reply, Step, plan, script
from tests.serving import own_server, settings_for
from tests.workflow.plan.test_approval import asked, decide
from tests.workflow.runs import Lab, refusal, settled
from tests.workflow.subtasks.test_people import asking, reply
from tests.workflow.subtasks.trees import nested_handle
from worker_main import serving

QUESTIONS = ("t1/1/n1/1:1.0", "t2/1/n1/1:1.0")


def _play(step: Step) -> Reply:
    if step.kind == "plan":
        if step.call == f"{step.run_id}/plan.1.1":
            return plan({"id": "t1", "role": "group"}, {"id": "t2", "role": "group"})
        return plan({"id": "n1", "role": "asker"})
    return asking(step) if step.kind == "turn" else script(plan())(step)


@contextlib.asynccontextmanager
async def _processes(lab: Lab, folder: Path) -> AsyncIterator[Client]:
    """A server on the same database and a Worker, for the time of a block."""
    settings = settings_for(lab.model.url, folder / "artifacts")
    async with own_server(db=folder / "temporal.db") as client, serving(client, settings):
        if not lab.calls:
            await lab.on(client).start(team="people", max_depth=2, approve_plan=True)
        yield client


async def test_an_approval_and_nested_questions_outlive_workers_and_server(lone: Lab, tmp_path: Path) -> None:
    lone.play(_play)
    async with _processes(lone, tmp_path) as client:
        handle = nested_handle(client, lone.run_id)
        await asked(handle)
        at_the_plan = await settled(handle)
    async with _processes(lone, tmp_path) as client:
        handle = nested_handle(client, lone.run_id)
        assert (await handle.describe()).history_length == at_the_plan
        await asked(handle)
        await decide(handle, 1, "approve")
        for wait_id in QUESTIONS:
            wait = await asked(handle, wait_id)
        assert f"-w {wait.workflow_id}" in await refusal(reply(handle, wait.id, "x"))
        nested = nested_handle(client, wait.workflow_id)
        before = await settled(handle)
        assert f"what does: {wait.id}" in await refusal(reply(nested, f"{wait.id}.9", "x"))
        at_the_questions = await settled(handle)
        assert at_the_questions - before < 10
    async with _processes(lone, tmp_path) as client:
        handle = nested_handle(client, lone.run_id)
        waits = [await asked(handle, wait_id) for wait_id in QUESTIONS]
        assert (await handle.describe()).history_length == at_the_questions
        for wait in reversed(waits):
            await reply(nested_handle(client, wait.workflow_id), wait.id, f"answer to {wait.id}")
        assert (await handle.result()).status == "completed"
    said = {call.step.call.split("/")[1]: call.step.prompt for call in lone.calls if call.step.call.endswith("turn.2")}
    assert said == {"t1": "answer to t1/1/n1/1:1.0", "t2": "answer to t2/1/n1/1:1.0"}
    assert len(set(lone.steps)) == len(lone.steps)
