"""The child workflow of a subtask attempt: a worker agent, or the supervisor of a team. Its input and its result."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import SubtaskBrief
    from supervision.base import limits
    from supervision.base.text import cut, label, size
    from supervision.budget.amount import Amount
    from supervision.contract.request import RunRequest
    from supervision.contract.team import RoleCard
    from supervision.run.attempt_rules import child_id
    from workflows.children.child_contracts import (
        NestedInput,
        NestedResult,
        NestedTerms,
        WorkerAgentInput,
        WorkerAgentResult,
    )
    from workflows.children.nested_result import as_agent_result
    from workflows.run_context import RunContext
    from workflows.subtasks.child_runs import AttemptOutcome, Booked, run_child, stopped
    from workflows.worker_agent import WorkerAgentWorkflow

_LABEL_BYTES = 64  # a child's label in the timeline: longer ones run out of the picture

_Start = Coroutine[Any, Any, workflow.ChildWorkflowHandle[Any, Any]]


async def run_worker_agent(
    context: RunContext, agent: WorkerAgentInput, booked: Booked, description: str
) -> AttemptOutcome:
    """Runs a worker agent and returns its outcome; see `run_child` for `booked`, and for how it is stopped."""
    workflow_id = child_id(workflow.info().workflow_id, agent.subtask_id, agent.attempt, agent.candidate)
    summary = label(f"{agent.subtask_id} · {agent.role.name}: {description}", _LABEL_BYTES)

    try:
        lease = await context.starts.lease(size(agent.model_dump_json()))
    except asyncio.CancelledError:
        return stopped()

    def start(as_id: str) -> _Start:
        return lease.until_started(
            workflow.start_child_workflow(
                WorkerAgentWorkflow.run,
                agent,
                id=as_id,
                static_summary=summary,
            )
        )

    return await run_child(context, workflow_id, booked, start, WorkerAgentResult.model_validate)


def _nested_input(
    context: RunContext, subtask_id: str, role: RoleCard, brief: SubtaskBrief, terms: NestedTerms
) -> tuple[RunRequest, NestedInput]:
    """Returns a nested supervisor's inputs: the subtask as its goal, a slice of budget and deadline, one level less."""
    state = context.state
    if own := state.timeout_of(subtask_id):
        own_end = workflow.now() + max(timedelta(seconds=own), limits.MIN_DEADLINE)
        terms = terms.model_copy(update={"deadline_at": min(terms.deadline_at, own_end)})
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
        run=context.run,
        subtask_id=subtask_id,
        depth=context.depth + 1,
        brief=brief,
        terms=terms,
    )
    return request, nested


async def run_nested(
    context: RunContext,
    role: RoleCard,
    brief: SubtaskBrief,
    attempt: int,
    booked: Booked,
    account: str,
    grant: Amount,
) -> AttemptOutcome:
    """Runs the supervisor of a role that is a team, and returns its outcome, its answer as the finding.

    `grant` is that of `account` in the ledger: it grows while the nested supervisor runs, if it asks for more.
    `booked`: see `run_child`.
    """
    subtask_id, links = brief.subtask_id, context.children
    request, nested = _nested_input(context, subtask_id, role, brief, links.open(subtask_id, account, grant))
    description = context.state.board.subtask(subtask_id).description
    summary = label(f"{subtask_id} · team {request.team_name}: {description}", _LABEL_BYTES)

    outcome = AttemptOutcome(WorkerAgentResult())
    try:
        lease = await context.starts.lease(size(request.model_dump_json()) + size(nested.model_dump_json()))

        async def start(as_id: str) -> workflow.ChildWorkflowHandle[Any, Any]:
            handle = await lease.until_started(
                workflow.start_child_workflow(
                    "SupervisorWorkflow",
                    args=[request, nested],
                    id=as_id,
                    static_summary=summary,
                    result_type=NestedResult,
                )
            )
            links.started(subtask_id, as_id)
            return handle

        workflow_id = child_id(workflow.info().workflow_id, subtask_id, attempt)
        outcome = await run_child(context, workflow_id, booked, start, as_agent_result)
    except asyncio.CancelledError:  # it waited for its start
        return stopped()
    finally:
        links.close(subtask_id, outcome.result.nested)
    return outcome
