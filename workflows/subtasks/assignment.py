"""The assignment of a subtask to a role: choosing the role, and taking and releasing its breaker's permission."""

from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef
    from activities.prompts.agent_prompts import FINISH_TAKEN
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem, SubtaskReport
    from supervision.contract.team import RoleCard
    from supervision.planning.capabilities import role_for
    from supervision.run.role_breaker import RoleTicket
    from supervision.run.slots import Slot
    from workflows.calls import run_calls
    from workflows.children.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.run_context import RunContext


@dataclass
class Assignment:
    """A subtask in the hands of a role, over all its attempts.

    `ticket` is the permission of the role's breaker for the attempt that runs or comes next, `slot` its right to work.
    `declined` counts refusals and `CannotDo` among the failures, `refused_by` are models that refused the subtask.
    In a round of review `previous` is the finding to improve by `feedback`, and `resume_from` where its conversation
    stands, for the role and the attempt that continue it. `results` are of all worker agents so far, candidates
    included; `last` is that of the attempt that ended last. `skipped` says why a person ended it.
    """

    context: RunContext
    subtask_id: str
    role: RoleCard
    ticket: RoleTicket | None = None
    slot: Slot | None = None
    failures: int = 0
    declined: int = 0
    fell_back: bool = False
    description_ref: str | None = None
    feedback: str | None = None
    previous: Finding | None = None
    resume_from: LoopProgress | None = None
    last: WorkerAgentResult | None = None
    results: list[WorkerAgentResult] = field(default_factory=list)
    refused_by: set[str] = field(default_factory=set)
    skipped: Problem | None = None

    @property
    def report(self) -> SubtaskReport:
        """The subtask as the board has it."""
        return self.context.state.board[self.subtask_id]

    @property
    def has_ended(self) -> bool:
        """True if the subtask is at its end, by itself or because the run did not wait for it."""
        return self.report.state not in ("waiting", "running")

    @property
    def models(self) -> list[str]:
        """The models of the role, without those that refused the subtask; all if every one did."""
        return [model for model in self.role.models if model not in self.refused_by] or self.role.models

    @property
    def best(self) -> WorkerAgentResult | None:
        """The first result that succeeded: should the run stop now, it counts."""
        return next((result for result in self.results if result.succeeded), None)

    @property
    def so_far(self) -> Finding | None:
        """The latest finding of a worker agent that did not succeed."""
        return next((r.finding for r in reversed(self.results) if r.finding and not r.succeeded), None)

    def move_to(self, role: RoleCard) -> None:
        """Gives the subtask to another role, which begins a conversation of its own."""
        self.role, self.resume_from = role, None

    @property
    def unused_fallback(self) -> RoleCard | None:
        """The role's fallback role, if there is one and the subtask is not there already."""
        return None if self.fell_back else self.context.team.find(self.role.fallback)

    def take_role(self) -> bool:
        """Takes permission and slot for an attempt, of the fallback role if the own one's breaker gives no permission.

        Returns False if there are none: the subtask has to wait.
        """
        state, fallback = self.context.state, self.unused_fallback
        breaker = state.waits.breaker
        if not breaker(self.role.name).admits():
            if fallback is None or not breaker(fallback.name).admits() or not state.slots.has_room(fallback):
                return False
            self.fall_back(fallback)
        self.slot = state.slots.take(self.role)
        if self.slot is not None:
            self.ticket = breaker(self.role.name).admit()
        return self.ticket is not None

    def next_probe_at(self) -> datetime | None:
        """Returns when the first breaker that keeps the subtask waiting admits an attempt; None if no time is set."""
        roles = [role for role in (self.role, self.unused_fallback) if role is not None]
        times = [self.context.state.waits.breaker(role.name).retry_at for role in roles]
        return min((time for time in times if time is not None), default=None)

    def count_outcome(self, succeeded: bool | None) -> None:
        """Counts the outcome of an attempt for or against its role; None says nothing about it."""
        if self.ticket is None:
            return
        breaker = self.context.state.waits.breaker(self.role.name)
        count = breaker.released if succeeded is None else breaker.succeeded if succeeded else breaker.failed
        count(self.ticket)
        self.ticket = None

    def fall_back(self, fallback: RoleCard) -> None:
        """Gives the subtask to the fallback role, once."""
        self.move_to(fallback)
        self.fell_back = True

    async def divert(self) -> None:
        """Moves the subtask to the role's backup if the pool's backlog is too old and the backup admits it."""
        role, context, backup = self.role, self.context, self.context.team.find(self.role.backup)
        if role.pool is None or backup is None:
            return
        waited = await run_calls.pool_backlog(context.run, role.pool)
        if waited <= role.backlog_seconds or self.slot is None:
            return
        # Asked only now: other subtasks may have taken the backup's slots or its probe during the look-up.
        breaker, slots = context.state.waits.breaker(backup.name), context.state.slots
        if breaker.admits() and slots.move(self.slot, backup) and (ticket := breaker.admit()):
            self.count_outcome(None)
            self.move_to(backup)
            self.ticket = ticket
            context.state.trace.note(
                "subtask_diverted", self.subtask_id, role=backup.name, pool=role.pool, waited_seconds=round(waited, 1)
            )


def resume_point(result: WorkerAgentResult | None, finding: Finding | None) -> LoopProgress | None:
    """Returns where the conversation of a finding stands; None if it cannot be continued."""
    if result is None or finding is None or result.head is None or result.finding is None:
        return None
    if result.finding.text_ref != finding.text_ref:
        return None
    taken = [ToolResultRef(call_id=result.finish_call_id, text=FINISH_TAKEN)] if result.finish_call_id else []
    return LoopProgress(head=result.head, results=taken, feedback_due=True, heard=result.heard)


def assign(context: RunContext, subtask_id: str) -> Assignment:
    """Returns a new assignment: to the role that the plan names, or to the best one that is able to do it."""
    board, roles = context.state.board, context.assignable_roles

    def is_free(role: RoleCard) -> bool:
        return context.state.slots.has_room(role) and context.state.waits.breaker(role.name).admits()

    role = roles.role(role_for(board.subtask(subtask_id), roles, board.in_flight(), is_free))
    return Assignment(context, subtask_id, role)
