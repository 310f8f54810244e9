"""Revising a plan that can't meet the success rule any more, while what still can be done goes on."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from supervision import limits
    from supervision.errors import SupervisionError
    from supervision.run.success_rule import importance, reachable
    from workflows.plan.make_plan import make_plan
    from workflows.run_context import RunContext


class Revisions:
    """At most `most` revisions in a run, one at a time."""

    def __init__(self, context: RunContext, most: int = limits.REPLANS) -> None:
        self._context = context
        self._left = most
        self._task: asyncio.Task[None] | None = None

    def consider(self) -> None:
        """Begins a revision when only new subtasks could still meet the rule, and none is being made."""
        if self._left and not self.tasks() and self._helps():
            self._left -= 1
            self._task = asyncio.create_task(self._revise())

    def tasks(self) -> list[asyncio.Task[None]]:
        """The revision being made, if any."""
        return [self._task] if self._task is not None and not self._task.done() else []

    async def stop(self) -> None:
        """Gives a revision being made up: the time for work is over."""
        for task in self.tasks():
            task.cancel()
            await workflow.wait([task])

    def _helps(self) -> bool:
        state = self._context.state
        if not state.allowance.time_left or state.allowance.out_of_budget:
            return False
        rule, room = state.request.success, len(state.plan.subtasks) < state.request.max_subtasks
        return room and rule != "any" and not reachable(rule, state.board.current(), importance(state.plan))

    async def _revise(self) -> None:
        try:
            if (await make_plan(self._context, "plan")).finished:
                self._left = 0
        except SupervisionError as error:
            self._context.state.warn(f"no better plan: {error.message}")
            self._left = 0
        except (ActivityError, asyncio.CancelledError):
            self._left = 0
