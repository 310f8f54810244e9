"""Running a subtask attempt as a child workflow, and stopping it in a way that always arrives."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief
    from supervision import limits
    from supervision.budget.amount import Amount
    from supervision.contract.finding import Finding
    from supervision.contract.request import RunRequest
    from supervision.contract.result import Gap, Problem, RunResult
    from supervision.contract.team import RoleCard
    from supervision.run.payload_fit import slim
    from supervision.text import cut, one_line, size
    from workflows.child_contracts import NestedInput, WorkerAgentInput, WorkerAgentResult
    from workflows.failures import cancelled, details_of, problem_of
    from workflows.run_context import RunContext
    from workflows.worker_agent import WorkerAgentWorkflow

_Start = Coroutine[Any, Any, workflow.ChildWorkflowHandle[Any, Any]]


@dataclass(frozen=True)
class AttemptOutcome:
    """How an attempt of a subtask ended. `problem` is None if it succeeded or was stopped: `result` says which."""

    result: WorkerAgentResult
    problem: Problem | None = None


def stopped(result: WorkerAgentResult | None = None) -> AttemptOutcome:
    """Returns the outcome of an attempt that was stopped, with what it had."""
    return AttemptOutcome((result or WorkerAgentResult()).model_copy(update={"stopped": True}))


def child_id(subtask_id: str, attempt: int, candidate: int = 0) -> str:
    """Returns the workflow id of a subtask attempt, or of one candidate of it."""
    return f"{workflow.info().workflow_id}/{subtask_id}/{attempt}" + (f".{candidate}" if candidate else "")


async def run_worker_agent(context: RunContext, agent: WorkerAgentInput, description: str) -> AttemptOutcome:
    """Runs a worker agent and returns its outcome; see `_run` for how it is stopped."""
    workflow_id = child_id(agent.subtask_id, agent.attempt, agent.candidate)
    summary = one_line(f"{agent.subtask_id} · {agent.role.name}: {description}", limits.LABEL_BYTES)

    try:
        lease = await context.starts.lease(size(agent.model_dump_json()))
    except asyncio.CancelledError:
        return stopped()

    def start(as_id: str) -> _Start:
        return lease.until_started(
            workflow.start_child_workflow(WorkerAgentWorkflow.run, agent, id=as_id, static_summary=summary)
        )

    return await _run(workflow_id, start, WorkerAgentResult.model_validate)


def nested_input(
    context: RunContext, subtask_id: str, role: RoleCard, brief: SubtaskBrief, grant: Amount
) -> tuple[RunRequest, NestedInput]:
    """Returns a nested supervisor's inputs: the subtask as its goal, a slice of budget and deadline, one level less."""
    state = context.state
    left = (state.time_and_budget.work_until - workflow.now()) * limits.NESTED_DEADLINE_SHARE
    deadline = max(left, limits.MIN_DEADLINE)
    request = state.request.model_copy(
        update={
            "goal": cut(state.board.subtask(subtask_id).description, limits.GOAL_BYTES),
            "team": role.team,
            "strategy": "auto",
            "success": "any",
            "deadline": deadline,
            "incremental_synthesis": 0,
            "answer_schema": None,
            "attachments": [],
        }
    )
    nested = NestedInput(
        root_id=context.run.run_id,
        store_id=context.run.store_id,
        subtask_id=subtask_id,
        depth=context.depth + 1,
        brief=brief,
        grant=grant,
        root_has_finding=state.has_finding,
        report_key=state.expect_reports(subtask_id, str(workflow.uuid4())),
    )
    return request, nested


async def run_nested(
    context: RunContext, request: RunRequest, nested: NestedInput, attempt: int, description: str
) -> AttemptOutcome:
    """Runs a nested supervisor and returns its outcome, its answer as the finding."""
    workflow_id = child_id(nested.subtask_id, attempt)
    summary = one_line(f"{nested.subtask_id} · team {request.team_name}: {description}", limits.LABEL_BYTES)

    try:
        lease = await context.starts.lease(size(request.model_dump_json()) + size(nested.model_dump_json()))
    except asyncio.CancelledError:
        return stopped()

    def start(as_id: str) -> _Start:
        return lease.until_started(
            workflow.start_child_workflow(
                "SupervisorWorkflow", args=[request, nested], id=as_id, static_summary=summary, result_type=RunResult
            )
        )

    return await _run(workflow_id, start, _from_nested)


async def _run(
    workflow_id: str,
    start: Callable[[str], _Start],
    read: Callable[[object], WorkerAgentResult],
) -> AttemptOutcome:
    """Awaits a child; `read` takes its result, or the details of its error.

    When the caller is cancelled the child is stopped and what it had is returned. The child is stopped by its id: a
    cancel through its handle would reach only its first run, and a worker agent that has continued as new would go on.
    """
    stopping = False
    try:
        try:
            handle = await start(workflow_id)
        except WorkflowAlreadyStartedError:
            # Ids of children can be guessed: whoever has taken this one must not be able to end the subtask.
            workflow_id = f"{workflow_id}.{workflow.random().getrandbits(40)}"
            handle = await start(workflow_id)
        try:
            # Shielded: a cancellation that reached the handle would end the wait before the child has answered.
            return AttemptOutcome(read(await asyncio.shield(handle)))
        except asyncio.CancelledError:
            stopping = True
            await _cancel(workflow_id)
            return AttemptOutcome(read(await handle))  # whole, if it had finished before the cancellation came
    except asyncio.CancelledError:
        return stopped()
    except FailureError as error:
        if cancelled(error):
            return stopped()
        details = details_of(error)
        result = read(details) if isinstance(details, dict) else WorkerAgentResult()
        return stopped(result) if stopping else AttemptOutcome(result, problem_of(error))


async def _cancel(workflow_id: str) -> None:
    try:
        await workflow.get_external_workflow_handle(workflow_id).cancel()
    except FailureError:
        workflow.logger.debug("child %s had ended before it was cancelled", workflow_id)


def _from_nested(value: object) -> WorkerAgentResult:
    """Returns the answer of a nested supervisor as a finding; what it could not find out is carried upward.

    A nested run returns without an answer only if it was cancelled.
    """
    result = RunResult.model_validate(value)
    return WorkerAgentResult(
        finding=_answer_as_finding(result) if result.answer_ref else None,
        stopped=result.answer_ref is None,
        turns=sum(report.turns for report in result.subtasks),
        usage=result.usage,
        subtasks=slim(result.subtasks),
        gaps=[Gap(subtask_id=gap.subtask_id, reason=cut(gap.reason, 300)) for gap in result.gaps[: limits.GAPS_SHOWN]],
    )


def _answer_as_finding(result: RunResult) -> Finding:
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
