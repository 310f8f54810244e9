"""The answer of a run, and all that comes with it: draft, tables, contradictions, gaps."""

from collections.abc import Sequence

from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.result import Contradiction, Gap, Problem
from temporal_supervisor.supervision.results.answer import ANSWER, Answer, findings_as_answer
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.open_points import OpenPoints


class RunAnswer:
    """The answer of a run, from its first draft to its end.

    `current` is the answer itself, which is empty until it is written: until then readers see the
    `draft`. `tables` are of templates, with a row for each item. `missing_because` is the reason
    why a completed run has no answer; its text has the team's words then.
    """

    def __init__(self, board: Board, open_points: OpenPoints) -> None:
        self.current = Answer()
        self.draft = Answer()
        self.tables: list[ArtifactRef] = []
        self.contradictions: list[Contradiction] = []
        self.missing_because: Problem | None = None
        self._board = board
        self._open_points = open_points

    @property
    def gaps(self) -> list[Gap]:
        """The gaps of the answer: subtasks, parts of findings, and open points."""
        why = self.missing_because
        if why is None:
            return self._open_points.gaps
        gaps = self._open_points.all_as_gaps(f"its finding is not in the answer: {why.message}")
        return gaps or [Gap(subtask_id=ANSWER, reason=why.message)]

    @property
    def is_written(self) -> bool:
        """True if there is an answer, rather than the findings in its place."""
        return bool(self.current.text) and not self.current.is_findings

    def replace(self, answer: Answer) -> None:
        """Replaces the answer."""
        self.current = answer

    def replace_by_findings(self, why: str) -> None:
        """Replaces an answer that could not be written by the findings, if there is none yet."""
        if self.current.text:
            return
        listed = findings_as_answer(self._board.usable(), why)
        self.current = Answer(text=listed, is_findings=True)
        self._open_points.set_gap(ANSWER, f"no answer could be written: {why}")

    def replace_by_nothing(self, why: Problem, words: str) -> None:
        """Replaces the answer by the words of a run that completes without one.

        They contain no finding, so every subtask is a gap.
        """
        self.missing_because = why
        self.current = Answer(text=words)

    def replace_draft(self, draft: Answer) -> None:
        """Replaces the draft; an empty one removes it."""
        self.draft = draft

    def replace_tables(self, tables: Sequence[ArtifactRef]) -> None:
        """Replaces the tables of templates."""
        self.tables = [*tables]

    def add_contradiction(self, contradiction: Contradiction) -> None:
        """Adds a contradiction, unless there is one between the same subtasks."""
        known = [{*each.subtask_ids} for each in self.contradictions]
        if {*contradiction.subtask_ids} not in known:
            self.contradictions.append(contradiction)

    def set_ref(self, ref: str | None) -> None:
        """Sets the reference of the stored answer."""
        self.current = self.current.model_copy(update={"ref": ref})
