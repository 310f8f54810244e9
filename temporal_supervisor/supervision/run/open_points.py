"""The points that reviews found and that are still open: each is a gap of the answer."""

from collections.abc import Sequence

from temporal_supervisor.supervision.contract.result import Gap
from temporal_supervisor.supervision.run.board import Board

PLAN_GAP = "plan"  # in place of a subtask's id


class OpenPoints:
    """Gaps in completed subtasks and in the plan itself."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._of_subtasks: dict[str, Gap] = {}
        self._of_plan: list[Gap] = []

    def set_gap(self, subtask_id: str, reason: str) -> None:
        """Sets the gap in a completed subtask, or in a part of the answer."""
        is_known = subtask_id in self._board
        description = self._board.subtask(subtask_id).description if is_known else ""
        gap = Gap(subtask_id=subtask_id, description=description, reason=reason)
        self._of_subtasks[subtask_id] = gap

    def resolve(self, subtask_id: str) -> None:
        """Removes the gap in a subtask that has a better finding now."""
        self._of_subtasks.pop(subtask_id, None)

    def set_of_plan(self, points: Sequence[str]) -> None:
        """Sets the gaps of the plan: points of the goal that no subtask covers."""
        reason = "no subtask of the plan covers it"
        blank = Gap(subtask_id=PLAN_GAP, reason=reason)
        self._of_plan = [blank.model_copy(update={"description": point}) for point in points]

    @property
    def of_subtasks(self) -> list[Gap]:
        """The gaps in subtasks and in parts of the answer."""
        return list(self._of_subtasks.values())

    @property
    def all_points(self) -> list[Gap]:
        """All open points, the plan's last."""
        return [*self._of_subtasks.values(), *self._of_plan]

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of an answer: subtasks that failed, partial findings, and open points."""
        partial = self._board.partial_findings()
        others = [gap for gap in partial if gap.subtask_id not in self._of_subtasks]
        return [*self._board.gaps(), *others, *self.all_points]

    def all_as_gaps(self, reason: str) -> list[Gap]:
        """Returns a gap for each subtask of the last revision, because no finding is used.

        Failed subtasks keep their own reason.
        """
        of_failed = {gap.subtask_id: gap for gap in self._board.gaps()}
        gaps = []
        for report in self._board.current():
            if report.template is None:
                unused = Gap(subtask_id=report.id, description=report.description, reason=reason)
                gaps.append(of_failed.get(report.id, unused))
        return gaps
