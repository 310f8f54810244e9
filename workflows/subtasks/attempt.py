"""One attempt of a subtask: by a worker agent, by several candidates, or by a person."""

import asyncio
from itertools import cycle

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import as_refs
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.base.text import one_line
    from temporal_supervisor.supervision.contract.result import SubtaskReport
    from temporal_supervisor.supervision.contract.team import Person
    from temporal_supervisor.supervision.run.attempt_rules import child_id
    from temporal_supervisor.supervision.run.slots import Slot

    from workflows.background import stop_all
    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.subtasks.agent_run import AgentRun
    from workflows.subtasks.asked_people import finding_by
    from workflows.subtasks.assignment import Assignment


async def run_attempt(work: Assignment) -> WorkerAgentResult:
    """Returns the result of the next attempt."""
    state, role = work.context.state, work.role
    subtask = state.board.subtask(work.subtask_id)
    report = state.board.start(work.subtask_id, role.name)
    count = 1 if role.team or role.person else subtask.candidates
    first = 1 if count > 1 else 0
    run_id = workflow.info().workflow_id
    own_id = child_id(run_id, work.subtask_id, report.attempts, first)
    state.board.set_workflow(work.subtask_id, own_id)
    state.trace.note(
        "subtask_started",
        work.subtask_id,
        attempt=report.attempts,
        role=role.name,
        reasoning=one_line(subtask.reasoning, limits.SENTENCE_BYTES),
        description=one_line(subtask.whole, limits.SENTENCE_BYTES),
    )
    work.context.issue_soon()
    if role.person is not None:
        return await _run_by(role.person, work)

    slot = work.slot or Slot(work.subtask_id)
    if count == 1:
        return await AgentRun(work, role, 0, slot).run()
    return await _run_candidates(work, _candidates(work, count, slot))


async def _run_by(person: Person, work: Assignment) -> WorkerAgentResult:
    """Returns the result of an attempt by a person, who needs no slot."""
    work.context.slots.release(work.slot)
    try:
        return await finding_by(person, work)
    except CallFailed as failed:
        return WorkerAgentResult(problem=failed.problem)
    except (asyncio.CancelledError, SupervisionError):
        # The run was stopped, or its time is over.
        return WorkerAgentResult(stopped=True)


def _candidates(work: Assignment, count: int, slot: Slot) -> list[AgentRun]:
    """Returns the agents of an attempt with several candidates, in the plan's order of roles."""
    team = work.context.plan.team
    subtask = work.context.state.board.subtask(work.subtask_id)
    named = [team.find(name) for name in subtask.candidate_roles]
    roles = [work.role, *[role for role in named if role is not None]]
    # The first candidate has the attempt's own slot.
    slots = [slot, *(Slot(work.subtask_id) for _ in range(1, count))]
    places = zip(cycle(roles), slots, strict=False)
    return [AgentRun(work, role, number, own) for number, (role, own) in enumerate(places, 1)]


async def _run_candidates(work: Assignment, agents: list[AgentRun]) -> WorkerAgentResult:
    """Runs several worker agents, as slots allow; a judge chooses one of their findings.

    All of them are paid.
    """
    state, subtask_id = work.context.state, work.subtask_id
    running = [asyncio.create_task(agent.run()) for agent in agents]
    try:
        await workflow.wait(running)
        results = [task.result() for task in running]
        for number, result in enumerate(results, 1):
            state.trace.note("candidate_ended", subtask_id, candidate=number, **result.refs)
        index = await _best_index(work, agents, results)
    except asyncio.CancelledError:
        # Cancelled while they run, or while the judge does: each hands in what it has, the first
        # finding counts.
        await stop_all(running)
        findings = (result for result in work.results if result.succeeded)
        return next(findings, WorkerAgentResult(stopped=True))

    state.board.begin(subtask_id, agents[index].role.name)
    state.board.set_workflow(subtask_id, agents[index].workflow_id)
    state.board.set_model(subtask_id, results[index].model or None)
    return results[index]


async def _best_index(
    work: Assignment, agents: list[AgentRun], results: list[WorkerAgentResult]
) -> int:
    """Returns the index of the best result; a judge is asked if there is a choice."""
    context, subtask_id = work.context, work.subtask_id
    reports: dict[int, SubtaskReport] = {}
    for index, result in enumerate(results):
        if result.succeeded:
            role = agents[index].role.name
            reports[index] = SubtaskReport(
                id=subtask_id, role=role, state="completed", finding=result.finding
            )
    if len(reports) < 2:
        return next(iter(reports), 0)

    description = context.state.board.subtask(subtask_id).description
    findings = as_refs(list(reports.values()))
    choice, reason = await context.model.judge("select", description, findings)
    # The judge counts only the findings that it was shown, and may have no preference.
    succeeded = list(reports)
    best = succeeded[choice or 0]
    context.state.trace.note(
        "candidate_chosen", subtask_id, choice=best + 1, of=len(agents), reason=reason
    )
    return best
