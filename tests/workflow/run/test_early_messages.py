"""Updates and queries that come with the start of a run, before its first workflow task: none of them blocks it."""

import asyncio
from typing import Any

from temporalio.client import WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy

from supervision.contract.request import RunRequest
from tests.scripted_model import plan, script
from tests.workflow.runs import GOAL, Lab
from workflows.supervisor import SupervisorWorkflow

CONTENTS: list[list[Any]] = [[], [5], [{"budget": {"tokens": 500_000}}], [{}, {}]]


async def test_updates_and_queries_with_the_start_do_not_block_it(lab: Lab) -> None:
    async def is_taken(number: int, update: str, content: list[Any]) -> bool:
        own = f"{lab.run_id}-{update}-{number}"
        lab.model.play(own, script(plan({"id": "t1"})))
        operation = WithStartWorkflowOperation(
            SupervisorWorkflow.run,
            RunRequest(goal=GOAL, team="lab", max_reviews=0),
            id=own,
            task_queue="supervisor",
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        )
        try:
            reply = await lab.client.execute_update_with_start_workflow(
                update, args=content, start_workflow_operation=operation
            )
            accepted = bool(reply["accepted"])
        except WorkflowUpdateFailedError:
            accepted = False
        handle = await operation.workflow_handle()
        assert (await handle.query(SupervisorWorkflow.status)).phase
        assert (await handle.result()).status == "completed"
        return accepted

    cases = [
        (number, update, content) for update in ("extend_limits", "resume") for number, content in enumerate(CONTENTS)
    ]
    taken = await asyncio.gather(*(is_taken(*case) for case in cases))
    assert taken[:5] == [False, False, True, False, True]
