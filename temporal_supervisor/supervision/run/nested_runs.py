"""The nested supervisors of a run: their grants, reports and ends.

A nested supervisor is a run with a fixed grant. While it works, its parent knows only how many of
its waits need people, and what it has spent.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from temporal_supervisor.supervision.base.limits import NESTED_SUBTASKS_LEAST
from temporal_supervisor.supervision.budget.ledger import Amount, Ledger
from temporal_supervisor.supervision.contract.plan import Subtask
from temporal_supervisor.supervision.contract.progress import NestedRun
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.run.board import Board

SPENT_STEPS = 20  # reports on what is spent: each costs two histories some five events
_STEP_WITHOUT_BUDGET = 50_000  # tokens


class NestedGrant(Amount):
    """The fixed grant of a nested run: budget, slots for worker agents, and subtasks.

    `subtasks` limits the number in its plans and in those of all runs below it.
    """

    slots: int
    subtasks: int


@dataclass
class _AtWork:
    """A nested run at work; `waits_for_people` is True if only people can let it continue."""

    subtask_id: str
    grant: NestedGrant
    waits_for_people: bool = False


class NestedRuns:
    """The nested runs of a supervisor; the `board` shows each with its subtask."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._at_work: dict[str, _AtWork] = {}  # by workflow id
        self._named = 0  # by those that have ended

    def begin(self, workflow_id: str, subtask_id: str, grant: NestedGrant) -> None:
        """Adds a nested run that begins to work on a subtask."""
        self._at_work[workflow_id] = _AtWork(subtask_id, grant)
        self._board.set_nested(subtask_id, NestedRun(workflow_id=workflow_id))

    def report(self, workflow_id: str, waits: int, spent: Usage, *, waits_for_people: bool) -> bool:
        """Records the report of a nested run; returns False if none at work has that id."""
        run = self._at_work.get(workflow_id)
        if run is None:
            return False
        run.waits_for_people = waits_for_people
        shown = NestedRun(workflow_id=workflow_id, waits=waits, spent=spent)
        self._board.set_nested(run.subtask_id, shown)
        return True

    def end(self, workflow_id: str, left: NestedRun | None = None) -> None:
        """Ends a nested run with its result `left`; unused parts of its grant become free."""
        run = self._at_work.pop(workflow_id, None)
        if run is None:
            return
        known = left or self._last_report(run).model_copy(update={"waits": 0, "status": "partial"})
        self._named += known.named
        shown = known.model_copy(update={"workflow_id": workflow_id})
        self._board.set_nested(run.subtask_id, shown)

    def _last_report(self, run: _AtWork) -> NestedRun:
        return self._board[run.subtask_id].nested or NestedRun()

    @property
    def spent(self) -> Usage:
        """The last reported usage of nested runs at work; ended ones are booked elsewhere."""
        return sum((self._last_report(run).spent for run in self._at_work.values()), Usage())

    @property
    def waits(self) -> int:
        """The number of waits for people in nested runs at work."""
        return sum(self._last_report(run).waits for run in self._at_work.values())

    @property
    def waiting_for_people(self) -> set[str]:
        """The subtasks whose nested runs can continue only with a person's decision."""
        return {run.subtask_id for run in self._at_work.values() if run.waits_for_people}

    @property
    def slots_waiting_for_people(self) -> int:
        """The number of slots that these nested runs keep meanwhile."""
        return sum(run.grant.slots for run in self._at_work.values() if run.waits_for_people)

    @property
    def subtasks(self) -> int:
        """The number of subtasks that nested runs have planned, or may still plan."""
        return self._named + sum(run.grant.subtasks for run in self._at_work.values())


class NestedShares:
    """The shares of nested runs that begin; a run may plan `most_subtasks` in all."""

    def __init__(
        self,
        board: Board,
        nested: NestedRuns,
        ledger: Ledger,
        most_subtasks: Callable[[], int],
    ) -> None:
        self._board = board
        self._nested = nested
        self._ledger = ledger
        self._most_subtasks = most_subtasks

    @property
    def subtasks_left(self) -> int:
        """The number of subtasks that later plans and nested runs may still add."""
        return max(0, self._most_subtasks() - self._board.named_count - self._nested.subtasks)

    def subtasks_for(self, subtask_id: str, is_team: Callable[[Subtask], bool]) -> int:
        """Returns the number of subtasks for a nested run that begins; 0 if there are too few.

        Other subtasks that have not started get a share if their role `is_team`.
        """
        teams = filter(is_team, self._others_without_grant(subtask_id))
        others = [each.weight for each in teams]
        weight = self._board.subtask(subtask_id).weight
        share = share_of_subtasks(self.subtasks_left, weight, others)
        return share if share >= NESTED_SUBTASKS_LEAST else 0

    def slices_for(self, subtask_id: str) -> float:
        """Returns the number of slices of the free budget, of which a nested run gets one."""
        others = [each.weight for each in self._others_without_grant(subtask_id)]
        own = portion(self._board.subtask(subtask_id).weight, others)
        return 1 / own if own else math.inf

    def _others_without_grant(self, subtask_id: str) -> list[Subtask]:
        """Returns the other subtasks that have not started, or hold no budget now.

        Several may begin at once, so each counts until it has its own grant.
        """
        others: list[Subtask] = []
        for report in self._board.unfinished():
            if report.id != subtask_id and not self._ledger.has_grant(report.workflow_id):
                others.append(self._board.subtask(report.id))
        return others


def portion(weight: float, others: Sequence[float]) -> float:
    """Returns a subtask's share by weight among `others` that have not started, from 0 to 1."""
    total = weight + sum(others)
    return weight / total if total else 1 / (1 + len(others))


def share_of_subtasks(free: int, weight: float, others: Sequence[float]) -> int:
    """Returns a nested run's share of the `free` subtasks; `others` may get some too.

    Each gets the minimum, and the rest is divided by weight.
    """
    spare = free - NESTED_SUBTASKS_LEAST * (1 + len(others))
    if spare < 0:
        return min(free, NESTED_SUBTASKS_LEAST)
    return NESTED_SUBTASKS_LEAST + int(spare * portion(weight, others))


def spent_step(spent: Usage, budget_tokens: int | None) -> int:
    """Returns a number that grows whenever the spent usage is worth a report."""
    total = budget_tokens or SPENT_STEPS * _STEP_WITHOUT_BUDGET
    return spent.tokens // max(1, total // SPENT_STEPS)
