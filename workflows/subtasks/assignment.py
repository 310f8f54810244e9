"""The assignment of a subtask to a role: its breaker's permission and slot, its next attempt, how it ends."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import WordsInput
    from activities.contracts.turn_contracts import ToolCallRef, ToolResultRef
    from activities.prompts.agent_prompts import FINISH_TAKEN, denied, unanswered
    from activities.questions.judgement import REFINE, RefineInput
    from activities.run.run_activities import RunActivities
    from supervision.base import limits
    from supervision.base.errors import FATAL, ErrorKind, SupervisionError, run_kind
    from supervision.base.text import cut, one_line
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem, SubtaskReport
    from supervision.contract.status import Wait
    from supervision.contract.team import Person, RoleCard
    from supervision.run.attempt_rules import DECLINED, back_off, is_retried, is_tried_again
    from supervision.run.decisions import Decision
    from supervision.run.slots import Slot
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed
    from workflows.calls.asking import ask_or_warn
    from workflows.children.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.run_context import RunContext


@dataclass(eq=False)
class Assignment:
    """A subtask in the hands of a role, over all its attempts.

    It `is_admitted` by the role's breaker while its attempt runs, or is about to, in the `slot`.
    `declined` counts refusals and `CannotDo` among the failures.
    In a round of review `previous` is the finding to improve by `feedback`, and `resume_from` where its conversation
    stands, for the role and the attempt that continue it. `results` are of all worker agents so far, candidates
    included; `last` is that of the attempt that ended last. `skipped` says why a person ended it.
    """

    context: RunContext
    subtask_id: str
    role: RoleCard
    is_admitted: bool = False
    slot: Slot | None = None
    failures: int = 0
    declined: int = 0
    fell_back: bool = False
    description_ref: str | None = None
    feedback: str | None = None
    previous: Finding | None = None
    resume_from: LoopProgress | None = None
    last: WorkerAgentResult = field(default_factory=WorkerAgentResult)
    results: list[WorkerAgentResult] = field(default_factory=list)
    skipped: Problem | None = None

    @property
    def report(self) -> SubtaskReport:
        """The subtask as the board has it."""
        return self.context.state.board[self.subtask_id]

    @property
    def so_far(self) -> Finding | None:
        """The latest finding of a worker agent that did not succeed."""
        return next((r.finding for r in reversed(self.results) if r.finding and not r.succeeded), None)

    @property
    def unused_fallback(self) -> RoleCard | None:
        """The role's fallback role, if there is one and the subtask is not there already."""
        return None if self.fell_back else self.context.team.find(self.role.fallback)

    def take_role(self) -> bool:
        """Takes permission and slot for an attempt, of the fallback role if the own one's breaker gives no permission.

        Returns False if there are none: the subtask has to wait.
        """
        state, fallback = self.context.state, self.unused_fallback
        if state.slots.full:
            return False
        if not state.waits.breaker(self.role.name).admits():
            if fallback is None or not state.waits.breaker(fallback.name).admits():
                return False
            self.fall_back(fallback)
        self.slot, self.is_admitted = state.slots.take(), True
        state.waits.breaker(self.role.name).admit(self)
        return True

    def next_probe_at(self) -> datetime | None:
        """Returns when the first breaker that keeps the subtask waiting admits an attempt; None if no time is set."""
        roles = [role for role in (self.role, self.unused_fallback) if role is not None]
        times = [self.context.state.waits.breaker(role.name).retry_at for role in roles]
        return min((time for time in times if time is not None), default=None)

    def count_outcome(self, succeeded: bool | None) -> None:
        """Counts the outcome of an attempt for or against its role; None says nothing about it."""
        if self.is_admitted:
            self.context.state.waits.breaker(self.role.name).settle(self, succeeded)
            self.is_admitted = False

    def fall_back(self, fallback: RoleCard) -> None:
        """Gives the subtask to the fallback role, once, which begins a conversation of its own."""
        self.role, self.resume_from, self.fell_back = fallback, None, True

    def reopened(self, feedback: str, *, warm: bool) -> "Assignment":
        """Returns the assignment of the ended subtask to the same role again, with feedback on its finding.

        `warm`: in the conversation that gave the finding, if that can be continued.
        """
        last, resume_from = self.last, None
        finding = self.report.finding if self.report.state == "completed" else None
        single = self.context.state.board.subtask(self.subtask_id).candidates == 1
        if warm and single and finding is not None and last.finding == finding and last.head is not None:
            taken = [ToolResultRef(call_id=last.finish_call_id, text=FINISH_TAKEN)] if last.finish_call_id else []
            resume_from = LoopProgress(head=last.head, results=taken, feedback_due=True, heard=last.heard)
        return Assignment(
            self.context,
            self.subtask_id,
            self.role,
            feedback=feedback,
            previous=finding,
            resume_from=resume_from,
            last=last,
            results=[] if finding else self.results,
        )

    def take(self, result: WorkerAgentResult) -> Problem | None:
        """Ends the subtask with the result of an attempt, or returns the problem that another one may mend.

        Raises SupervisionError if other subtasks would fail alike and the run has no finding to lose.
        """
        problem, self.last, self.resume_from = result.problem, result, None
        if result.succeeded:
            self.succeed(result)
        elif problem is None or problem.type is ErrorKind.CANCELLED:  # by a person, who wants no other attempt
            self.stop(problem)
        elif not is_retried(problem.type):
            self.fail(problem)
        else:
            self.count_outcome(None if problem.type in DECLINED or self.role.person is not None else False)
            self.failures += 1
            self.declined += problem.type in DECLINED
            return problem
        return None

    async def prepare_retry(self, problem: Problem) -> bool:
        """Readies the next attempt: same role better described, or the fallback role. Returns False to give up."""
        context, subtask_id, fallback = self.context, self.subtask_id, self.unused_fallback
        again = is_tried_again(problem.type, self.failures, self.declined)
        same_role = again and self.role.person is None  # who has not answered is not asked again
        if not same_role and fallback is None:
            return False
        failed_at, rewritten = workflow.now(), ""
        refined_only = problem.type in DECLINED and self.description_ref is None
        if same_role or refined_only:
            # While this waits the breaker may open or close: its permission is asked for after it.
            call = RefineInput(
                **{**context.call_fields, "plan_ref": context.described_in[subtask_id]},
                team_ref=context.team_ref,
                subtask_id=subtask_id,
                description_ref=self.description_ref,
                role=self.role.name,
                attempt=self.report.attempts + 1,
                error=problem,
                tried_ref=self.last.head,
            )
            better = await ask_or_warn(context, REFINE, call, f"{subtask_id} could not be described better")
            if better and better.description_ref:
                self.description_ref, rewritten = better.description_ref, better.preview
            elif refined_only:
                return False
        if fallback is not None and not same_role:
            self.fall_back(fallback)
        context.state.trace.note(
            "subtask_retried",
            subtask_id,
            error=problem.type,
            message=problem.message,
            role=self.role.name,
            description=rewritten,
            **self.last.refs,
        )
        pause = back_off(self.failures) - (workflow.now() - failed_at)  # describing it better took a part of it
        if pause > timedelta():
            await workflow.sleep(pause, summary=f"{subtask_id}: the next attempt")
        return True

    async def ask_for_finding(self, person: Person) -> WorkerAgentResult:
        """Returns what a person hands in as the finding of a subtask."""
        context, report = self.context, self.report
        parts = [context.state.board.subtask(self.subtask_id).whole]
        if self.feedback:
            parts.append(f"A review of the finding so far says: {self.feedback}")
        for dependency in context.state.board.completed_for(self.subtask_id):
            if dependency.finding is not None:
                parts.append(f"{dependency.id} ({dependency.role}) found: {dependency.finding.summary}")
        decision = await self._ask(f"{report.role} ({person.who}): {parts[0]}", parts, person.expires)
        if decision is not None:
            return WorkerAgentResult(finding=await kept(context, decision))
        why = f"{person.who} gave no finding in time"
        return WorkerAgentResult(problem=Problem(type=ErrorKind.TIMEOUT, message=why))

    async def _ask(
        self, preview: str, parts: list[str], timeout: timedelta, choices: Sequence[str] = ()
    ) -> Decision | None:
        """Returns the finding that a person hands in for the subtask, or what else they decide, if in time."""
        wait = Wait(
            id=f"{self.subtask_id}/{self.report.attempts}",
            kind="finding",
            workflow_id=workflow.info().workflow_id,
            subtask_id=self.subtask_id,
            prompt_preview=one_line(preview, limits.PARAGRAPH_BYTES),
            choices=[*choices],
            since=workflow.now().isoformat(),
        )
        return await self.context.decision(wait, timeout, cut("\n\n".join(parts), limits.PAYLOAD_AIM_BYTES))

    async def helped(self, problem: Problem) -> bool:
        """True if a person has a subtask that failed for good tried again; else it has ended."""
        context, report = self.context, self.report
        is_required = context.state.plan.importance.get(self.subtask_id) == "required"
        if context.state.request.on_subtask_failure != "ask" or not is_required or self.previous is not None:
            self.fail(problem)
            return False
        if self.slot is not None:
            context.free(self.slot)
        failed = f"failed for good after {report.attempts} attempts ({problem.type}): {problem.message}"
        description = context.state.board.subtask(self.subtask_id).whole
        parts = [description, f"It {failed}", *([self.so_far.summary] if self.so_far else [])]
        timeout, choices = context.state.request.approval_timeout, ("reply", "retry", "skip")
        try:
            decision = await self._ask(f"{failed}: {description}", parts, timeout, choices)
        except SupervisionError:  # the run's time is over
            self.stop()
            return False
        if decision is None:
            self.fail(problem)
        elif decision.choice != "retry":
            try:
                self.succeed(WorkerAgentResult(finding=await kept(context, decision)))
            except CallFailed as error:
                self.fail(error.problem)
        else:
            self.failures = self.declined = 0
            self.fell_back, self.feedback = False, decision.text or None
            return True
        return False

    def succeed(self, result: WorkerAgentResult) -> None:
        """Ends a subtask with a finding that counts for its role."""
        assert result.finding is not None
        state, subtask_id = self.context.state, self.subtask_id
        self.count_outcome(True)
        state.board.complete(subtask_id, result.finding)
        state.close_point(subtask_id)
        state.trace.note("subtask_completed", subtask_id, turns=self.report.turns, **result.refs)

    def fail(self, problem: Problem) -> None:
        """Ends a subtask that failed for good; one in review keeps its finding, and the point stays open.

        Raises SupervisionError if other subtasks would fail alike and the run has no finding to lose.
        """
        self.count_outcome(None)
        state, subtask_id = self.context.state, self.subtask_id
        if self.previous is not None:
            state.board.keep(subtask_id)
            state.open_point(subtask_id, f"it could not be fixed ({problem.type}): {self.feedback or problem.message}")
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
        """Ends a subtask that was stopped, by the run if there is no `problem`; what it had is a partial finding.

        One that has ended by itself stays as it is.
        """
        self.count_outcome(None)
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


