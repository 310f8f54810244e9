"""The approval of plans by a person."""

from collections.abc import Callable

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import PlanReply
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
    from temporal_supervisor.supervision.base.text import size
    from temporal_supervisor.supervision.contract.plan import Estimate, Plan
    from temporal_supervisor.supervision.contract.progress import Phase
    from temporal_supervisor.supervision.run.decisions import Decision
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.run.waiting import Waiting


class Approval:
    """Asks a person about plans, if the request wants that.

    `issue_soon` publishes a change of the run.
    """

    def __init__(
        self, state: RunState, waiting: Waiting, issue_soon: Callable[[], None], *, is_root: bool
    ) -> None:
        self._state = state
        self._waiting = waiting
        self._issue_soon = issue_soon
        self._is_root = is_root

    def is_needed(self, reply: PlanReply) -> bool:
        """True if a person has to approve the plan: a first one, or one with a new role."""
        state, plan = self._state, reply.plan
        if not state.request.approve_plan or not self._is_root or plan is None:
            return False
        return not state.proposals.approved_roles.issuperset(
            subtask.role for subtask in plan.subtasks
        )

    async def decision(self, reply: PlanReply, number: int, problem: str) -> Decision:
        """Returns a person's decision about the plan in a reply, which is shown as plan `number`.

        After `approval_timeout` the request's own choice counts: approve, or SupervisionError
        `PlanRejected`. With a `problem` the plan is shown again, because its intended replacement
        could not run.
        """
        state, plan = self._state, reply.plan
        assert plan is not None
        is_first = not state.plan.subtasks
        wait = self._waiting.new_wait(
            f"plan.{number}",
            "plan",
            prompt_preview=problem or _preview(plan, reply.estimate),
            choices=["approve", "edit", "reject", *(["change"] if reply.head else [])],
            content_ref=reply.plan_ref or "",
        )
        state.proposals.begin(plan, reply.estimate)
        if is_first:
            self._enter("approval")
            state.time_and_budget.hold("approval")
        try:
            timeout = state.request.approval_timeout
            decision = await self._waiting.decision(wait, timeout, _shown_whole(plan))
        finally:
            state.proposals.end()
            state.time_and_budget.hold("approval", False)  # no nested run is there to hear of it
        if is_first:
            self._enter("planning")
        if decision is None and state.request.on_approval_timeout == "reject":
            why = "no decision on the plan came in time"
            raise SupervisionError(ErrorKind.PLAN_REJECTED, why)
        return decision or Decision(id=wait.id, choice="approve", about=("plan",))

    def _enter(self, phase: Phase) -> None:
        self._state.enter(phase)
        self._issue_soon()


def _shown_whole(plan: Plan) -> str | None:
    """Returns the plan as JSON; None for a long one, which people read by its reference."""
    whole = plan.model_dump_json()
    return whole if size(whole) <= limits.PAYLOAD_AIM_BYTES else None


def _preview(plan: Plan, estimate: Estimate | None) -> str:
    """Returns the question in one sentence: `4 subtasks, 8-14 calls, $0.17-0.32: ...`."""
    count = len(plan.subtasks)
    facts = [f"{count} subtask{'' if count == 1 else 's'}"]
    if estimate is not None:
        facts.append(estimate.total.line)
    described = "; ".join(subtask.description for subtask in plan.subtasks)
    return f"{', '.join(facts)}: {described}"
