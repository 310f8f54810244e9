"""The parts of a run that work on subtasks uses."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.calls.supervisor_model import SupervisorModel
    from workflows.run.plan_in_force import PlanInForce
    from workflows.run.run_terms import RunTerms
    from workflows.run.slot_waits import SlotWaits
    from workflows.run.waiting import Waiting
    from workflows.subtasks.child_runs import ChildRuns


@dataclass(frozen=True)
class WorkContext:
    """The parts of a run that the dispatch, its assignments and their worker agents share.

    `issue_soon` publishes a change of the run, setting `changed` wakes the dispatch.
    """

    terms: RunTerms
    state: RunState
    plan: PlanInForce
    model: SupervisorModel
    waiting: Waiting
    slots: SlotWaits
    children: ChildRuns
    issue_soon: Callable[[], None]
    changed: asyncio.Event

    def subtasks_for(self, subtask_id: str) -> int:
        """Returns the number of subtasks that a nested run may have; 0 if there are too few."""
        return self.state.shares.subtasks_for(subtask_id, self.plan.may_be_team)
