"""What the unit tests draw and build: plans of any shape, reports, a clock that moves when told."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.result import Problem, SubtaskReport
from temporal_supervisor.supervision.run.board import Board

WORDS = "find the sales of one region"
START = datetime(2026, 1, 1, tzinfo=UTC)

FINDING = Finding(summary="42", text_ref="run/outputs/abc")
ERROR = Problem(type="TurnLimit", message="no finding after 10 turns")

any_text = st.text(st.characters() | st.sampled_from("\ud800\udfff\x00\x1b\x85\u2028\n\r\t …é漢🦜"))


class Clock:
    """A run's clock."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def tick(self, seconds: float = 1.0) -> None:
        self.at += timedelta(seconds=seconds)


def subtask(subtask_id: str, *depends_on: str, **more: Any) -> Subtask:
    return Subtask(**{"id": subtask_id, "description": WORDS, "depends_on": list(depends_on), **more})


def plan(*subtasks: Subtask) -> Plan:
    return Plan(goal="g", subtasks=list(subtasks))


def end(board: Board, subtask_id: str, outcome: str = "completed", finding: Finding | None = None) -> None:
    if outcome == "completed":
        board.complete(subtask_id, finding or FINDING)
    else:
        board.end(subtask_id, "failed" if outcome == "failed" else "cancelled", ERROR, finding)


def work(board: Board, subtask_id: str, outcome: str = "completed", finding: Finding | None = None) -> None:
    """Begins and ends an attempt."""
    board.start(subtask_id, "hand")
    end(board, subtask_id, outcome, finding)


def completed(*subtask_ids: str, candidate: Plan) -> Board:
    """A board on which those subtasks have a finding."""
    board = Board(candidate, Clock())
    for subtask_id in subtask_ids:
        work(board, subtask_id)
    return board


@st.composite
def acyclic_plans(draw: st.DrawFn, max_size: int = 12) -> Plan:
    """Plans that can run; the order of the plan is not the order of the dependencies."""
    ids = [f"t{n}" for n in range(draw(st.integers(1, max_size)))]
    subtasks = [
        subtask(subtask_id, *draw(st.lists(st.sampled_from(ids[:n]), unique=True, max_size=4) if n else st.just([])))
        for n, subtask_id in enumerate(ids)
    ]
    return plan(*draw(st.permutations(subtasks)))


@st.composite
def any_plans(draw: st.DrawFn) -> Plan:
    """Graphs with loops, strangers and twins as often as without."""
    ids = draw(st.lists(st.sampled_from([f"t{n}" for n in range(7)]), min_size=1, max_size=7))
    known = st.sampled_from(["t0", "t1", "t2", "t3", "t4", "t5", "t6"])
    return plan(*[subtask(subtask_id, *draw(st.lists(known, max_size=2))) for subtask_id in ids])


def report(subtask_id: str, seconds: float | None, *depends_on: str) -> SubtaskReport:
    """A completed subtask that took `seconds`, or one that never started."""
    if seconds is None:
        return SubtaskReport(id=subtask_id, depends_on=list(depends_on), state="skipped")
    return SubtaskReport(
        id=subtask_id,
        depends_on=list(depends_on),
        state="completed",
        started_at=START.isoformat(),
        finished_at=(START + timedelta(seconds=seconds)).isoformat(),
    )
