"""The assignment of a subtask to a role, over all attempts: how they start and how it ends."""

from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef
    from activities.prompts.agent_prompts import FINISH_TAKEN
    from temporal_supervisor.supervision.agent.better_finding import better_finding
    from temporal_supervisor.supervision.base.errors import FATAL, SupervisionError, run_kind
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
    from temporal_supervisor.supervision.contract.team import RoleCard
    from temporal_supervisor.supervision.run.attempt_rules import DECLINED, OF_THE_REQUEST
    from temporal_supervisor.supervision.run.slots import Slot

    from workflows.children.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.subtasks.work_context import WorkContext


@dataclass(eq=False)
class Assignment:
    """A subtask assigned to a role, over all its attempts.

    The next attempt works in `slot`, and by the description at `description_ref` if that is set. In
    a round of review `previous` is the finding to improve by `feedback`, and `resume_from` the
    progress of its conversation, which the first attempt of the same role continues. With
    `keeps_better`, `previous` is replaced only by a finding that has at least as much support.

    `results` are the results of all worker agents so far, candidates included; `last` is the result
    of the latest attempt. `effects` are calls with side effects, which every further attempt is
    told of. `was_denied` is True if a person refused a call, and `skipped` is the reason why a
    person ended the subtask. `declined` counts the refusals and `CannotDo` among the `failures`.
    `was_refined` is True if the attempt under way has a rewritten description. `is_admitted` is
    True while the role's breaker counts an attempt.
    """

    context: WorkContext
    subtask_id: str
    role: RoleCard
    slot: Slot | None = None
    description_ref: str | None = None
    feedback: str | None = None
    previous: Finding | None = None
    resume_from: LoopProgress | None = None
    results: list[WorkerAgentResult] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)
    was_denied: bool = False
    is_admitted: bool = False
    failures: int = 0
    declined: int = 0
    fell_back: bool = False
    last: WorkerAgentResult = field(default_factory=WorkerAgentResult)
    skipped: Problem | None = None
    was_refined: bool = False
    keeps_better: bool = False

    @property
    def report(self) -> SubtaskReport:
        """The board's report on the subtask."""
        return self.context.state.board[self.subtask_id]

    @property
    def so_far(self) -> Finding | None:
        """The latest finding of a worker agent that did not succeed."""
        for result in reversed(self.results):
            if result.finding and not result.succeeded:
                return result.finding
        return None

    @property
    def unused_fallback(self) -> RoleCard | None:
        """The role's fallback role, unless there is none or the subtask is with it already."""
        return None if self.fell_back else self.context.plan.team.find(self.role.fallback)

    def take_role(self) -> bool:
        """Takes a breaker's permission and a slot for an attempt, with the fallback role if needed.

        Returns False if there are none: the subtask has to wait.
        """
        slots, breaker = self.context.state.slots, self.context.state.waits.breaker
        if slots.full:
            return False
        if not breaker(self.role.name).admits():
            fallback = self.unused_fallback
            if fallback is None or not breaker(fallback.name).admits():
                return False
            self.fall_back(fallback)

        self.slot = slots.occupy(self.subtask_id, self._slot_count())
        self.is_admitted = True
        breaker(self.role.name).admit(self)
        return True

    def _slot_count(self) -> int:
        """Returns the number of slots for the next attempt; a nested run keeps all to its end."""
        state = self.context.state
        if self.role.team is None:
            return 1
        return state.slots.share(1 + state.board.ready_beside(self.subtask_id))

    def next_probe_at(self) -> datetime | None:
        """Returns the time at which a breaker admits the next attempt; None if no time is set."""
        roles = [role for role in (self.role, self.unused_fallback) if role is not None]
        times = [self.context.state.waits.breaker(role.name).retry_at for role in roles]
        return min((time for time in times if time is not None), default=None)

    def count_outcome(self, succeeded: bool | None) -> None:
        """Counts the outcome of an attempt for or against its role; None counts as neither."""
        if self.is_admitted:
            self.context.state.waits.breaker(self.role.name).settle(self, succeeded)
            self.is_admitted = False

    def count_failure(self, problem: Problem) -> None:
        """Counts a failed attempt that may be followed by another one."""
        has_declined = problem.type in DECLINED
        is_of_the_subtask = has_declined or problem.type in OF_THE_REQUEST
        is_neutral = is_of_the_subtask or self.role.person is not None
        self.count_outcome(None if is_neutral else False)
        self.failures += 1
        self.declined += has_declined

    def add_result(self, result: WorkerAgentResult) -> None:
        """Adds the result of one agent's execution, with its side effects."""
        self.effects += result.effects
        self.results.append(result)

    def mark_denied(self) -> None:
        """Marks the subtask as one with a call that a person refused."""
        self.was_denied = True

    def mark_skipped(self, why: Problem) -> None:
        """Sets a person's reason for ending the subtask, which `stop` reports."""
        self.skipped = why

    def end_attempt(self, result: WorkerAgentResult) -> None:
        """Ends an attempt with its result. The next one begins a new conversation."""
        self.last = result
        self.resume_from = None
        self.was_refined = False

    def describe_anew(self, description_ref: str) -> None:
        """Gives the next attempt a rewritten description."""
        self.description_ref = description_ref
        self.was_refined = True

    def add_feedback(self, feedback: str) -> None:
        """Adds feedback for the next attempt to the earlier feedback."""
        self.feedback = "\n".join(filter(None, (self.feedback, feedback)))

    def fall_back(self, fallback: RoleCard) -> None:
        """Assigns the subtask to the fallback role, once. The role begins a new conversation."""
        self.role = fallback
        self.resume_from = None
        self.fell_back = True

    def divert_to(self, backup: RoleCard) -> None:
        """Assigns the subtask to the backup role, whose breaker admits it."""
        self.count_outcome(None)
        self.role = backup
        self.is_admitted = True
        self.context.state.waits.breaker(backup.name).admit(self)

    def begin_afresh(self, instruction: str) -> None:
        """Forgets earlier failures, because a person wants the subtask tried again."""
        self.failures = 0
        self.declined = 0
        self.fell_back = False
        self.was_denied = False
        self.feedback = instruction or None

    def reopened(self, feedback: str, *, warm: bool, reviewed: bool = False) -> "Assignment":
        """Returns an assignment of the ended subtask to its role, with feedback.

        With `warm` it continues the conversation behind the finding, if that is possible.
        `reviewed` is True for a review's feedback: then the better finding is kept, and a
        conversation that repeated itself is begun anew.
        """
        finding = self.report.finding if self.report.state == "completed" else None
        resume_from = None
        if warm and finding is not None:
            resume_from = self._conversation_of(finding, reviewed=reviewed)
        return Assignment(
            self.context,
            self.subtask_id,
            self.role,
            feedback=feedback,
            previous=finding,
            resume_from=resume_from,
            keeps_better=reviewed,
            last=self.last,
            results=[] if finding else self.results,
            effects=self.effects,
            was_denied=self.was_denied,
        )

    def _conversation_of(self, finding: Finding, *, reviewed: bool) -> LoopProgress | None:
        """Returns the progress that continues a finding's conversation; None if none does."""
        last = self.last
        is_single = self.context.state.board.subtask(self.subtask_id).candidates == 1
        if not is_single or last.finding != finding or last.head is None:
            return None
        if reviewed and last.repeats:
            # Its earlier feedback did not change its words.
            return LoopProgress(anew_from=last.head)

        taken = []
        if last.finish_call_id:
            taken.append(ToolResultRef(call_id=last.finish_call_id, text=FINISH_TAKEN))
        return LoopProgress(head=last.head, results=taken, feedback_due=True, heard=last.heard)

    def succeed(self, result: WorkerAgentResult) -> None:
        """Ends the subtask with a finding, which counts for its role."""
        assert result.finding is not None
        state, subtask_id = self.context.state, self.subtask_id
        self.count_outcome(True)
        if self._is_worse(result.finding):
            state.board.keep_finding(subtask_id)
            state.open_points.set_gap(
                subtask_id, f"what came back had less that is supported: {self.feedback}"
            )
            state.trace.note("finding_kept", subtask_id, which="earlier")
            return
        state.board.complete(subtask_id, result.finding)
        state.open_points.resolve(subtask_id)
        state.trace.note("subtask_completed", subtask_id, turns=self.report.turns, **result.refs)

    def _is_worse(self, finding: Finding) -> bool:
        """True if a review sent back a finding that has more support than the new one."""
        if self.previous is None or not self.keeps_better:
            return False
        return better_finding(self.previous, finding) is self.previous

    def fail(self, problem: Problem) -> None:
        """Ends the subtask, which failed for good.

        In review it keeps its finding, and the point stays open. Raises SupervisionError if other
        subtasks would fail for the same reason and the run has no finding to lose.
        """
        self.count_outcome(None)
        state, subtask_id = self.context.state, self.subtask_id
        if self.previous is not None:
            state.board.keep_finding(subtask_id)
            state.open_points.set_gap(
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
        if problem.type in FATAL and not state.first_finding.exists:
            raise SupervisionError(run_kind(problem.type), problem.message)

    def stop(self, problem: Problem | None = None) -> None:
        """Ends a stopped subtask; without a `problem` the run stopped it.

        Its latest finding is kept as a partial one. A subtask that has already ended is left as it
        is.
        """
        self.count_outcome(None)
        state, subtask_id = self.context.state, self.subtask_id
        if self.report.state not in ("waiting", "running"):
            return
        if self.skipped is not None:
            state.board.skip(subtask_id, self.skipped, self.so_far)
            return
        if self.previous is not None:
            state.board.keep_finding(subtask_id)
            return
        state.board.end(subtask_id, "cancelled", problem, self.so_far)
        state.trace.note("subtask_cancelled", subtask_id, turns=self.last.turns, **self.last.refs)