async def ask_about_calls(context: RunContext, place: str, progress: LoopProgress) -> LoopProgress:
    """Returns the progress of the worker agent at a place such as t3/1 once people have decided about all its calls.

    What they replied and denied are results; what they approved is to be run. Raises SupervisionError
    `DeadlineExceeded` if the run's time is over first.
    """
    asking = [_ask_about(context, f"{place}:{progress.turn}", call) for call in progress.pending]
    results, approved = [*progress.results], [*progress.approved]
    for outcome in await asyncio.gather(*asking, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, ToolResultRef):
            results.append(outcome)
        else:
            approved.append(outcome)
    return progress.model_copy(update={"pending": [], "results": results, "approved": approved})


async def _ask_about(context: RunContext, place: str, call: ToolCallRef) -> ToolCallRef | ToolResultRef:
    """Returns the call if it is to be run; else its result: a person's reply, or why there is none."""
    is_tool = call.waits_for == "tool"
    again = f".{len(call.replies)}" if call.waits_for == "reply" else ""
    wait = Wait(
        id=f"{place}.{call.index}{again}",
        kind="tool" if is_tool else "question",
        workflow_id=workflow.info().workflow_id,
        subtask_id=place.partition("/")[0],
        prompt_preview=f"{call.name} {call.preview}" if is_tool else (call.asks and call.asked) or call.preview,
        arguments_sha256=call.arguments_sha256 if is_tool else None,
        choices=["approve", "deny"] if is_tool else call.choices,
        content_ref=call.asked_ref,
        after=call.after,
        since=workflow.now().isoformat(),
    )
    decision = await context.decision(wait, context.state.request.approval_timeout, call.asked)
    if decision is None:
        return call.without_result(unanswered(not is_tool))
    if decision.choice == "approve":
        return call
    if decision.choice == "deny":
        return call.without_result(denied(decision.text))
    words = await kept(context, decision)
    if call.waits_for == "reply":
        return call.model_copy(update={"replies": [*call.replies, (call.asks, words.text_ref)]})
    return ToolResultRef(call_id=call.call_id, ref=words.text_ref, sources=words.sources)


async def kept(context: RunContext, decision: Decision) -> Finding:
    """Returns a person's words, stored, as a finding. Raises CallFailed."""
    source = f"person {decision.by}" if decision.by else "a person"
    words = WordsInput(run=context.run, text=decision.text, source=source)
    return await activity_calls.with_store(RunActivities.keep_words, limits.PUBLISH_TIMEOUT, "store a reply", words)
