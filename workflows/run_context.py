"""What the parts of a supervisor share, and how it asks the model itself: within its budget, with patience."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef, RunSetup
    from supervision import limits
    from supervision.contract.team import TeamCard
    from supervision.contract.usage import Usage
    from supervision.errors import ACCOUNT, ErrorKind, SupervisionError, run_kind
    from supervision.run.run_state import RunState
    from supervision.run.waits import ProviderWait
    from workflows.child_contracts import NestedInput
    from workflows.failures import cancelled, model_problem, remaining_seconds


class HasUsage(Protocol):
    """A reply that says what it cost."""

    usage: Usage


R = TypeVar("R", bound=HasUsage)


@dataclass
class RunContext:
    """One supervisor's surroundings.

    `show` makes a change visible; `bell` wakes the dispatch when limits changed; `plan_ref`, `team_ref` and `team`
    follow the revisions.
    """

    state: RunState
    setup: RunSetup
    run: RunRef
    show: Callable[[], None]
    bell: asyncio.Event
    nested: NestedInput | None = None
    plan_ref: str = ""
    team_ref: str = ""
    team: TeamCard | None = None

    @property
    def roles(self) -> TeamCard:
        """The team, with the roles that the plan added."""
        return self.team or self.setup.team

    @property
    def takers(self) -> TeamCard:
        """The roles that a subtask may be given to: at the last level, none that is a team of its own."""
        roles = self.roles
        if self.depth < self.state.request.max_depth:
            return roles
        return roles.model_copy(
            update={"roles": [role for role in roles.roles if role.team is None or role.name == roles.generalist]}
        )

    @property
    def depth(self) -> int:
        """1 for the root."""
        return self.nested.depth if self.nested else 1

    @property
    def workflow_id(self) -> str:
        """This supervisor's own, where `resume` is to be said."""
        return workflow.info().workflow_id

    def expires_at(self, last: bool = False) -> datetime:
        """When the time for work is over, or that for its `last` part, the answer; both move when limits change."""
        return self.state.allowance.deadline_at if last else self.state.allowance.work_until

    async def ask(self, name: str, tokens: int, call: Callable[[datetime], Awaitable[R]], *, last: bool = False) -> R:
        """A model call of the supervisor's own; `tokens` is what it may take, `call` is told when its time is over.

        The `last` one writes the answer: it may use all that is left, of the budget and of the time.
        SupervisionError when the budget has no room for it, the deadline comes first, or it failed for good.
        """
        ledger = self.state.allowance.ledger
        if last and (left := ledger.for_synthesis.tokens) is not None:
            tokens = min(tokens, max(left, 1))
        if not ledger.reserve_call(tokens, synthesis=last):
            raise SupervisionError(
                ErrorKind.BUDGET_EXHAUSTED, f"the budget has no room for {name}: {self.state.allowance.spent()}"
            )
        try:
            reply = await self._patiently(name, call, last)
        except BaseException:  # also when it is given up
            ledger.settle_call(tokens, Usage())
            raise
        ledger.settle_call(tokens, reply.usage)
        self.state.own_usage += reply.usage
        return reply

    async def _patiently(self, name: str, call: Callable[[datetime], Awaitable[R]], last: bool) -> R:
        pauses = 0
        while True:
            try:
                return await call(self.expires_at(last))
            except ActivityError as error:
                if cancelled(error):
                    raise
                what = model_problem(error)
                if what.type == ErrorKind.CIRCUIT_OPEN:
                    model, rest = self.setup.supervisor_model, remaining_seconds(error)
                    await self.wait_for_provider(name, model, rest, pauses, last=last)
                    pauses += 1
                elif what.type in ACCOUNT and self.state.has_finding:
                    await self.wait_for_resume(name, what.message, last=last)
                elif what.type != ErrorKind.TIMEOUT or workflow.now() >= self.expires_at(last):
                    raise SupervisionError(run_kind(what.type), what.message) from error

    async def wait_for_provider(
        self, name: str, model: str, remaining: float, pauses: int, *, last: bool = False
    ) -> None:
        """Waits durably until the breaker of a model may let a call through again, longer each time.

        SupervisionError `DeadlineExceeded` when the run's time is over first.
        """
        own = limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR ** min(pauses, 20)  # powers grow out of datetimes
        least = max(timedelta(seconds=remaining), min(own, limits.PROVIDER_PAUSE_MAX))
        pause = least * (1 + limits.RETRY_JITTER * workflow.random().random())
        until = workflow.now() + pause
        wait = ProviderWait(name=name, workflow_id=self.workflow_id, model=model, retry_at=until.isoformat())
        await self._wait(wait, f"{name}: wait for the model provider", last, lambda: workflow.now() >= until, until)

    async def wait_for_resume(self, name: str, why: str, *, last: bool = False) -> None:
        """Waits until a person has mended the account and says `resume`; SupervisionError as `wait_for_provider`."""
        seen = self.state.resumes
        wait = ProviderWait(name=name, workflow_id=self.workflow_id, why=why)
        self.state.note("waiting_provider", data=why)
        await self._wait(wait, f"{name}: wait for resume", last, lambda: self.state.resumes > seen)

    async def _wait(
        self, wait: ProviderWait, label: str, last: bool, over: Callable[[], bool], until: datetime | None = None
    ) -> None:
        """Waits until it is `over`, at `until` at the latest; the deadline may move meanwhile."""
        with self.state.holds.waiting(wait):
            self.show()
            while not over():
                deadline = self.expires_at(last)
                if workflow.now() >= deadline:
                    raise SupervisionError(ErrorKind.DEADLINE_EXCEEDED, f"the deadline came first: {label}")

                def changed(deadline: datetime = deadline) -> bool:
                    return over() or self.expires_at(last) != deadline

                left = min(until or deadline, deadline) - workflow.now()
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(changed, timeout=left, timeout_summary=label)
        self.show()
