"""The assignment of a subtask to a role, over all its attempts."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef
    from activities.prompts.agent_prompts import FINISH_TAKEN
    from activities.questions.judgement import REFINE, RefineInput
    from temporal_supervisor.supervision.agent.better_finding import better
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import (
        FATAL,
        ErrorKind,
        SupervisionError,
        run_kind,
    )
    from temporal_supervisor.supervision.base.text import one_line
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.team import RoleCard
    from temporal_supervisor.supervision.planning.backups import too_far_behind, too_slow
    from temporal_supervisor.supervision.run.attempt_rules import (
        DECLINED,
        OF_THE_REQUEST,
        back_off,
        child_id,
        is_retried,
        is_tried_again,
    )

    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.subtasks.asked_people import finding_by, help_after
    from workflows.subtasks.attempt import Work, run_agents


@dataclass(eq=False)
class Assignment(Work):
    """The work on a subtask over all its attempts.

    It `is_admitted` by the role's breaker while its attempt runs, or is about to. `declined` counts
    refusals and `CannotDo` among the failures. `last` is the result of the attempt that ended last,
    `skipped` why a person ended it. The attempt under way `was_refined` if its description was
    rewritten. In a round of review it `keeps_better`: the finding that was sent back stands unless
    what comes has as much that is supported.
    """

    is_admitted: bool = False
    failures: int = 0
    declined: int = 0
    fell_back: bool = False
    last: WorkerAgentResult = field(default_factory=WorkerAgentResult)
    skipped: Problem | None = None
    was_refined: bool = False
    keeps_better: bool = False

    @property
    def so_far(self) -> Finding | None:
        """The latest finding of a worker agent that did not succeed."""
        partial = (each for each in reversed(self.results) if each.finding and not each.succeeded)
        latest = next(partial, None)
        return latest.finding if latest is not None else None

    @property
    def unused_fallback(self) -> RoleCard | None:
        """The role's fallback role, if there is one and the subtask is not there already."""
        return None if self.fell_back else self.context.plan.team.find(self.role.fallback)

    async def run(self) -> None:
        """Runs it to its end, or back to the board if no breaker admits its next attempt.

        Raises SupervisionError if the provider refuses all work. A cancellation ends the subtask
        and is not raised.
        """
        state, subtask_id = self.context.state, self.subtask_id
        try:
            await self._divert()
            while (problem := self._take(await self._attempt())) is not None:
                if not await self._prepare_retry(problem) and not await self._helped(problem):
                    return
                if not self.take_role():
                    state.board.put_back(subtask_id)
                    state.trace.note("subtask_held", subtask_id, role=self.role.name)
                    return
        except (asyncio.CancelledError, SupervisionError) as error:
            # The dispatch cancels this at any await here or below; attempts themselves return what
            # they have.
            self.stop()
            if isinstance(error, SupervisionError):
                raise
        finally:
            self.context.slots.free(self.slot)  # if no attempt took it up

    async def _attempt(self) -> WorkerAgentResult:
        """Returns the result of the next attempt, by worker agents or by a person."""
        state, subtask_id, role = self.context.state, self.subtask_id, self.role
        subtask, report = state.board.subtask(subtask_id), state.board.start(subtask_id, role.name)
        count = 1 if role.team or role.person else subtask.candidates
        own_id = child_id(workflow.info().workflow_id, subtask_id, report.attempts, int(count > 1))
        state.board.note_workflow(subtask_id, own_id)
        why = one_line(subtask.reasoning, limits.SENTENCE_BYTES)
        state.trace.note(
            "subtask_started",
            subtask_id,
            attempt=report.attempts,
            role=role.name,
            reasoning=why,
            description=one_line(subtask.whole, limits.SENTENCE_BYTES),
        )
        self.context.show()
        if role.person is None:
            return await run_agents(self, count)
        self.context.slots.free(self.slot)
        try:
            return await finding_by(role.person, self)
        except CallFailed as failed:
            return WorkerAgentResult(problem=failed.problem)
        except (
            asyncio.CancelledError,
            SupervisionError,
        ):  # the run was stopped, or its time is over
            return WorkerAgentResult(stopped=True)

    def take_role(self) -> bool:
        """Takes permission and slot for an attempt, by the fallback role if the own one rests.

        Returns False if there are none: the subtask has to wait.
        """
        state, fallback = self.context.state, self.unused_fallback
        if state.slots.full:
            return False
        if not state.waits.breaker(self.role.name).admits():
            if fallback is None or not state.waits.breaker(fallback.name).admits():
                return False
            self._fall_back(fallback)
        self.slot = state.slots.take(self.subtask_id, self._places())
        self.is_admitted = True
        state.waits.breaker(self.role.name).admit(self)
        return True

    def _places(self) -> int:
        """Returns the number of slots for the next attempt: a nested run keeps all to its end."""
        state = self.context.state
        if self.role.team is None:
            return 1
        return state.slots.share(1 + state.board.ready_beside(self.subtask_id))

    def next_probe_at(self) -> datetime | None:
        """Returns when the first breaker that keeps the subtask waiting admits an attempt.

        None if no time is set.
        """
        roles = [role for role in (self.role, self.unused_fallback) if role is not None]
        times = [self.context.state.waits.breaker(role.name).retry_at for role in roles]
        return min((time for time in times if time is not None), default=None)

    def _count_outcome(self, succeeded: bool | None) -> None:
        """Counts the outcome of an attempt for or against its role; None says nothing about it."""
        if self.is_admitted:
            self.context.state.waits.breaker(self.role.name).settle(self, succeeded)
            self.is_admitted = False

    def _fall_back(self, fallback: RoleCard) -> None:
        """Gives the subtask to the fallback role, once, which begins a conversation of its own."""
        self.role = fallback
        self.resume_from = None
        self.fell_back = True

    async def _divert(self) -> None:
        """Gives the subtask to the backup of a role that is behind or slow, if it may work.

        Only before its first attempt: later ones go on where the earlier ones were.
        """
        role, context, state = self.role, self.context, self.context.state
        backup = context.plan.team.find(role.backup)
        if backup is None or self.failures or self.resume_from is not None:
            return
        why = too_slow(role, state.board.reports())
        if not why and role.pool is not None:
            why = too_far_behind(
                role, await activity_calls.pool_backlog(context.terms.run, role.pool)
            )
        # Asked only now: another subtask may have taken the backup's probe during the look.
        if why and state.waits.breaker(backup.name).admits():
            self._count_outcome(None)
            self.role, self.is_admitted = backup, True
            state.waits.breaker(backup.name).admit(self)
            state.trace.note("subtask_diverted", self.subtask_id, role=backup.name, why=why)

    def reopened(self, feedback: str, *, warm: bool, reviewed: bool = False) -> "Assignment":
        """Returns the assignment of the ended subtask to the same role again, with feedback.

        `warm`: in the conversation that gave the finding, if that can be continued. `reviewed`: the
        feedback is a review's, so the better finding is kept, and a conversation that repeated
        itself begins anew.
        """
        last, resume_from = self.last, None
        finding = self.report.finding if self.report.state == "completed" else None
        single = self.context.state.board.subtask(self.subtask_id).candidates == 1
        if (
            warm
            and single
            and finding is not None
            and last.finding == finding
            and last.head is not None
        ):
            taken = (
                [ToolResultRef(call_id=last.finish_call_id, text=FINISH_TAKEN)]
                if last.finish_call_id
                else []
            )
            resume_from = LoopProgress(
                head=last.head, results=taken, feedback_due=True, heard=last.heard
            )
            if reviewed and last.repeats:  # what it was told before did not change its words
                resume_from = LoopProgress(anew_from=last.head)
        return Assignment(
            self.context,
            self.subtask_id,
            self.role,
            feedback=feedback,
            previous=finding,
            resume_from=resume_from,
            keeps_better=reviewed,
            last=last,
            results=[] if finding else self.results,
            effects=self.effects,
            was_denied=self.was_denied,
        )

    def _take(self, result: WorkerAgentResult) -> Problem | None:
        """Ends the subtask with the result of an attempt, or returns a problem to retry.

        Raises SupervisionError if other subtasks would fail alike and the run has no finding to
        lose.
        """
        problem = result.problem
        self.last = result
        self.resume_from = None
        if self.was_refined:
            self.was_refined = False
            self._note_refined(result)
        if result.succeeded:
            self._succeed(result)
        elif (
            problem is None or problem.type is ErrorKind.CANCELLED
        ):  # by a person, who wants no other attempt
            self.stop(problem)
        elif not is_retried(problem.type):
            self.fail(problem)
        else:
            has_declined = problem.type in DECLINED
            is_of_the_subtask = has_declined or problem.type in OF_THE_REQUEST
            says_nothing = is_of_the_subtask or self.role.person is not None
            self._count_outcome(None if says_nothing else False)
            self.failures += 1
            self.declined += has_declined
            return problem
        return None

    def _note_refined(self, result: WorkerAgentResult) -> None:
        """Notes in the trace the effect of a rewritten description."""
        if result.succeeded:
            brought = "a finding"
        elif result.problem is not None:
            brought = f"a failure: {result.problem.type}"
        else:
            brought = "nothing"
        self.context.state.trace.note("refine_brought", self.subtask_id, brought=brought)

    async def _prepare_retry(self, problem: Problem) -> bool:
        """Readies the next attempt: by the same role, better described, or by the fallback role.

        Returns False to give up.
        """
        context, subtask_id = self.context, self.subtask_id
        # After a person's no another role would only ask for the same in other words.
        fallback = None if self.was_denied else self.unused_fallback
        if context.terms.is_bare:
            return False
        again = is_tried_again(problem.type, self.failures, self.declined)
        # Who has not answered is not asked again, and a team needs subtasks for its own plan.
        has_room = self.role.team is None or context.subtasks_for(subtask_id) > 0
        same_role = again and self.role.person is None and has_room
        if not same_role and fallback is None:
            return False

        failed_at = workflow.now()
        rewritten = ""
        # The description itself is at fault: with the same words any role would fail again.
        needs_other_words = problem.type in DECLINED and self.description_ref is None
        if same_role or needs_other_words:
            # While this waits the breaker may open or close: its permission is asked for after it.
            rewritten = await self._refined(problem)
            if needs_other_words and not self.was_refined:
                # Another role has other tools and instructions: it may do better with them.
                same_role = False
            if not same_role and fallback is None:
                return False

        if fallback is not None and not same_role:
            self._fall_back(fallback)
        context.state.trace.note(
            "subtask_retried",
            subtask_id,
            error=problem.type,
            message=problem.message,
            role=self.role.name,
            description=rewritten,
            **self.last.refs,
        )
        described_for = workflow.now() - failed_at  # a part of the pause
        pause = back_off(self.failures) - described_for
        if pause > timedelta():
            await workflow.sleep(pause, summary=f"{subtask_id}: the next attempt")
        return True

    async def _refined(self, problem: Problem) -> str:
        """Has the subtask described better after a failure. Returns a preview, empty if it is not.

        The attempt then `was_refined`.
        """
        context, subtask_id = self.context, self.subtask_id
        if context.model.leaves_out("refine"):
            return ""

        call = RefineInput(
            **{**context.model.call_fields, "plan_ref": context.plan.described_in[subtask_id]},
            team_ref=context.plan.team_ref,
            subtask_id=subtask_id,
            description_ref=self.description_ref,
            role=self.role.name,
            attempt=self.report.attempts + 1,
            error=problem,
            tried_ref=self.last.head,
        )
        lost = f"{subtask_id} could not be described better"
        better = await context.model.ask_or_warn(REFINE, call, lost)
        if better is None or not better.description_ref:
            return ""

        self.description_ref = better.description_ref
        self.was_refined = True
        return better.preview

    async def _helped(self, problem: Problem) -> bool:
        """True if a person has a subtask that failed for good tried again; else it has ended."""
        context = self.context
        is_required = context.state.plan.importance.get(self.subtask_id) == "required"
        is_asked_about = context.state.request.on_subtask_failure == "ask" and is_required
        if not is_asked_about or self.previous is not None:
            self.fail(problem)
            return False
        context.slots.free(self.slot)
        try:
            decision = await help_after(problem, self, self.so_far)
        except SupervisionError:  # the run's time is over
            self.stop()
            return False
        if decision is None:
            self.fail(problem)
            return False
        if decision.choice == "retry":
            self.failures = self.declined = 0
            self.fell_back, self.was_denied = False, False
            self.feedback = decision.text or None
            return True
        try:
            finding = await context.waiting.stored_words(decision)
        except CallFailed as error:
            self.fail(error.problem)
            return False
        self._succeed(WorkerAgentResult(finding=finding))
        return False

    def _is_worse(self, finding: Finding) -> bool:
        """True if a review sent back a finding that has more that is supported."""
        if self.previous is None or not self.keeps_better:
            return False
        return better(self.previous, finding) is self.previous

    def _succeed(self, result: WorkerAgentResult) -> None:
        """Ends a subtask with a finding that counts for its role."""
        assert result.finding is not None
        state, subtask_id = self.context.state, self.subtask_id
        self._count_outcome(True)
        if self._is_worse(result.finding):
            state.board.keep(subtask_id)
            state.open_points.open(
                subtask_id, f"what came back had less that is supported: {self.feedback}"
            )
            state.trace.note("finding_kept", subtask_id, which="earlier")
            return
        state.board.complete(subtask_id, result.finding)
        state.open_points.close(subtask_id)
        state.trace.note("subtask_completed", subtask_id, turns=self.report.turns, **result.refs)

    def fail(self, problem: Problem) -> None:
        """Ends a subtask that failed for good.

        One in review keeps its finding, and the point stays open. Raises SupervisionError if other
        subtasks would fail alike and the run has no finding to lose.
        """
        self._count_outcome(None)
        state, subtask_id = self.context.state, self.subtask_id
        if self.previous is not None:
            state.board.keep(subtask_id)
            state.open_points.open(
                subtask_id,
                f"it could not be fixed ({problem.type}): {self.feedback or problem.message}",
            )
            return
        state.board.end(subtask_id, "failed", problem, self.so_far)
        state.trace.note(
            "subtask_failed",
            subtask_id,
            error=problem.type,
            message=problem.message,
            attempts=state.board[subtask_id].attempts,
            **self.last.refs,
        )
        if problem.type in FATAL and not state.has_finding:
            raise SupervisionError(run_kind(problem.type), problem.message)

    def stop(self, problem: Problem | None = None) -> None:
        """Ends a subtask that was stopped, by the run if there is no `problem`.

        What it had is a partial finding. One that has ended by itself stays as it is.
        """
        self._count_outcome(None)
        state, subtask_id = self.context.state, self.subtask_id
        if self.report.state not in ("waiting", "running"):
            return
        if self.skipped is not None:
            state.board.skip(subtask_id, self.skipped, self.so_far)
            return
        if self.previous is not None:
            state.board.keep(subtask_id)
            return
        state.board.end(subtask_id, "cancelled", problem, self.so_far)
        state.trace.note("subtask_cancelled", subtask_id, turns=self.last.turns, **self.last.refs)
