"""The assignment of a subtask to a role: choosing the role, and taking and giving back its breaker's permission."""

from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.turn_contracts import ToolResultRef
    from activities.prompts.agent_prompts import FINISH_TAKEN
    from supervision.contract.finding import Finding
    from supervision.contract.team import RoleCard
    from supervision.planning.capabilities import role_for
    from supervision.run.role_breaker import RoleTicket
    from supervision.run.slots import Slot
    from workflows.calls import run_calls
    from workflows.child_contracts import LoopProgress, WorkerAgentResult
    from workflows.run_context import RunContext
    from workflows.subtasks.child_runs import AttemptOutcome


@dataclass
class InHand:
    """What a subtask has, should it end now: the first outcome that is whole, and the latest text of the others."""

    whole: AttemptOutcome | None = None
    partial: Finding | None = None

    def keep(self, outcome: AttemptOutcome) -> None:
        """Takes in what a child came to, as soon as it has ended: the run may stop before anything else is done."""
        if outcome.finding is not None:
            self.whole = self.whole or outcome
        else:
            self.partial = outcome.result.finding or self.partial


@dataclass
class Assignment:
    """A subtask in the hands of a role, over all its attempts.

    `ticket` is the permission that the role's breaker gave for the next attempt, or for the one that runs, `slot` its
    right to work. `declined` counts refusals and `CannotDo` among the failures, `refused_by` are models that refused
    the subtask. In a round of review `previous` is the finding to improve by `feedback`, `warm` where its conversation
    stands, for the next attempt to go on with it. `last` is the result of the attempt that ended last. Candidates share
    what is `in_hand`.
    """

    role: RoleCard
    ticket: RoleTicket | None = None
    slot: Slot | None = None
    failures: int = 0
    declined: int = 0
    fell_back: bool = False
    description_ref: str | None = None
    feedback: str | None = None
    previous: Finding | None = None
    warm: "WarmStart | None" = None
    last: WorkerAgentResult | None = None
    in_hand: InHand = field(default_factory=InHand)
    refused_by: set[str] = field(default_factory=set)

    @property
    def models(self) -> list[str]:
        """The models of the role, without those that refused the subtask; all if every one did."""
        return [model for model in self.role.models if model not in self.refused_by] or self.role.models


@dataclass(frozen=True)
class WarmStart:
    """A finished conversation that a review's feedback goes on with: it belongs to its role."""

    role: str
    progress: LoopProgress


def warm_start(role: str, result: WorkerAgentResult | None, finding: Finding | None) -> WarmStart | None:
    """Returns where the conversation of a finding stands; None if it cannot go on."""
    if result is None or finding is None or result.head is None or result.finding is None:
        return None
    if result.finding.text_ref != finding.text_ref:
        return None
    taken = [ToolResultRef(call_id=result.finish_call_id, text=FINISH_TAKEN)] if result.finish_call_id else []
    return WarmStart(role, LoopProgress(head=result.head, results=taken, feedback_due=True))


def assign(context: RunContext, subtask_id: str) -> Assignment:
    """Returns a new assignment: to the role that the plan names, or to the best one that is able to do it."""
    board, roles = context.state.board, context.assignable_roles

    def is_free(role: RoleCard) -> bool:
        return context.state.slots.has_room(role) and context.state.breaker(role.name).admits()

    return Assignment(roles.role(role_for(board.subtask(subtask_id), roles, board.in_flight(), is_free)))


def take_role(context: RunContext, assignment: Assignment) -> bool:
    """Takes permission and slot for an attempt, of the fallback role if the own one's breaker gives no permission.

    Returns False if there are none: the subtask has to wait.
    """
    fallback = unused_fallback(context, assignment)
    if context.state.breaker(assignment.role.name).admits():
        _take(context, assignment)
    elif (
        fallback is not None
        and context.state.breaker(fallback.name).admits()
        and context.state.slots.has_room(fallback)
    ):
        assignment.role, assignment.fell_back = fallback, True
        _take(context, assignment)
    return assignment.ticket is not None


def _take(context: RunContext, assignment: Assignment) -> None:
    assignment.slot = context.state.slots.take(assignment.role)
    if assignment.slot is not None:
        assignment.ticket = context.state.breaker(assignment.role.name).admit()


def next_probe_at(context: RunContext, assignment: Assignment) -> datetime | None:
    """Returns when the first breaker that keeps the subtask waiting admits an attempt; None if no time is set."""
    fallback = unused_fallback(context, assignment)
    roles = [assignment.role, *([fallback] if fallback else [])]
    times = [context.state.breaker(role.name).retry_at for role in roles]
    return min((time for time in times if time is not None), default=None)


def unused_fallback(context: RunContext, assignment: Assignment) -> RoleCard | None:
    """Returns the role's fallback role, if there is one and the subtask is not there already."""
    return None if assignment.fell_back else context.team.find(assignment.role.fallback)


def count_outcome(context: RunContext, assignment: Assignment, *, succeeded: bool) -> None:
    """Counts the outcome of an attempt for or against its role."""
    if assignment.ticket is not None:
        breaker = context.state.breaker(assignment.role.name)
        if succeeded:
            breaker.succeeded(assignment.ticket)
        else:
            breaker.failed(assignment.ticket)
        assignment.ticket = None


def give_back(context: RunContext, assignment: Assignment) -> None:
    """Gives the permission back: the attempt says nothing about its role. Its slot ends with the attempt itself."""
    if assignment.ticket is not None:
        context.state.breaker(assignment.role.name).released(assignment.ticket)
        assignment.ticket = None


async def divert(context: RunContext, subtask_id: str, assignment: Assignment) -> None:
    """Moves the subtask to the role's backup if the pool's backlog is too old and the backup's breaker admits it."""
    role, backup = assignment.role, context.team.find(assignment.role.backup)
    if role.pool is None or backup is None:
        return
    waited = await run_calls.pool_backlog(context.run, role.pool)
    if waited <= role.backlog_seconds or assignment.slot is None:
        return
    # Asked only now: other subtasks may have taken the backup's slots or its probe while the backlog was looked up.
    breaker, slots = context.state.breaker(backup.name), context.state.slots
    if breaker.admits() and slots.move(assignment.slot, backup) and (ticket := breaker.admit()):
        give_back(context, assignment)
        assignment.role, assignment.ticket = backup, ticket
        context.state.trace.note(
            "subtask_diverted", subtask_id, role=backup.name, pool=role.pool, waited_seconds=round(waited, 1)
        )
