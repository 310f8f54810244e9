"""A subtask over its attempts: better described after each failure, by the fallback role in the end."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.questions.judgement import REFINE, RefineInput
    from supervision.base import limits
    from supervision.base.errors import FATAL, ErrorKind, SupervisionError
    from supervision.base.text import cut
    from supervision.contract.result import Problem
    from supervision.run.attempt_rules import DECLINED, NextTry, back_off, counts_against_role, is_retried, next_try
    from workflows.calls.asking import ask_or_warn
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.subtasks.assignment import Assignment
    from workflows.subtasks.attempt import run_attempt


async def run_with_retries(assignment: Assignment) -> None:
    """Runs a subtask to its end, or until no breaker admits its next attempt: then it waits on the board.

    Raises SupervisionError if the provider refuses all work. A cancellation ends the subtask and is not raised.
    """
    try:
        await _run_with_retries(assignment)
    except asyncio.CancelledError:
        # The dispatch cancels this task at any await here or below; attempts themselves return what they have.
        assignment.stop()
    except SupervisionError:
        assignment.stop()
        raise
    finally:
        if assignment.slot is not None:  # no attempt took it up
            assignment.context.free(assignment.slot)


async def _run_with_retries(assignment: Assignment) -> None:
    context, subtask_id = assignment.context, assignment.subtask_id
    await assignment.divert()
    while True:
        context.state.board.begin(subtask_id, assignment.role.name)
        result = await run_attempt(assignment)
        assignment.last, assignment.resume_from = result, None
        problem = await _retryable_problem(assignment, result)
        if problem is None:
            return
        is_persons = assignment.role.person is not None
        assignment.count_outcome(False if counts_against_role(problem.type) and not is_persons else None)
        assignment.failures += 1
        assignment.declined += problem.type in DECLINED
        if not await _prepare_retry(assignment, problem, result.model) and not await assignment.helped(problem):
            return
        if not assignment.take_role():
            context.state.board.put_back(subtask_id)
            context.state.trace.note("subtask_held", subtask_id, role=assignment.role.name)
            return


async def _retryable_problem(assignment: Assignment, result: WorkerAgentResult) -> Problem | None:
    """Returns the problem that another attempt may mend; None once the subtask has ended."""
    problem = result.problem
    if assignment.has_ended:  # the run did not wait for it any longer
        return None
    if problem is None:
        if result.succeeded:
            assignment.complete(result)
        else:
            assignment.stop()
        return None
    if problem.type is ErrorKind.CANCELLED:  # by a person, who wants no other attempt
        assignment.stop(problem)
        return None
    if not is_retried(problem.type):
        assignment.count_outcome(None)
        if problem.type in FATAL and assignment.previous is None:
            await assignment.context.wait_for_first_finding(assignment.subtask_id)
        assignment.fail(problem)
        return None
    return problem


async def _prepare_retry(assignment: Assignment, problem: Problem, model: str) -> bool:
    """Readies the next attempt: same role better described, or the fallback role. Returns False to give up.

    A subtask that `model` refused goes to another one, if the role has one.
    """
    context, subtask_id, fallback = assignment.context, assignment.subtask_id, assignment.unused_fallback
    step = next_try(problem.type, assignment.failures, assignment.declined, has_fallback=fallback is not None)
    if assignment.role.person is not None and step is NextTry.SAME_ROLE:  # who has not answered is not asked again
        step = NextTry.FALLBACK_ROLE if fallback is not None else NextTry.GIVE_UP
    if problem.type is ErrorKind.REFUSED:
        assignment.refused_by.add(model)
    other_model = problem.type is ErrorKind.REFUSED and not assignment.refused_by.issuperset(assignment.role.models)
    if other_model and assignment.failures < limits.SUBTASK_ATTEMPTS:
        step = NextTry.SAME_ROLE
    if step is NextTry.GIVE_UP:
        return False
    failed_at, rewritten = workflow.now(), ""
    refined_only = problem.type in DECLINED and assignment.description_ref is None and not other_model
    if step is NextTry.SAME_ROLE or refined_only:
        # While this waits the breaker may open or close: its permission is asked for after it.
        call = RefineInput(
            **{**context.call_fields, "plan_ref": context.described_in[subtask_id]},
            team_ref=context.team_ref,
            subtask_id=subtask_id,
            description_ref=assignment.description_ref,
            role=assignment.role.name,
            attempt=assignment.report.attempts + 1,
            error=problem,
            tried_ref=assignment.last.head,
        )
        better = await ask_or_warn(context, REFINE, call, f"{subtask_id} could not be described better")
        if better and better.description_ref:
            assignment.description_ref, rewritten = better.description_ref, better.preview
        elif refined_only:
            return False
    if step is NextTry.FALLBACK_ROLE and fallback is not None:
        assignment.fall_back(fallback)
    context.state.trace.note(
        "subtask_retried",
        subtask_id,
        error=problem.type,
        message=cut(problem.message, limits.SENTENCE_BYTES),
        role=assignment.role.name,
        description=rewritten,
        **assignment.last.refs,
    )
    pause = back_off(assignment.failures) - (workflow.now() - failed_at)  # describing it better took a part of it
    if pause > timedelta():
        await workflow.sleep(pause, summary=f"{subtask_id}: the next attempt")
    return True
