"""The loop of the dispatch, without Temporal: a complete board ends it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.team import TeamCard
from temporal_supervisor.supervision.run.run_state import RunState
from tests.unit.shapes import START, Clock, plan, subtask, work
from workflows.background import BackgroundTask
from workflows.calls.saved_work import EarlierFindings
from workflows.run.plan_in_force import PlanInForce
from workflows.subtasks import dispatch
from workflows.subtasks.dispatch import Dispatch

TURNS_WITHOUT_AN_AWAIT = 10
TEAM = TeamCard(name="lone", generalist="researcher", roles=[])


class Nothing(BackgroundTask):
    """Has nothing to do."""

    def _is_due(self) -> bool:
        return False

    async def _work(self) -> None: ...


def a_run(*done: str, waiting: tuple[str, ...] = ()) -> RunState:
    """A run with subtasks that have a finding, and others that have not begun."""
    state = RunState(RunRequest(goal="g"), Clock(), START)
    state.adopt(plan(*map(subtask, [*done, *waiting])))
    for subtask_id in done:
        work(state.board, subtask_id)
    return state


def dispatch_of(state: RunState) -> Dispatch:
    """A dispatch of a run with no parts but its state."""
    context: Any = SimpleNamespace(state=state, issue_soon=lambda: None, changed=asyncio.Event())
    terms: Any = None
    earlier = EarlierFindings(terms, state, PlanInForce(state, TEAM, "", may_nest=False))
    return Dispatch(context, earlier, Nothing(), Nothing())


@pytest.fixture
def full_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fills the history of a run; a loop that turns without an await is ended."""
    looks = iter([True] * TURNS_WITHOUT_AN_AWAIT)

    def is_full() -> bool:
        return next(looks)  # StopIteration ends a loop that never ends

    monkeypatch.setattr(dispatch, "_history_is_full", is_full)


@pytest.mark.usefixtures("full_history")
async def test_a_history_that_the_last_finding_fills_ends_the_dispatch() -> None:
    assert await dispatch_of(a_run("t1"))._run_board() is True


@pytest.mark.usefixtures("full_history")
async def test_a_full_history_stops_work_that_is_left() -> None:
    state = a_run("t1", waiting=("t2",))
    assert await dispatch_of(state)._run_board() is False
    assert state.time_and_budget.stopped_because.startswith("the run's history is nearly as long")
