"""The state of a run's answer: its text, what comes with it, open points, stored references."""

from collections.abc import Sequence

from temporal_supervisor.supervision.contract.finding import ArtifactRef
from temporal_supervisor.supervision.contract.result import Contradiction, Gap, Problem
from temporal_supervisor.supervision.results.answer import ANSWER, Answer, findings_as_answer
from temporal_supervisor.supervision.run.board import Board

PLAN_GAP = "plan"  # in place of a subtask's id


class OpenPoints:
    """The points that reviews found and that are still open: each is a gap of the answer."""

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


class AnswerState:
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
        """True if the current text is anything but the list of the findings."""
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


class PublishedRefs:
    """The references of a run's stored result, trace and answer; none until they are stored."""

    def __init__(self, answer: AnswerState) -> None:
        self.result_ref: str | None = None
        self.trace_ref: str | None = None
        self._answer = answer

    def set_refs(self, result_ref: str, trace_ref: str | None, answer_ref: str | None) -> None:
        """Sets the references, once all three are stored."""
        self.result_ref = result_ref
        self.trace_ref = trace_ref
        self._answer.set_ref(answer_ref)
