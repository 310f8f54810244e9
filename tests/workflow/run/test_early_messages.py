"""Messages before a run's first workflow task, with any content: none of them may block it."""

import functools
from typing import Any

import pytest
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy

from supervision.contract.request import RunRequest
from tests.scripted_model import ScriptedModel, plan, script
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import GOAL, closed
from workflows.supervisor import SupervisorWorkflow

start = functools.partial(runs.start, team="lab")

pytestmark = pytest.mark.usefixtures("worker")

REPORT = {"subtask_id": "t1", "report_key": "", "phase": "executing", "subtasks": [], "waits": []}
CONTENTS: list[list[Any]] = [[], [None], [5], ["text"], [{"subtask_id": 5}], [REPORT], [{}, {}, []], [[1], 2]]


@pytest.mark.parametrize("update", ["extend_limits", "resume"])
@pytest.mark.parametrize("content", [[], [5], [{"budget": {"tokens": 500_000}}], [{}, {}]], ids=repr)
async def test_updates_and_queries_with_the_start_do_not_block_it(
    client: Client, model: ScriptedModel, run_id: str, update: str, content: list[Any]
) -> None:
    model.play(run_id, script(plan({"id": "t1"})))
    operation = WithStartWorkflowOperation(
        SupervisorWorkflow.run,
        RunRequest(goal=GOAL, team="lab", max_reviews=0),
        id=run_id,
        task_queue="supervisor",
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
    )
    try:
        reply = await client.execute_update_with_start_workflow(
            update, args=content, start_workflow_operation=operation
        )
        assert reply["accepted"]
    except WorkflowUpdateFailedError:
        assert content not in ([{"budget": {"tokens": 500_000}}],) or update == "resume"
    handle = await operation.workflow_handle()
    assert (await handle.query(SupervisorWorkflow.status)).phase
    await until(functools.partial(closed, handle), 15)
    assert (await handle.result()).status == "completed"
