"""Revisions of the plan while subtasks run."""

import asyncio
import contextlib

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base.errors import SupervisionError
    from temporal_supervisor.supervision.contract.result import SubtaskReport
    from temporal_supervisor.supervision.results.success_rule import is_reachable
    from temporal_supervisor.supervision.run.board import is_blocked
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import BackgroundTask
    from workflows.plan.make_plan import PlanMaker
    from workflows.plan.templates import Templates


class Replanning(BackgroundTask):
    """Revises the plan: for the items of templates, and at most `replans` times for other reasons.

    Those are failed work, and points that a review misses.
    """

    def __init__(
        self, state: RunState, plans: PlanMaker, templates: Templates, replans: int
    ) -> None:
        super().__init__()
        self._state = state
        self._plans = plans
        self._templates = templates
        self._left = replans
        self._considered: set[str] = set()

    async def add_missing(self, points: list[str]) -> bool:
        """Has subtasks planned for the points that a review misses.

        Returns True if there are new subtasks: they wait for the dispatch.
        """
        return self._can_replan and bool(points) and await self._replan(points)

    @property
    def _can_replan(self) -> bool:
        state, budget = self._state, self._state.time_and_budget
        has_room = state.shares.subtasks_left > 0 and not budget.ledger.exhausted
        return bool(self._left and has_room and budget.time_left)

    def _is_due(self) -> bool:
        if self._templates.ready:
            return True
        return self._can_replan and not self._considered.issuperset(self._lost_subtasks())

    def _lost_subtasks(self) -> list[str]:
        """Returns the failed subtasks that the answer or the success rule needs."""
        state = self._state
        levels = state.plan.importance
        in_reach = is_reachable(state.request.success, state.board.current(), levels)

        def is_needed(report: SubtaskReport) -> bool:
            return levels[report.id] == "required" or not in_reach

        planned = [report for report in state.board.current() if report.id in levels]
        failed = [report for report in planned if report.state == "failed" or is_blocked(report)]
        return [report.id for report in failed if is_needed(report)]

    async def _work(self) -> None:
        # One revision at a time: each is made of the plan as it stood when its work began.
        templates = self._templates.ready
        if not templates:
            await self._replan([])
            return
        with contextlib.suppress(asyncio.CancelledError):
            await self._templates.expand(templates[0])

    async def _replan(self, missing: list[str]) -> bool:
        """Makes a revision. Returns False if it adds nothing."""
        self._left -= 1
        self._considered.update(self._lost_subtasks())
        state = self._state
        before = len(state.plan.named)
        try:
            # Subtasks end while this waits: `adopt` takes the board as it stands then.
            reply = await self._plans.make_plan("plan", missing)
        except SupervisionError as error:
            state.warn(f"no better plan: {error.message}")
            self._left = 0
            return False
        except asyncio.CancelledError:
            self._left = 0
            return False
        state.trace.note("replan_brought", added=len(state.plan.named) - before)
        return not reply.finished
