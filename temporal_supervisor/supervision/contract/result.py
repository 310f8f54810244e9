"""The result of a run: its answer, the findings and gaps behind it, its cost."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, field_serializer

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.base import (
    ErrorText,
    Heading,
    Model,
    Paragraph,
    Sentence,
)
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, Grounding
from temporal_supervisor.supervision.contract.plan import template_of
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun, RunStatus
from temporal_supervisor.supervision.contract.usage import Spend, Usage

SubtaskState = Literal["completed", "failed", "skipped", "cancelled", "running", "waiting"]


class Gap(Model):
    """A part that is missing from the answer, and the `reason`.

    `description` is the subtask's. `subtask_id` is `answer` if no answer could be written, and
    `answer_json` if the JSON does not fit its schema.
    """

    subtask_id: str
    description: Heading = ""
    reason: Paragraph


class Contradiction(Model):
    """Findings that disagree, and the way in which the answer resolves it."""

    subtask_ids: list[str] = []
    description: Paragraph
    resolution: Paragraph = ""


class Citation(Model):
    """A claim of the answer and the completed subtasks that support it."""

    claim: str
    subtask_ids: list[str] = []


class Unsupported(Model):
    """A figure, name, cause, quotation or URL that nothing supports.

    `where` is `answer`, `answer_json.<path>` or a subtask's id.
    """

    text: Sentence
    where: str


class Doubt(Model):
    """A reason to think that a query does not fit its subtask, or an answer its goal.

    `where` is the subtask's id, or `answer`.
    """

    text: Sentence
    where: str


class Problem(Model):
    """A failure: its kind, and a message for people."""

    type: ErrorKind
    message: ErrorText


class Reused(Model):
    """The origin of a finding from an earlier run, and the usage that it saved."""

    run_id: str
    subtask_id: str
    usage: Usage = Usage()

    @property
    def place(self) -> str:
        """The subtask with its run, such as `RUN/t2`."""
        return f"{self.run_id}/{self.subtask_id}"


class SubtaskReport(Model):
    """The state of one subtask; times are ISO 8601 in UTC.

    `held_seconds` is the time for which the run's clock was held meanwhile, in results only.
    `model` is the model of the last attempt, and `replaced_by` the subtask that took its place in a
    later revision. `gaps` are those of a nested supervisor's answer, which the run lists among its
    own. A template has the `counts` of its items, with left-out ones only in the total, and the
    state that follows from theirs. `reused` is set if the finding comes from an earlier run.
    """

    id: str
    role: str = ""
    description: str = ""
    depends_on: list[str] = []
    state: SubtaskState = "waiting"
    attempts: int = 0
    turns: int = 0
    finding: Finding | None = None
    error: Problem | None = None
    started_at: str | None = None
    finished_at: str | None = None
    held_seconds: float = 0.0
    usage: Usage = Usage()
    model: str | None = None
    workflow_id: str | None = None
    replaced_by: str | None = None
    stale: bool = False
    nested: NestedRun | None = None
    counts: Counts | None = None
    reused: Annotated[Reused | None, Field(exclude_if=lambda reused: reused is None)] = None
    gaps: Annotated[list[Gap], Field(exclude=True)] = []

    @property
    def template(self) -> str | None:
        """The template of an item; None for a subtask that a plan lists itself."""
        return template_of(self.id)

    @property
    def own_seconds(self) -> float:
        """The time that it took, without that for which the clock was held; 0 before its end."""
        if self.started_at is None or self.finished_at is None:
            return 0.0
        started = datetime.fromisoformat(self.started_at)
        whole = datetime.fromisoformat(self.finished_at) - started
        return whole.total_seconds() - self.held_seconds


class Timing(Model):
    """The times of a run in seconds.

    `sequential` is the sum over all subtasks and `critical_path` the longest chain, both without
    the time `held`, for which the clock was stopped. `speedup` is `sequential` divided by the rest
    of `wall`.
    """

    wall_seconds: float = 0.0
    held_seconds: float = 0.0
    sequential_seconds: float = 0.0
    critical_path_seconds: float = 0.0
    speedup: float = 0.0


class AnswerParts(Model):
    """An answer with its confidence, citations and unsupported claims.

    Its `grounding` is knowledge if part of its basis is.
    """

    status: RunStatus = "running"
    answer: str = ""
    answer_json: JsonValue = None
    confidence: float | None = None
    grounding: Grounding = "tools"
    gaps: list[Gap] = []
    contradictions: list[Contradiction] = []
    citations: list[Citation] = []
    unsupported: list[Unsupported] = []
    doubts: Annotated[list[Doubt], Field(exclude_if=lambda doubts: not doubts)] = []


class RunResult(AnswerParts):
    """The return value of a run.

    The partial result of a failed run is in its error details, and of a cancelled one in the store.
    `truncated` is True if texts were shortened to fit a payload. `result_ref` leads to the whole
    result, `trace_ref` to the events, and `answer_ref` to the text of the answer, which
    `answer_model` wrote. `saved` is the usage that findings of the runs in `reuse_from` saved.
    """

    subtasks: list[SubtaskReport] = []
    artifacts: list[ArtifactRef] = []
    usage: Usage = Usage()
    spend: list[Spend] = []
    timing: Timing = Timing()
    plan_revisions: int = 0
    warnings: list[str] = []
    reuse_from: list[str] = []
    saved: Annotated[Usage | None, Field(exclude_if=lambda saved: saved is None)] = None
    truncated: bool = False
    result_ref: str | None = None
    trace_ref: str | None = None
    answer_ref: str | None = None
    answer_model: str | None = None

    @property
    def reused(self) -> list[SubtaskReport]:
        """The subtasks whose findings were taken from earlier runs."""
        return [report for report in self.subtasks if report.reused is not None]

    @property
    def tables(self) -> list[ArtifactRef]:
        """The tables that code compiled from the items of templates."""
        templates = {report.id for report in self.subtasks if report.counts is not None}
        return [artifact for artifact in self.artifacts if artifact.subtask_id in templates]

    @field_serializer("subtasks", mode="wrap")
    def _lean(self, reports: list[SubtaskReport], dump: SerializerFunctionWrapHandler) -> Any:
        """Omits unset fields in long lists of a truncated result: they could fill a payload."""
        if not self.truncated or len(reports) <= limits.STATUS_PAGE:
            return dump(reports)
        return [
            {"state": r.state, **r.model_dump(mode="json", exclude_defaults=True)} for r in reports
        ]
