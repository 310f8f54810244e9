"""What the parts of a supervisor share, and how it calls the model itself: within its budget, with patience."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypedDict, TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef, RunSetup
    from supervision import limits
    from supervision.budget.spending import SUPERVISOR
    from supervision.contract.base import Model
    from supervision.contract.model_choice import Effort
    from supervision.contract.team import TeamCard
    from supervision.contract.usage import Usage
    from supervision.errors import ACCOUNT, ErrorKind, SupervisionError, run_kind
    from supervision.run.run_state import RunState
    from supervision.run.slots import Slot
    from supervision.run.waits import ProviderWait
    from supervision.text import cut
    from workflows.child_contracts import NestedInput
    from workflows.failures import CallCancelled, CallFailed
    from workflows.nested.child_links import ChildLinks
    from workflows.nested.parent_link import ParentLink
    from workflows.start_window import StartWindow


class OwnCall(Protocol):
    """A model call of the supervisor's own."""

    model: str


class OwnReply(Protocol):
    """A reply to one: what it cost, and the head of its conversation."""

    usage: Usage
    head: str


class CallFields(TypedDict):
    """The fields that every model call of a supervisor has, but the plan's own."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    effort: Effort | None


P = TypeVar("P", bound=OwnCall)
R = TypeVar("R", bound=OwnReply)


@dataclass
class RunContext:
    """One supervisor's surroundings.

    `show` makes a change visible; setting `limits_changed` or `slot_freed` wakes the dispatch; `starts` lets children
    begin. `plan_ref`, `team_ref` and `team` follow the revisions of the plan: `team` has the roles that the plan added.
    `written_by` has the models of the supervisor's own conversations, by their heads.
    """

    state: RunState
    setup: RunSetup
    run: RunRef
    show: Callable[[], None]
    limits_changed: asyncio.Event
    children: ChildLinks
    team: TeamCard
    team_ref: str
    nested: NestedInput | None = None
    parent: ParentLink | None = None
    plan_ref: str = ""
    slot_freed: asyncio.Event = field(default_factory=asyncio.Event)
    starts: StartWindow = field(default_factory=StartWindow)
    written_by: dict[str, str] = field(default_factory=dict)

    @property
    def assignable_roles(self) -> TeamCard:
        """The roles that a subtask may be given to: at the last level, none that is a team of its own."""
        team = self.team
        if self.depth < self.state.request.max_depth:
            return team
        return team.model_copy(
            update={"roles": [role for role in team.roles if role.team is None or role.name == team.generalist]}
        )

    @property
    def depth(self) -> int:
        """1 for the root."""
        return self.nested.depth if self.nested else 1

    @property
    def in_tree(self) -> bool:
        """True if there are other supervisors, above or below, to share slots with."""
        return self.parent is not None or bool(self.state.slots.loans)

    @property
    def call_fields(self) -> CallFields:
        """What every model call but the planning ones begins with."""
        return {
            "run": self.run,
            "goal_ref": self.setup.goal_ref,
            "plan_ref": self.plan_ref,
            "model": self.setup.supervisor_model,
            "effort": self.state.request.effort,
        }

    @property
    def models(self) -> list[str]:
        """The supervisor's own models, in the order of preference."""
        return [self.setup.supervisor_model, *self.setup.supervisor_fallbacks]

    def expires_at(self, last: bool = False) -> datetime:
        """Returns when the time for work is over, or for the `last` call, the answer. Both move when limits change."""
        return self.state.time_and_budget.deadline_at if last else self.state.time_and_budget.work_until

    async def more_budget(self, tokens: int) -> bool:
        """True if so many tokens are free, perhaps since a nested supervisor was given more."""
        if self.parent is not None:
            return await self.parent.more_budget(tokens)
        return self.state.time_and_budget.ledger.has_room(tokens)

    @contextlib.contextmanager
    def own_work(self) -> Iterator[None]:
        """Counts the time of the block as the supervisor's own, if it ends without an error."""
        began = workflow.now()
        yield
        self.state.own_seconds += (workflow.now() - began).total_seconds()

    async def hold(self, slot: Slot) -> None:
        """Returns when the slot is held; worker agents that work come before subtasks that are to begin."""
        if not slot.held:
            self.state.slots.ask(slot)
            if self.in_tree and not slot.held:
                self.slot_freed.set()  # the dispatch calls slots back from nested runs, or asks the one above for more
            await workflow.wait_condition(lambda: slot.held)

    def free(self, slot: Slot) -> None:
        """Gives the slot back: whoever waits for one begins."""
        self.state.slots.give_back(slot)
        self.slot_freed.set()

    async def finding_comes(self, subtask_id: str) -> bool:
        """Returns True once the run has a finding, False when nothing is under way any more that could bring it.

        That is asked for a subtask whose model calls are refused, as those of any other would be: without a finding
        the run is to fail. Subtasks that are at work decide it, not the order in which the provider answers.
        """
        state = self.state
        state.refused.add(subtask_id)
        try:
            await workflow.wait_condition(lambda: state.has_finding or not state.finding_may_come)
        finally:
            state.refused.discard(subtask_id)
        return state.has_finding

    async def call_model(
        self,
        label: str,
        activity: Callable[[P, datetime], Awaitable[R]],
        payload: P,
        tokens: int,
        *,
        last: bool = False,
    ) -> R:
        """Makes a model call of the supervisor's own; `tokens` is what it may take.

        The `last` one writes the answer: it may use all that is left, of the budget and of the time.
        Raises SupervisionError if the budget has no room for it, the deadline comes first, or it failed for good.
        """
        budget = self.state.time_and_budget
        if workflow.now() >= self.expires_at(last):
            raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came before {label}")
        if last and (left := budget.ledger.for_synthesis.tokens) is not None:
            tokens = min(tokens, max(left, 1))
        # Reserved before the await: other calls and grants are decided while this one is under way.
        while not budget.ledger.reserve_call(tokens, synthesis=last):
            if not await self.more_budget(tokens):
                raise SupervisionError(
                    ErrorKind.BUDGET_EXHAUSTED, f"the budget has no room for {label}: {budget.spent_line()}"
                )
        try:
            return await self._patiently(label, activity, payload, last)
        finally:  # when it is cancelled, too: the reservation would never end
            budget.ledger.settle_call(tokens, Usage())

    async def _patiently(
        self, label: str, activity: Callable[[P, datetime], Awaitable[R]], payload: P, last: bool
    ) -> R:
        """Repeats a call through outages, waits for `resume`, and deadlines that were extended while it ran.

        Another model of the chain takes over where there is one that can.
        """
        state, pauses = self.state, 0
        model = state.models.choose(self.models)
        while True:
            expires_at = self.expires_at(last)
            try:
                reply = await activity(self._addressed(payload, model), expires_at)
                self._book(model, reply.usage)
                self.written_by[reply.head] = model
                following = state.models.following(self.models, model)
                if not _is_refusal(reply) or following is None:
                    return reply
                self._replace(label, model, following, "it refused")
                model = following
            except CallCancelled as cancelled:
                cancelled.when_answered(self._book, model)
                raise asyncio.CancelledError from cancelled
            except CallFailed as failed:
                self._book(model, failed.usage)
                problem = failed.problem
                following = state.models.failed(model, self.models, problem.type, failed.retry_after)
                if following != model:
                    self._replace(label, model, following, problem.type)
                    model = following
                    continue
                if problem.type is ErrorKind.CIRCUIT_OPEN:
                    await self.wait_for_provider(label, model, problem.message, failed.retry_after, pauses, last=last)
                    pauses += 1
                elif problem.type in ACCOUNT and self.state.has_finding:
                    await self.wait_for_resume(label, problem.message, last=last)
                # The end may come long before the deadline, if the provider asked for a longer wait than that.
                elif problem.type is not ErrorKind.TIMEOUT or self.expires_at(last) <= expires_at:
                    raise SupervisionError(run_kind(problem.type), problem.message) from failed

    def _book(self, model: str, usage: Usage) -> None:
        self.state.time_and_budget.ledger.settle_call(0, usage)
        self.state.note_spending(SUPERVISOR, model, usage)

    def _addressed(self, payload: P, model: str) -> P:
        """Returns the call as that model gets it; what another one has begun it does not go on with."""
        changes: dict[str, str | None] = {"model": model}
        head = getattr(payload, "head", None)
        if head is not None and self.written_by.get(head, model) != model:
            changes["head"] = None
        assert isinstance(payload, Model)
        return payload.model_copy(update=changes)

    def _replace(self, label: str, model: str, following: str, why: str) -> None:
        self.state.trace.note("model_replaced", work=label, model=model, by=following, why=why)

    async def wait_for_provider(
        self, name: str, model: str, why: str, remaining: float, pauses: int, *, last: bool = False
    ) -> None:
        """Waits durably until the breaker of a model may let a call through again, longer each time.

        Raises SupervisionError `DeadlineExceeded` if the run's time is over first.
        """
        own = limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR ** min(pauses, 20)  # powers grow out of datetimes
        least = max(timedelta(seconds=remaining), min(own, limits.PROVIDER_PAUSE_MAX))
        pause = least * (1 + limits.RETRY_JITTER * workflow.random().random())
        until = workflow.now() + pause
        wait = ProviderWait(
            name=name,
            workflow_id=workflow.info().workflow_id,
            model=model,
            why=cut(why, limits.COMPLAINT_BYTES),
            retry_at=until.isoformat(),
        )
        await self._wait(wait, f"{name}: wait for the model provider", last, lambda: workflow.now() >= until, until)

    async def wait_for_resume(self, name: str, why: str, *, last: bool = False) -> None:
        """Waits until a person has fixed the account and sends `resume`; raises as `wait_for_provider`."""
        seen = self.state.resumes
        shown = cut(why, limits.COMPLAINT_BYTES)  # it travels upward, and many may wait
        wait = ProviderWait(name=name, workflow_id=workflow.info().workflow_id, why=shown)
        self.state.trace.note("waiting_provider", why=why)
        await self._wait(wait, f"{name}: wait for resume", last, lambda: self.state.resumes > seen)

    async def _wait(
        self, wait: ProviderWait, label: str, last: bool, over: Callable[[], bool], until: datetime | None = None
    ) -> None:
        """Waits until it is `over`, at `until` at the latest."""
        with self.state.waits.waiting(wait):
            self.show()
            while not over():
                deadline = self.expires_at(last)
                if workflow.now() >= deadline:
                    raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came first: {label}")

                # The deadline may move while this waits, by `extend_limits`: then the timer is set anew.
                def over_or_moved(deadline: datetime = deadline) -> bool:
                    return over() or self.expires_at(last) != deadline

                left = min(until or deadline, deadline) - workflow.now()
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(over_or_moved, timeout=left, timeout_summary=label)
        self.show()


def _is_refusal(reply: object) -> bool:
    """True if the model refused to answer: some replies say it in words, some by the stop reason."""
    return bool(getattr(reply, "refusal", None)) or getattr(reply, "stop_reason", "") == "refusal"
