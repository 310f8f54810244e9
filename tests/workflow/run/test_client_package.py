"""The package for client programs: a run is started, followed and ends, or fails, with what it has."""

import pytest
from temporalio.client import Client
from temporalio.exceptions import WorkflowAlreadyStartedError

from temporal_supervisor import RunFailed, RunRequest, Status, TraceEvent, follow, run, start, wait
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, text, tools
from tests.workflow.runs import GOAL

pytestmark = pytest.mark.usefixtures("worker")

REQUEST = RunRequest(goal=GOAL, team="lab", max_reviews=0, max_replans=0)


def impossible(step: Step) -> Reply:
    words = {"finding": "no scales", "limitations": [], "confidence": 0.1, "outcome": "impossible", "summary": "none"}
    return tools(("finish", words))


async def test_a_program_starts_a_run_and_follows_it_to_its_result(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: text("found")}))
    assert await start(client, REQUEST, run_id) == run_id
    seen = [news async for news in follow(client, run_id)]
    events = [news for news in seen if isinstance(news, TraceEvent)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(seen[-1], Status)
    assert seen[-1].phase == "done"
    assert (await wait(client, run_id)).status == "completed"
    with pytest.raises(WorkflowAlreadyStartedError):
        await run(client, REQUEST, run_id)


async def test_a_run_that_fails_raises_with_what_it_has(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, script(plan({"id": "t1"}), {"t1": impossible}))
    with pytest.raises(RunFailed) as caught:
        await run(client, REQUEST, run_id)
    assert caught.value.type == "AllSubtasksFailed"
    assert caught.value.result is not None
    assert [subtask.state for subtask in caught.value.result.subtasks] == ["failed"]
