"""The result of a run: its answer, the findings and gaps behind it, its cost."""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, field_serializer

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.base import ErrorText, Heading, Model, Paragraph, Sentence
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Finding, Grounding
from temporal_supervisor.supervision.contract.plan import template_of
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun, RunStatus
from temporal_supervisor.supervision.contract.usage import Spend, Usage

SubtaskState = Literal["completed", "failed", "skipped", "cancelled", "running", "waiting"]


class Gap(Model):
    """A part that is missing from the answer.

    `description` is the subtask's, `reason` why it is missing. `description` is the subtask's,
    `reason` why it is missing. `subtask_id` is `answer` if no answer could be written,
    `answer_json` if that does not fit its schema.
    """

    subtask_id: str
    description: Heading = ""
    reason: Paragraph


class Contradiction(Model):
    """Findings that disagree, and how the answer settles it."""

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
    """A reason to think that a query asks for something else than its subtask, `where` is the subtask's id."""

    text: Sentence
    where: str


class Problem(Model):
    """A failure: its kind, and a message to read."""

    type: ErrorKind
    message: ErrorText


class Reused(Model):
    """The origin of a finding that was taken from an earlier run, and the usage that this saved."""

    run_id: str
    subtask_id: str
    usage: Usage = Usage()

    @property
    def place(self) -> str:
        """The subtask with its run, such as `RUN/t2`."""
        return f"{self.run_id}/{self.subtask_id}"


class SubtaskReport(Model):
    """One subtask as it ended, or as it stands; times are ISO 8601 in UTC.

    `held_seconds` is how long the run's clock stood still meanwhile, as a result has it: people
    were awaited. `model` is that of the last attempt, `replaced_by` the subtask that took its place
    in a later revision, `gaps` those of the nested supervisor's answer, which the run lists among
    its own. A template has the `counts` of its items, left-out ones in the total alone, and the
    state that they come to. A finding of an earlier run is `reused`.
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
        """The template of an item; None for a subtask that a plan names."""
        return template_of(self.id)


class Timing(Model):
    """Seconds.

    `sequential` is the time of all subtasks in a row, `critical_path` that of the longest chain.
    Both are without the time in which the clock stood still, `held`; `speedup` is `sequential` over
    the rest of `wall`.
    """

    wall_seconds: float = 0.0
    held_seconds: float = 0.0
    sequential_seconds: float = 0.0
    critical_path_seconds: float = 0.0
    speedup: float = 0.0


class AnswerParts(Model):
    """An answer, and what it says of itself.

    Its `grounding` is knowledge if a part of what it rests on is.
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

    A failed run has the partial one in its error details, a cancelled one in the store. `truncated`
    is True if texts were shortened to fit a payload; `result_ref` leads to the whole result,
    `trace_ref` to the events, `answer_ref` to the text of the answer, which `answer_model` wrote.
    Findings of the runs in `reuse_from` `saved` so much.
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
        """The tables that code made of the items of templates."""
        templates = {report.id for report in self.subtasks if report.counts is not None}
        return [artifact for artifact in self.artifacts if artifact.subtask_id in templates]

    @field_serializer("subtasks", mode="wrap")
    def _lean(self, reports: list[SubtaskReport], dump: SerializerFunctionWrapHandler) -> Any:
        """Leaves out unset fields in a long list of a truncated result: empty fields alone would fill a payload."""
        if not self.truncated or len(reports) <= limits.STATUS_PAGE:
            return dump(reports)
        return [{"state": r.state, **r.model_dump(mode="json", exclude_defaults=True)} for r in reports]
