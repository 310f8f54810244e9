"""Which subtasks may start: kept up to date with every change, it is what a look at the whole plan would find."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.plan import Plan
from supervision.contract.result import Problem
from supervision.run.board import Board
from tests.unit.shapes import FINDING, Clock, acyclic_plans

WHY = Problem(type="TurnLimit", message="it took too long")


def change(board: Board, subtask_id: str, way: int) -> None:
    """Has a subtask take one of the steps that its state allows."""
    match board[subtask_id].state:
        case "waiting":
            board.begin(subtask_id, "hand")
        case "running":
            board.complete(subtask_id, FINDING) if way == 0 else board.fail(subtask_id, WHY) if way == 1 else (
                board.put_back(subtask_id)
            )
        case "completed":
            board.reopen(subtask_id)


@given(acyclic_plans(), st.data())
def test_after_any_changes_it_is_what_a_look_at_the_plan_finds(shape: Plan, data: st.DataObject) -> None:
    board = Board(shape, Clock())
    steps = st.tuples(st.sampled_from([each.id for each in shape.subtasks]), st.integers(0, 2))
    for subtask_id, way in data.draw(st.lists(steps, max_size=16)):
        change(board, subtask_id, way)
        ready: list[str] = []
        blocked: list[str] = []
        for report in board.reports():
            states = {board[dependency].state for dependency in report.depends_on}
            if report.state == "waiting" and not states & {"waiting", "running"}:
                (ready if "completed" in states or not states else blocked).append(report.id)
        assert list(board.ready()) == ready
        if way == 2:
            assert set(blocked) <= set(board.skip_blocked())
