"""The package for client programs: a run is started, followed and ends, or fails, with what it has."""

import pytest
from temporalio.exceptions import WorkflowAlreadyStartedError

from temporal_supervisor import RunFailed, RunRequest, Status, TraceEvent, follow, run, start, wait
from tests.scripted_model import Reply, Step, plan, script, text, tools
from tests.workflow.runs import GOAL, Lab

REQUEST = RunRequest(goal=GOAL, team="lab", max_reviews=0, max_replans=0)


def impossible(step: Step) -> Reply:
    words = {"finding": "no scales", "limitations": [], "confidence": 0.1, "outcome": "impossible", "summary": "none"}
    return tools(("finish", words))


async def test_a_program_starts_a_run_and_follows_it_to_its_result(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: text("found")}))
    assert await start(lab.client, REQUEST, lab.run_id) == lab.run_id
    seen = [news async for news in follow(lab.client, lab.run_id)]
    events = [news for news in seen if isinstance(news, TraceEvent)]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert isinstance(seen[-1], Status)
    assert seen[-1].phase == "done"
    assert (await wait(lab.client, lab.run_id)).status == "completed"
    with pytest.raises(WorkflowAlreadyStartedError):
        await run(lab.client, REQUEST, lab.run_id)


async def test_a_run_that_fails_raises_with_what_it_has(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1"}), {"t1": impossible}))
    with pytest.raises(RunFailed) as caught:
        await run(lab.client, REQUEST, lab.run_id)
    assert caught.value.type == "AllSubtasksFailed"
    assert caught.value.result is not None
    assert [subtask.state for subtask in caught.value.result.subtasks] == ["failed"]
