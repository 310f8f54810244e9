"""What the parts of a supervisor share, and how it asks the model itself: within its budget, with patience."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from activities.contracts import RunRef, RunSetup
    from supervision import limits
    from supervision.base import SupervisionError
    from supervision.run_state import RunState
    from supervision.team import TeamCard
    from supervision.usage import Usage
    from workflows.contracts import NestedInput
    from workflows.failures import ACCOUNT, cancelled, model_problem, remaining_seconds, run_error


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
    def depth(self) -> int:
        """1 for the root."""
        return self.nested.depth if self.nested else 1

    @property
    def expires_at(self) -> datetime:
        """When the run's time is over: no call is retried beyond it."""
        return self.state.allowance.deadline_at

    async def ask(self, name: str, tokens: int, call: Callable[[], Awaitable[R]], *, last: bool = False) -> R:
        """A model call of the supervisor's own; `tokens` is what it may take.

        The `last` one writes the answer: it may use all that is left. SupervisionError when the budget has no room
        for it, the deadline comes first, or it failed for good.
        """
        ledger = self.state.allowance.ledger
        if last and (left := ledger.for_synthesis.tokens) is not None:
            tokens = min(tokens, max(left, 1))
        if not ledger.reserve_call(tokens, synthesis=last):
            raise SupervisionError(
                "BudgetExhausted", f"the budget has no room for {name}: {self.state.allowance.spent()}"
            )
        try:
            reply = await self._patiently(name, call)
        except Exception:
            ledger.settle_call(tokens, Usage())
            raise
        ledger.settle_call(tokens, reply.usage)
        self.state.own_usage += reply.usage
        return reply

    async def _patiently(self, name: str, call: Callable[[], Awaitable[R]]) -> R:
        pauses = 0
        while True:
            try:
                return await call()
            except ActivityError as error:
                if cancelled(error):
                    raise
                what = model_problem(error)
                if what.type == "CircuitOpen":
                    await self.wait_for_provider(name, remaining_seconds(error), pauses)
                    pauses += 1
                elif what.type in ACCOUNT and self.state.board.counts().completed:
                    await self.wait_for_resume(name, what.message)
                else:
                    raise SupervisionError(run_error(what.type), what.message) from error

    async def wait_for_provider(self, name: str, remaining: float, pauses: int) -> None:
        """Waits durably until a provider's breaker may let a call through again, longer each time."""
        own = limits.PROVIDER_PAUSE * limits.PROVIDER_PAUSE_FACTOR**pauses
        least = max(timedelta(seconds=remaining), min(own, limits.PROVIDER_PAUSE_MAX))
        pause = least * (1 + limits.RETRY_JITTER * workflow.random().random())
        self._in_time(pause)
        with self.state.waiting_provider(name):
            self.show()
            await workflow.sleep(pause, summary=f"{name}: wait for the model provider")
        self.show()

    async def wait_for_resume(self, name: str, why: str) -> None:
        """Waits until a person has mended the account and says `resume`."""
        seen = self.state.resumes
        left = self.expires_at - workflow.now()
        with self.state.waiting_provider(name):
            self.state.note("waiting_provider", data=why)
            self.show()
            try:
                await workflow.wait_condition(
                    lambda: self.state.resumes > seen, timeout=left, timeout_summary=f"{name}: wait for resume"
                )
            except TimeoutError as error:
                raise SupervisionError("DeadlineExceeded", f"the deadline came while waiting: {why}") from error
        self.show()

    def _in_time(self, pause: timedelta) -> None:
        if workflow.now() + pause >= self.expires_at:
            raise SupervisionError("DeadlineExceeded", "the model provider is out of service past the deadline")
