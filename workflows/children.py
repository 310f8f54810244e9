"""Running a worker agent as a child workflow, and stopping it in a way that always arrives."""

import asyncio
from dataclasses import dataclass

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError

with workflow.unsafe.imports_passed_through():
    from supervision.result import Problem
    from supervision.text import one_line
    from workflows.contracts import WorkerAgentInput, WorkerAgentResult
    from workflows.failures import cancelled, problem
    from workflows.worker_agent import WorkerAgentWorkflow


@dataclass(frozen=True)
class Outcome:
    """How an attempt of a subtask ended. `problem` is None when it succeeded."""

    result: WorkerAgentResult
    problem: Problem | None = None
    stopped: bool = False


def child_id(subtask_id: str, attempt: int) -> str:
    """The workflow id of a subtask attempt."""
    return f"{workflow.info().workflow_id}/{subtask_id}/{attempt}"


async def run_worker_agent(input: WorkerAgentInput, description: str) -> Outcome:
    """Runs one attempt to its end. When the caller is cancelled the child is stopped and what it had is returned.

    The child is stopped by its id: a cancel through its handle would reach only its first run, and a worker agent
    that has continued as new would work on.
    """
    id = child_id(input.subtask_id, input.attempt)
    stopped = False
    try:
        handle = await workflow.start_child_workflow(
            WorkerAgentWorkflow.run,
            input,
            id=id,
            static_summary=one_line(f"{input.subtask_id} · {input.role.name}: {description}", 200),
        )
        try:
            return Outcome(await asyncio.shield(handle))
        except asyncio.CancelledError:
            stopped = True
            await _cancel(id)
            return Outcome(await handle, stopped=True)
    except asyncio.CancelledError:
        return Outcome(WorkerAgentResult(stopped=True), stopped=True)
    except (ChildWorkflowError, FailureError) as error:
        if cancelled(error):
            return Outcome(WorkerAgentResult(stopped=True), stopped=True)
        return Outcome(_consumed(error), problem(error), stopped)


async def _cancel(id: str) -> None:
    try:
        await workflow.get_external_workflow_handle(id).cancel()
    except FailureError:
        workflow.logger.debug("child %s had ended before it was cancelled", id)


def _consumed(error: BaseException) -> WorkerAgentResult:
    """What a failed attempt had used, from the details of its error."""
    cause = error.cause if isinstance(error, ChildWorkflowError) else error
    if isinstance(cause, ApplicationError) and cause.details:
        return WorkerAgentResult.model_validate(cause.details[0])
    return WorkerAgentResult()
