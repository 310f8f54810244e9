"""A subtask over its attempts: better described after each failure, by the fallback role in the end."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.base.errors import FATAL, ErrorKind, SupervisionError, run_kind
    from supervision.base.text import cut
    from supervision.contract.result import Problem
    from supervision.results.success_rule import importance
    from supervision.run.attempt_rules import DECLINED, NextTry, back_off, counts_against_role, is_retried, next_try
    from workflows.calls.judge_calls import refine
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.subtasks.asking_people import ask_for_help, kept
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
        assignment.count_outcome(None)
        _stop(assignment)
    except SupervisionError:
        _stop(assignment)
        raise
    finally:
        if assignment.slot is not None:  # no attempt took it up
            assignment.context.free(assignment.slot)


def give_up(assignment: Assignment) -> None:
    """Ends a subtask that the run does not wait for any longer, with what it has of it; one that has ended stays."""
    if assignment.has_ended:
        return
    if assignment.best is not None:
        _complete(assignment, assignment.best)
    else:
        _stop(assignment)


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
        if not await _prepare_retry(assignment, problem, result.model) and not await _helped(assignment, problem):
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
            assignment.count_outcome(True)
            _complete(assignment, result)
        else:
            assignment.count_outcome(None)
            _stop(assignment)
        return None
    if problem.type is ErrorKind.CANCELLED:  # by a person, who wants no other attempt
        assignment.count_outcome(None)
        _stop(assignment, problem)
        return None
    if not is_retried(problem.type):
        assignment.count_outcome(None)
        if problem.type in FATAL and assignment.previous is None:
            await assignment.context.wait_for_first_finding(assignment.subtask_id)
        _fail(assignment, problem)
        return None
    return problem


async def _helped(assignment: Assignment, problem: Problem) -> bool:
    """True if a person has a subtask that failed for good tried again; else it has ended."""
    context, subtask_id = assignment.context, assignment.subtask_id
    is_required = importance(context.state.plan).get(subtask_id) == "required"
    if context.state.request.on_subtask_failure == "ask" and is_required and assignment.previous is None:
        if assignment.slot is not None:
            context.free(assignment.slot)
        decision = await ask_for_help(assignment, problem)
        if decision is not None and decision.choice == "retry":
            assignment.failures = assignment.declined = 0
            assignment.fell_back, assignment.feedback = False, decision.text or None
            return True
        if decision is not None:
            _complete(assignment, WorkerAgentResult(finding=await kept(context, decision)))
            return False
    _fail(assignment, problem)
    return False


def _goes_to_another_model(assignment: Assignment, problem: Problem, model: str) -> bool:
    """True if a model refused the subtask and its role has one that did not; it is remembered."""
    if problem.type is not ErrorKind.REFUSED:
        return False
    assignment.refused_by.add(model)
    return not assignment.refused_by.issuperset(assignment.role.models)


async def _prepare_retry(assignment: Assignment, problem: Problem, model: str) -> bool:
    """Readies the next attempt: same role better described, or the fallback role. Returns False to give up.

    A subtask that `model` refused goes to another one, if the role has one.
    """
    context, subtask_id, fallback = assignment.context, assignment.subtask_id, assignment.unused_fallback
    step = next_try(problem.type, assignment.failures, assignment.declined, has_fallback=fallback is not None)
    if assignment.role.person is not None and step is NextTry.SAME_ROLE:  # who has not answered is not asked again
        step = NextTry.FALLBACK_ROLE if fallback is not None else NextTry.GIVE_UP
    other_model = _goes_to_another_model(assignment, problem, model)
    if other_model and assignment.failures < limits.SUBTASK_ATTEMPTS:
        step = NextTry.SAME_ROLE
    if step is NextTry.GIVE_UP:
        return False
    failed_at, rewritten = workflow.now(), ""
    refined_only = problem.type in DECLINED and assignment.description_ref is None and not other_model
    if step is NextTry.SAME_ROLE or refined_only:
        # While this waits the breaker may open or close: its permission is asked for after it.
        tried = assignment.last.head if assignment.last else None
        better = await refine(context, subtask_id, assignment.role.name, assignment.description_ref, problem, tried)
        if better is None and refined_only:
            return False
        if better is not None:
            assignment.description_ref, rewritten = better.description_ref, better.preview
    if step is NextTry.FALLBACK_ROLE and fallback is not None:
        assignment.fall_back(fallback)
    context.state.trace.note(
        "subtask_retried",
        subtask_id,
        error=problem.type,
        message=cut(problem.message, limits.SENTENCE_BYTES),
        role=assignment.role.name,
        description=rewritten,
        **_story(assignment.last),
    )
    pause = back_off(assignment.failures) - (workflow.now() - failed_at)  # describing it better took a part of it
    if pause > timedelta():
        await workflow.sleep(pause, summary=f"{subtask_id}: the next attempt")
    return True


def _complete(assignment: Assignment, result: WorkerAgentResult) -> None:
    assert result.finding is not None
    state, subtask_id = assignment.context.state, assignment.subtask_id
    before = state.board.text_ref(subtask_id)
    state.board.complete(subtask_id, result.finding)
    if result.finding.text_ref != before:
        state.board.mark_stale([subtask_id])
    state.close_point(subtask_id)
    state.trace.note("subtask_completed", subtask_id, turns=assignment.report.turns, **_story(result))


def _fail(assignment: Assignment, problem: Problem) -> None:
    """Ends a subtask that failed for good; one in review keeps its finding, and the point stays open.

    Raises SupervisionError if other subtasks would fail alike and the run has no finding to lose.
    """
    state, subtask_id = assignment.context.state, assignment.subtask_id
    if assignment.previous is not None:
        state.board.keep(subtask_id)
        state.open_point(subtask_id, f"it could not be fixed ({problem.type}): {assignment.feedback}")
        return
    state.board.fail(subtask_id, problem, assignment.so_far)
    state.trace.note(
        "subtask_failed",
        subtask_id,
        error=problem.type,
        message=cut(problem.message, limits.SENTENCE_BYTES),
        attempts=state.board[subtask_id].attempts,
        **_story(assignment.last),
    )
    if problem.type in FATAL and not state.has_finding:
        raise SupervisionError(run_kind(problem.type), problem.message)


def _stop(assignment: Assignment, problem: Problem | None = None) -> None:
    """Ends a subtask that was stopped; what it had is kept as a partial finding. Without a `problem` the run did it."""
    state, subtask_id = assignment.context.state, assignment.subtask_id
    if assignment.has_ended:  # the run did not wait for it any longer
        return
    if assignment.skipped is not None:
        state.board.skip(subtask_id, assignment.skipped, assignment.so_far)
        return
    if assignment.previous is not None:
        state.board.keep(subtask_id)
        return
    state.board.cancel(subtask_id, problem, assignment.so_far)
    last = assignment.last
    state.trace.note("subtask_cancelled", subtask_id, turns=last.turns if last else 0, **_story(last))


def _story(result: WorkerAgentResult | None) -> dict[str, str]:
    """Returns where an attempt can be read: its conversation, or the trace of a nested run."""
    nested = result.nested.trace_ref if result and result.nested else None
    refs = {"head": result.head if result else None, "trace_ref": nested}
    return {name: ref for name, ref in refs.items() if ref}
