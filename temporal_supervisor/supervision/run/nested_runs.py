"""The nested supervisors below a run: what each last reported, in sums and as waits, never their subtasks."""

from temporal_supervisor.supervision.contract.progress import Counts, NestedRun, Phase
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.run.board import Board

NESTED_STEPS = 20  # reports of a nested run on its progress: each costs two histories some five events


class NestedRuns:
    """Nested supervisors by the subtask that they work on, or worked on last, which shows them on the `board`."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._runs: dict[str, NestedRun] = {}
        self._waits: dict[str, list[Wait]] = {}  # of those at work

    def begin(self, subtask_id: str) -> None:
        """Takes up the nested supervisor that begins to work on a subtask."""
        self._waits[subtask_id] = []
        self._set(subtask_id, NestedRun())

    def report(self, subtask_id: str, run: NestedRun, waits: list[Wait]) -> None:
        """Takes over what a nested supervisor at work reports."""
        self._waits[subtask_id] = [wait.below(subtask_id) for wait in waits]
        self._set(subtask_id, run)

    def end(self, subtask_id: str, run: NestedRun | None = None) -> None:
        """Ends the nested supervisor of a subtask; without a `run` it has left nothing."""
        del self._waits[subtask_id]
        left = {"phase": "failed", "status": "partial"}
        self._set(subtask_id, run or self._runs[subtask_id].model_copy(update=left))

    def _set(self, subtask_id: str, run: NestedRun) -> None:
        self._runs[subtask_id] = self._board[subtask_id].nested = run

    @property
    def counts(self) -> Counts:
        """The subtasks of all of them, on all levels."""
        return sum((run.counts for run in self._runs.values()), Counts())

    @property
    def usage(self) -> Usage:
        """The usage of those at work so far; that of ended ones is booked."""
        return sum((self._runs[subtask_id].usage for subtask_id in self._waits), Usage())

    @property
    def has_finding(self) -> bool:
        """True if there is a finding in one of those at work."""
        return any(self._runs[subtask_id].counts.completed for subtask_id in self._waits)

    def waits(self) -> list[Wait]:
        """Returns the waits of those at work, on all levels."""
        return [wait for waits in self._waits.values() for wait in waits]


def milestone(phase: Phase, counts: Counts) -> tuple[object, ...]:
    """Returns a value that changes when a report is worth sending.

    Ended subtasks count in steps of a NESTED_STEPS-th of all: reports would otherwise grow with the run.
    """
    step = max(1, counts.total // NESTED_STEPS)
    return phase, counts.running > 0, counts.completed > 0, counts.ended // step
