"""Running a subtask attempt as a child workflow, and stopping it in a way that always arrives."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError, FailureError

with workflow.unsafe.imports_passed_through():
    from supervision import limits
    from supervision.contract.finding import Finding
    from supervision.contract.request import RunRequest
    from supervision.contract.result import Gap, Problem, RunResult
    from supervision.run.payload_fit import slim
    from supervision.text import cut, one_line, size
    from workflows.child_contracts import NestedInput, WorkerAgentInput, WorkerAgentResult
    from workflows.failures import cancelled, problem
    from workflows.worker_agent import WorkerAgentWorkflow


@dataclass(frozen=True)
class Outcome:
    """How an attempt of a subtask ended. `problem` is None when it succeeded."""

    result: WorkerAgentResult
    problem: Problem | None = None
    stopped: bool = False


def child_id(subtask_id: str, attempt: int, candidate: int = 0) -> str:
    """The workflow id of a subtask attempt, or of one candidate of it."""
    return f"{workflow.info().workflow_id}/{subtask_id}/{attempt}" + (f".{candidate}" if candidate else "")


async def run_worker_agent(input: WorkerAgentInput, description: str) -> Outcome:
    """Runs a worker agent to its end; see `_run` for how it stops."""
    id = child_id(input.subtask_id, input.attempt, input.candidate)
    summary = one_line(f"{input.subtask_id} · {input.role.name}: {description}", limits.LABEL_BYTES)

    return await _run(id, workflow.start_child_workflow(WorkerAgentWorkflow.run, input, id=id, static_summary=summary))


async def run_nested(request: RunRequest, nested: NestedInput, attempt: int, description: str) -> Outcome:
    """Runs a nested supervisor to its end, its result as a finding."""
    id = child_id(nested.subtask_id, attempt)
    summary = one_line(f"{nested.subtask_id} · team {request.team_name}: {description}", limits.LABEL_BYTES)

    start = workflow.start_child_workflow(
        "SupervisorWorkflow", args=[request, nested], id=id, static_summary=summary, result_type=RunResult
    )
    return await _run(id, start)


async def _run(id: str, start: Coroutine[Any, Any, workflow.ChildWorkflowHandle[Any, Any]]) -> Outcome:
    """Awaits a child. When the caller is cancelled the child is stopped and what it had is returned.

    The child is stopped by its id: a cancel through its handle would reach only its first run, and a worker agent
    that has continued as new would work on.
    """
    stopped = False
    try:
        handle = await start
        try:
            return Outcome(_as_result(await asyncio.shield(handle)))
        except asyncio.CancelledError:
            stopped = True
            await _cancel(id)
            return Outcome(_as_result(await handle), stopped=True)
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
    if not isinstance(cause, ApplicationError) or not cause.details or not isinstance(cause.details[0], dict):
        return WorkerAgentResult()
    if "plan_revisions" in cause.details[0]:
        result = RunResult.model_validate(cause.details[0])
        return _as_result(result)
    return WorkerAgentResult.model_validate(cause.details[0])


def _as_result(value: WorkerAgentResult | RunResult) -> WorkerAgentResult:
    """A nested supervisor's answer is its finding; what it could not find out is carried upward.

    One that was cancelled or failed has none, and is `stopped`.
    """
    if isinstance(value, WorkerAgentResult):
        return value
    return WorkerAgentResult(
        finding=_answered(value) if value.answer_ref else None,
        stopped=value.answer_ref is None,
        turns=sum(report.turns for report in value.subtasks),
        usage=value.usage,
        subtasks=slim(value.subtasks),
        gaps=[Gap(subtask_id=gap.subtask_id, reason=cut(gap.reason, 300)) for gap in value.gaps[: limits.GAPS_SHOWN]],
    )


def _answered(result: RunResult) -> Finding:
    sources = [source for report in result.subtasks if report.finding for source in report.finding.sources]
    return Finding(
        summary=cut(result.answer, limits.SUMMARY_BYTES),
        text_ref=result.answer_ref or "",
        text_bytes=size(result.answer),
        confidence=result.confidence,
        sources=list(dict.fromkeys(sources))[:20],
        artifacts=result.artifacts[:20],
        limitations=[cut(warning, 300) for warning in result.warnings[:10]],
    )
