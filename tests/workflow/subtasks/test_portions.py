"""Wide steps: children start in portions, each of which one message to the server and one workflow task can take."""

from collections import Counter

import pytest
from temporalio.client import Client

from supervision.base import limits
from supervision.run import run_state, web_details
from tests.scripted_model import ScriptedModel, plan, script
from tests.workflow import runs
from workflows.run_context import STARTS_AT_ONCE

pytestmark = pytest.mark.usefixtures("worker")


async def test_many_subtasks_that_are_ready_together_start_in_portions(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    ids = [f"t{number}" for number in range(120)]
    model.play(run_id, script(plan(*[{"id": subtask_id} for subtask_id in ids])))
    result = await runs.run(client, run_id, "lab", max_subtasks=len(ids), max_parallel=limits.MAX_PARALLEL)
    assert result.status == "completed"
    begun = await runs.scheduled(client, run_id, "child")
    tasks = Counter(
        event.start_child_workflow_execution_initiated_event_attributes.workflow_task_completed_event_id
        for event in begun
    )
    assert sum(tasks.values()) == len(ids)
    assert max(tasks.values()) <= STARTS_AT_ONCE


async def test_the_details_are_rendered_only_when_somebody_looks(
    client: Client, model: ScriptedModel, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    markdown = web_details.markdown

    def counted(*parts: object) -> str:
        rendered.append(run_id)
        return markdown(*parts)  # type: ignore[arg-type]

    monkeypatch.setattr(run_state, "markdown", counted)
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"})))
    handle = await runs.start(client, run_id, "lab")
    await handle.result()
    assert rendered == []
    assert "2 of 2 subtasks" in await runs.details(handle)
    assert rendered == [run_id]
