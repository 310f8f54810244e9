"""A run as a child of a workflow of your own; this module loads no client.

In the code of a workflow that imports it through the sandbox:

    result = await run_as_child(RunRequest(goal="What is new about the harvest?"))
"""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_supervisor.supervision.base.queues import WORKFLOW_QUEUE
from temporal_supervisor.supervision.base.text import label
from temporal_supervisor.supervision.contract import RunRequest, RunResult

_RUN_TYPE = "SupervisorWorkflow"
_SUMMARY_CHARS = 200
_WAIT_FOR_ITS_END = ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED


async def run_as_child(
    request: RunRequest,
    *,
    run_id: str | None = None,
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.REQUEST_CANCEL,
    cancellation_type: ChildWorkflowCancellationType = _WAIT_FOR_ITS_END,
    **options: Any,
) -> RunResult:
    """Runs a request as a child of the calling workflow, and returns its result.

    Any data converter of the calling Worker will do. `options` are further options of
    `workflow.execute_child_workflow`, such as `execution_timeout`. Raises ChildWorkflowError if the
    run gave no answer; `run_failure` returns the reason.
    """
    sent = request.model_dump(mode="json", exclude_unset=True)
    made_id = f"supervise-{workflow.uuid4().hex[:12]}"
    # JSON both ways: the caller's own converter need not know pydantic.
    result: Any = await workflow.execute_child_workflow(
        _RUN_TYPE,
        sent,
        id=run_id or made_id,
        task_queue=WORKFLOW_QUEUE,
        result_type=dict,
        static_summary=label(request.goal, _SUMMARY_CHARS),
        parent_close_policy=parent_close_policy,
        cancellation_type=cancellation_type,
        **options,
    )
    return RunResult.model_validate(result)


def run_failure(error: ChildWorkflowError) -> tuple[str, RunResult | None]:
    """Returns the error type of a failed run, such as `BudgetExhausted`, and its partial result.

    The type is `Cancelled` or another class of temporalio for a run that ended otherwise.
    """
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        return type(cause).__name__.removesuffix("Error"), None
    kept = cause.details[0] if cause.details else None
    result = RunResult.model_validate(kept) if kept is not None else None
    return cause.type or "Error", result
