"""What an event of a run costs: as much in a plan of a thousand subtasks as in one of a hundred."""

import sys
from collections.abc import Callable
from types import FrameType

from supervision.base import limits
from supervision.contract.request import RunRequest
from supervision.contract.usage import Usage
from supervision.run.run_state import RunState
from tests.unit.shapes import FINDING, START, Clock, plan, subtask

EVENTS = 20


def run_of(subtasks: int) -> RunState:
    """A run with 200 subtasks under way, and its other ones waiting."""
    clock = Clock()
    state = RunState(RunRequest(goal="Weigh the pears", budget={"tokens": 10**9}), clock, START)
    state.adopt(plan(*[subtask(f"t{i}") for i in range(subtasks)]))
    for _ in range(min(subtasks // 2, limits.MAX_PARALLEL)):
        begin_next(state)
    return state


def begin_next(state: RunState) -> None:
    """Begins the next subtask the way a dispatch does."""
    board, budget = state.board, state.time_and_budget
    assert board.skip_blocked() == []
    subtask_id = next(board.ready())
    assert board.in_flight().get("hand", 0) == board.counts().running
    board.begin(subtask_id, "hand")
    board.start(subtask_id, f"run/{subtask_id}/1")
    state.trace.note("subtask_started", subtask_id)
    assert budget.ledger.grant(f"{subtask_id}.0", budget.shares(board.agents(limits.MAX_PARALLEL))) is not None
    assert not state.flags.waiting_provider


def settle(state: RunState, subtask_id: str) -> None:
    """Ends a subtask with a finding."""
    used = Usage(model_calls=1, input_tokens=10)
    state.time_and_budget.ledger.settle(f"{subtask_id}.0", used)
    state.board.record(subtask_id, 1, used)
    state.board.complete(subtask_id, FINDING)
    assert state.has_finding


def calls_of(action: Callable[[], None]) -> int:
    """Returns the function calls that an action takes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def calls_of_events(subtasks: int) -> int:
    """Returns the function calls that some events take."""
    state, calls = run_of(subtasks), 0

    def event() -> None:
        settle(state, subtask_id)
        begin_next(state)

    for _ in range(EVENTS):
        subtask_id = next(report.id for report in state.board.reports() if report.state == "running")
        calls += calls_of(event)
    return calls


def test_an_event_costs_the_same_in_a_plan_of_any_size() -> None:
    small, large = calls_of_events(500), calls_of_events(limits.MAX_SUBTASKS)
    assert large < 1.05 * small


def test_the_end_of_a_subtask_costs_its_dependents_not_the_plan() -> None:
    def calls(others: int) -> int:
        state = run_of(2)
        chain = [subtask("a"), subtask("b", "a"), subtask("c", "a", "b")]
        state.adopt(plan(*chain, *[subtask(f"x{i}", "c") for i in range(others)]))
        board = state.board
        board.start("a", "run/a/1")

        def end() -> None:
            board.complete("a", FINDING)
            board.skip_blocked()

        counted = calls_of(end)
        assert next(board.ready()) == "b"
        return counted

    assert calls(900) == calls(9)
