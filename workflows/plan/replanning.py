"""Replanning: a new revision of a plan that can't meet the success rule any more, made while other work goes on."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from supervision.errors import SupervisionError
    from supervision.run.success_rule import importance, reachable
    from workflows.background import BackgroundTask
    from workflows.plan.make_plan import make_plan
    from workflows.run_context import RunContext


class Replanning(BackgroundTask):
    """Makes at most `replans` revisions of the plan, each when only new subtasks could still meet the rule."""

    def __init__(self, context: RunContext, replans: int) -> None:
        super().__init__()
        self._context = context
        self._left = replans

    def _is_due(self) -> bool:
        state = self._context.state
        if not self._left or not state.time_and_budget.time_left or state.time_and_budget.out_of_budget:
            return False
        rule, room = state.request.success, len(state.plan.subtasks) < state.request.max_subtasks
        return room and rule != "any" and not reachable(rule, state.board.current(), importance(state.plan))

    async def _work(self) -> None:
        self._left -= 1
        try:
            # Subtasks end while this waits: `adopt` takes the board as it stands then.
            if (await make_plan(self._context, "plan")).finished:
                self._left = 0
        except SupervisionError as error:
            self._context.state.warn(f"no better plan: {error.message}")
            self._left = 0
        except asyncio.CancelledError:
            self._left = 0
