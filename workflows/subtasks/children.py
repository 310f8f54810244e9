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
    from supervision.contract.request import RunRequest
    from supervision.contract.result import Problem
    from supervision.contract.team import RoleCard
    from supervision.text import cut, one_line
    from workflows.child_contracts import (
        NestedInput,
        NestedResult,
        NestedTerms,
        WorkerAgentInput,
        WorkerAgentResult,
    )
    from workflows.failures import cancelled, details_of, problem_of
    from workflows.nested.nested_result import as_agent_result
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


async def run_worker_agent(agent: WorkerAgentInput, description: str) -> AttemptOutcome:
    """Runs a worker agent and returns its outcome; see `_run` for how it is stopped."""
    workflow_id = child_id(agent.subtask_id, agent.attempt, agent.candidate)
    summary = one_line(f"{agent.subtask_id} · {agent.role.name}: {description}", limits.LABEL_BYTES)

    def start(as_id: str) -> _Start:
        return workflow.start_child_workflow(WorkerAgentWorkflow.run, agent, id=as_id, static_summary=summary)

    return await _run(workflow_id, start, WorkerAgentResult.model_validate)


def _nested_input(
    context: RunContext, subtask_id: str, role: RoleCard, brief: SubtaskBrief, terms: NestedTerms
) -> tuple[RunRequest, NestedInput]:
    """Returns a nested supervisor's inputs: the subtask as its goal, a slice of budget and deadline, one level less."""
    state = context.state
    request = state.request.model_copy(
        update={
            "goal": cut(state.board.subtask(subtask_id).description, limits.GOAL_BYTES),
            "team": role.team,
            "strategy": "auto",
            "plan": None,
            "success": "any",
            "deadline": terms.deadline_at - workflow.now(),
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
        terms=terms,
    )
    return request, nested


async def run_nested(
    context: RunContext, role: RoleCard, brief: SubtaskBrief, attempt: int, account: str, grant: Amount
) -> AttemptOutcome:
    """Runs the supervisor of a role that is a team, and returns its outcome, its answer as the finding.

    `grant` is that of `account` in the ledger: it grows while the nested supervisor runs, if it asks for more.
    """
    subtask_id, links = brief.subtask_id, context.children
    request, nested = _nested_input(context, subtask_id, role, brief, links.open(subtask_id, account, grant))
    description = context.state.board.subtask(subtask_id).description
    summary = one_line(f"{subtask_id} · team {request.team_name}: {description}", limits.LABEL_BYTES)

    async def start(as_id: str) -> workflow.ChildWorkflowHandle[Any, Any]:
        handle = await workflow.start_child_workflow(
            "SupervisorWorkflow", args=[request, nested], id=as_id, static_summary=summary, result_type=NestedResult
        )
        links.started(subtask_id, handle)
        return handle

    outcome = AttemptOutcome(WorkerAgentResult())
    try:
        outcome = await _run(child_id(subtask_id, attempt), start, as_agent_result)
    finally:
        links.close(subtask_id, outcome.result.nested)
    return outcome


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
