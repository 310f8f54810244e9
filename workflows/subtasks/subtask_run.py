"""The attempts at a subtask, one after another, until it has ended."""

import asyncio
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.questions.judgement import REFINE, RefineInput
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.planning.backups import too_far_behind, too_slow
    from temporal_supervisor.supervision.run.attempt_rules import (
        DECLINED,
        back_off,
        is_retried,
        is_tried_again,
    )

    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.subtasks.asked_people import help_after
    from workflows.subtasks.assignment import Assignment
    from workflows.subtasks.attempt import run_attempt


class SubtaskRun:
    """The attempts of an assignment, starting with the first or with one that was put back."""

    def __init__(self, work: Assignment) -> None:
        self._work = work
        self._context = work.context
        self._state = work.context.state
        self._subtask_id = work.subtask_id

    async def run(self) -> None:
        """Runs the subtask to its end, or puts it back if no breaker admits the next attempt.

        Raises SupervisionError if the provider refuses all work. A cancellation ends the subtask
        and is not raised.
        """
        work, state = self._work, self._state
        try:
            await self._divert_if_slow()
            while True:
                problem = self._settle(await run_attempt(work))
                if problem is None:
                    return
                if not await self._prepare_retry(problem) and not await self._ask_for_help(problem):
                    return
                # Asked for only now: during the pause others may have taken the role's probe.
                if not work.take_role():
                    state.board.put_back(self._subtask_id)
                    state.trace.note("subtask_held", self._subtask_id, role=work.role.name)
                    return
        except (asyncio.CancelledError, SupervisionError) as error:
            # The dispatch cancels this at any await here or below; attempts themselves return what
            # they have.
            work.stop()
            if isinstance(error, SupervisionError):
                raise
        finally:
            self._context.slots.release(work.slot)  # if no attempt took it up

    async def _divert_if_slow(self) -> None:
        """Assigns the subtask to the backup of a role that is slow or far behind.

        Only before its first attempt: later attempts stay with the role of the first.
        """
        work, state = self._work, self._state
        role = work.role
        backup = self._context.plan.team.find(role.backup)
        if backup is None or work.failures or work.resume_from is not None:
            return

        why = too_slow(role, state.board.reports())
        if not why and role.pool is not None:
            backlog = await activity_calls.pool_backlog(self._context.terms.run, role.pool)
            why = too_far_behind(role, backlog)
        # Asked only now: another subtask may have taken the backup's probe during the look.
        if why and state.waits.breaker(backup.name).admits():
            work.divert_to(backup)
            state.trace.note("subtask_diverted", self._subtask_id, role=backup.name, why=why)

    def _settle(self, result: WorkerAgentResult) -> Problem | None:
        """Ends the subtask with the result of an attempt, or returns a problem to retry.

        Raises SupervisionError if other subtasks would fail for the same reason and the run has no
        finding to lose.
        """
        work, problem = self._work, result.problem
        if work.was_refined:
            self._note_refined(result)
        work.end_attempt(result)

        if result.succeeded:
            work.succeed(result)
            return None
        if problem is None or problem.type is ErrorKind.CANCELLED:
            work.stop(problem)  # by a person, who wants no other attempt
            return None
        if not is_retried(problem.type):
            work.fail(problem)
            return None

        work.count_failure(problem)
        return problem

    def _note_refined(self, result: WorkerAgentResult) -> None:
        """Notes in the trace the effect of a rewritten description."""
        if result.succeeded:
            brought = "a finding"
        elif result.problem is not None:
            brought = f"a failure: {result.problem.type}"
        else:
            brought = "nothing"
        self._state.trace.note("refine_brought", self._subtask_id, brought=brought)

    async def _prepare_retry(self, problem: Problem) -> bool:
        """Prepares the next attempt: by the same role, better described, or by the fallback role.

        Returns False if there is no next attempt.
        """
        context, work = self._context, self._work
        if context.terms.is_bare:
            return False

        # After a person's no another role would only ask for the same in other words.
        fallback = None if work.was_denied else work.unused_fallback
        keeps_role = self._may_try_again(problem)
        if not keeps_role and fallback is None:
            return False

        failed_at = workflow.now()
        rewritten = ""
        # The description itself is at fault: with the same words any role would fail again.
        needs_other_words = problem.type in DECLINED and work.description_ref is None
        if keeps_role or needs_other_words:
            # While this waits the breaker may open or close: its permission is asked for after it.
            rewritten = await self._refine_description(problem)
            if needs_other_words and not work.was_refined:
                # Another role has other tools and instructions: it may do better with the old ones.
                keeps_role = False
        if not keeps_role:
            if fallback is None:
                return False
            work.fall_back(fallback)

        self._state.trace.note(
            "subtask_retried",
            self._subtask_id,
            error=problem.type,
            message=problem.message,
            role=work.role.name,
            description=rewritten,
            **work.last.refs,
        )
        described_for = workflow.now() - failed_at  # a part of the pause
        pause = back_off(work.failures) - described_for
        if pause > timedelta():
            await workflow.sleep(pause, summary=f"{self._subtask_id}: the next attempt")
        return True

    def _may_try_again(self, problem: Problem) -> bool:
        """True if the same role may make another attempt."""
        work = self._work
        if not is_tried_again(problem.type, work.failures, work.declined):
            return False
        if work.role.person is not None:
            return False  # who has not answered is not asked again
        if work.role.team is None:
            return True
        # A team needs subtasks for its own plan.
        return self._context.subtasks_for(self._subtask_id) > 0

    async def _refine_description(self, problem: Problem) -> str:
        """Has the description rewritten after a failure, and sets `was_refined` on success.

        Returns a preview of the new description; empty if there is none.
        """
        context, work = self._context, self._work
        if context.model.leaves_out("refine"):
            return ""

        call = RefineInput(
            **{**context.model.call_fields, "plan_ref": context.plan.described_in[work.subtask_id]},
            team_ref=context.plan.team_ref,
            subtask_id=work.subtask_id,
            description_ref=work.description_ref,
            role=work.role.name,
            attempt=work.report.attempts + 1,
            error=problem,
            tried_ref=work.last.head,
        )
        lost = f"{work.subtask_id} could not be described better"
        better = await context.model.reply_or_none(REFINE, call, lost)
        if better is None or not better.description_ref:
            return ""

        work.describe_anew(better.description_ref)
        return better.preview

    async def _ask_for_help(self, problem: Problem) -> bool:
        """Asks a person about a subtask that failed for good, if the request wants that.

        Returns True if the person wants it tried again; otherwise the subtask has ended.
        """
        work, state = self._work, self._state
        is_required = state.plan.importance.get(self._subtask_id) == "required"
        is_asked_about = state.request.on_subtask_failure == "ask" and is_required
        if not is_asked_about or work.previous is not None:
            work.fail(problem)
            return False

        # Others may work in its slot while a person thinks.
        self._context.slots.release(work.slot)
        try:
            decision = await help_after(problem, work, work.so_far)
        except SupervisionError:  # the run's time is over
            work.stop()
            return False
        if decision is None:
            work.fail(problem)
            return False
        if decision.choice == "retry":
            work.begin_afresh(decision.text)
            return True

        try:
            finding = await self._context.waiting.stored_words(decision)
        except CallFailed as error:
            work.fail(error.problem)
            return False
        work.succeed(WorkerAgentResult(finding=finding))
        return False
