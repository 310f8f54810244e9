"""Inputs and replies of activities, with the parts that they share: references, never content.

The models of all `*contracts` modules, and inputs and replies of questions, are history: fields may
be added with defaults, never renamed or removed while recorded runs live. A *reference* is a key of
the artifact store; a *head* is the reference of the last entry of a conversation.
"""

import zlib
from base64 import b64decode, b64encode
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    WrapSerializer,
)
from pydantic_core import from_json, to_json

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import MODEL_QUEUE, OUTWARD_QUEUE
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import Model, Paragraph
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.finding import ArtifactRef, Labels, Read
from temporal_supervisor.supervision.contract.model_choice import Effort, OptionalStep
from temporal_supervisor.supervision.contract.plan import Estimate, Plan, Shares
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.result import Gap, Problem, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.status import WaitKind
from temporal_supervisor.supervision.contract.strategy import StrategyName
from temporal_supervisor.supervision.contract.team import TeamCard
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts
from temporal_supervisor.supervision.results.answer import Answer
from temporal_supervisor.supervision.run.board import Board

# Long lists are compressed: of a thousand findings the names of the fields alone would fill a
# payload.
# Up to here a value stays as people read it in the Web UI: some forty findings.
_SHOWN_BYTES = 16 * 1024
_UNPACKED_BYTES = 1024 * 1024  # a thousand findings with the longest names take 0.8 MiB


class DependencyRef(Model):
    """A finding to build on.

    `complete` is False if its worker agent was stopped early. `partial` is True if its author says
    so, `stale` if a finding that it uses has changed since. `record_ref` is the reference of its
    FindingRecord, `output_ref` of its JSON object.
    """

    subtask_id: str
    role: str
    text_ref: str
    bytes: int = 0
    weight: float = 0.5
    complete: bool = True
    partial: bool = False
    stale: bool = False
    record_ref: str = ""
    output_ref: str = ""


def as_refs(reports: list[SubtaskReport], board: Board | None = None) -> list[DependencyRef]:
    """Returns references to the findings in some reports, with the weights of the board."""
    return [
        DependencyRef(
            subtask_id=report.id,
            role=report.role,
            text_ref=report.finding.text_ref,
            bytes=report.finding.text_bytes,
            weight=board.subtask(report.id).weight if board else 0.5,
            complete=report.state == "completed",
            partial=report.finding.outcome == "partial",
            stale=report.stale,
            record_ref=report.finding.record_ref,
            output_ref=report.finding.output_ref,
        )
        for report in reports
        if report.finding
    ]


def shown_gaps(gaps: list[Gap]) -> list[Gap]:
    """Returns the gaps for a prompt: the first ones with short reasons, the others as ids."""
    return [
        Gap(
            subtask_id=gap.subtask_id,
            description=gap.description if place < limits.GAPS_SHOWN else "",
            reason=cut(gap.reason, limits.SENTENCE_BYTES) if place < limits.GAPS_SHOWN else "",
        )
        for place, gap in enumerate(gaps)
    ]


def _pack(value: Any, dump: SerializerFunctionWrapHandler) -> Any:
    shown = dump(value)
    written = to_json(shown)
    # What is too long is refused as it stands.
    if not _SHOWN_BYTES < len(written) <= _UNPACKED_BYTES:
        return shown
    return {"zlib": b64encode(zlib.compress(written)).decode()}


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict) or "zlib" not in value:
        return value
    try:  # beyond the bound it is no whole JSON
        return from_json(
            zlib.decompressobj().decompress(
                b64decode(value["zlib"], validate=True), _UNPACKED_BYTES
            )
        )
    except (zlib.error, TypeError) as error:
        raise ValueError("this is not compressed JSON") from error


FindingRefs = Annotated[list[DependencyRef], BeforeValidator(_unpack), WrapSerializer(_pack)]
PackedPlan = Annotated[Plan | None, BeforeValidator(_unpack), WrapSerializer(_pack)]


class RunRef(Model):
    """The root run that an activity works for.

    `first_run_id` stays the same over resets and is a part of the run's keys. `files_ref` is the
    manifest of the user's data, `date` the day of the root's start. `grant_ref` is the grant of one
    supervisor.
    """

    run_id: str
    store_id: str = ""
    first_run_id: str = ""
    grant_ref: str = ""
    files_ref: str = ""
    date: str = ""


class CallTerms(NamedTuple):
    """The terms of a call: its `step` in the journal, its `work`, label and reply tokens."""

    step: str
    work: str
    summary: str
    max_tokens: int


class SupervisorCall(Model):
    """The common fields of a supervisor's questions to its model.

    `steers` are people's words since the last question.
    """

    run: RunRef
    goal_ref: str
    plan_ref: str = ""
    model: str
    effort: Effort | None = None
    steers: list[str] = []

    @property
    def terms(self) -> CallTerms:
        """The terms of the call."""
        raise NotImplementedError


class SupervisorReply(Model):
    """The common fields of replies; `problem` is the reason why an answer could not be read."""

    head: str
    refusal: str | None = None
    problem: str = ""
    usage: Usage


class SubtaskBrief(Model):
    """The brief of a worker agent: its subtask, the findings that it builds on, and missing ones.

    `description_ref` replaces the plan's description by a refined one. In a round of review
    `feedback` names the faults of the finding at `previous_ref`. `names_items` is True if the
    finding has to name items for a template. `effects` are earlier calls with side effects for the
    subtask. `labels` cover all texts in the brief.
    """

    plan_ref: str
    subtask_id: str
    dependencies: FindingRefs = []
    missing: list[Gap] = []
    attachments: list[ArtifactRef] = []
    description_ref: str | None = None
    feedback: str | None = None
    previous_ref: str | None = None
    names_items: bool = False
    effects: Annotated[list[str], Field(exclude_if=lambda effects: not effects)] = []
    labels: Read = Labels()


class SetupInput(Model):
    """The input of a run's first activity.

    A nested supervisor has a `brief`. `own_first_run_id` differs from the execution's id after a
    reset.
    """

    run: RunRef
    request: RunRequest
    brief: SubtaskBrief | None = None
    own_first_run_id: str = ""


class ProcessFacts(Model):
    """Facts about the process in which a run begins, which the run keeps.

    `extracts` is True if its model is the stand-in: an extract is no answer, so the run has no
    confidence. `model_off` lists the steps to leave out, by model name or pattern.
    """

    tools_queue: str
    outward_queue: str = OUTWARD_QUEUE
    model_queue: str = MODEL_QUEUE
    search_attributes: list[str] = []
    notices: bool = False
    warnings: list[str] = []
    model_notice: str | None = None
    extracts: bool = False
    model_off: dict[str, list[OptionalStep]] = {}
    ceilings: Ceilings = Ceilings()


class RunSetup(ProcessFacts):
    """Everything that a run depends on in addition to its request, fixed when it starts.

    A prompt of the supervisor has room for findings of `prompt_tokens`. `data_labels` are the
    labels of the user's data. `endpoint` has the known traits of the run's models. `reviewed` is
    False where the reviewer would be the small model that made the findings. `earlier_ref` is the
    reference of the runs that this one builds on, with the `earlier_labels`.
    """

    store_id: str
    grant_ref: str = ""
    goal_ref: str
    team_ref: str
    team: TeamCard
    supervisor_models: list[str]
    prompt_tokens: int = limits.CONTEXT_TOKENS
    endpoint: EndpointFacts = EndpointFacts()
    reviewed: bool = True
    answer_schema_ref: str | None = None
    attachments: list[ArtifactRef] = []
    files_ref: str = ""
    data_labels: Read = Labels()
    was_reset: bool = False
    earlier_ref: Annotated[str, Field(exclude_if=lambda ref: not ref)] = ""
    earlier_labels: Read = Labels()

    @property
    def prompt_bytes(self) -> int:
        """The room for stored texts in a prompt, in bytes."""
        return int(self.prompt_tokens * limits.CHARS_PER_TOKEN)


class RunFacts(Model):
    """Facts about a run in addition to its result.

    The `owner` is the one that its request claims; its last plan is at `plan_ref`.
    """

    goal_ref: str
    team: str
    phase: Phase
    error: Problem | None = None
    notice: str | None = None
    owner: str = ""
    began_at: str = ""
    plan_ref: str = ""


class PublishInput(Model):
    """The result of a run, to be stored with the complete texts behind its references.

    A result with many subtasks has only the last ones: `pages` are the references of the others,
    each stored by an input that `is_page`. The usage of a root is kept for `team`; its first plan
    had `planned` subtasks and the shown `estimate`.
    """

    run: RunRef
    result: RunResult
    is_page: bool = False
    pages: list[str] = []
    plan_ref: str | None = None
    answer_json_ref: str | None = None
    team: str | None = None
    planned: int = 0
    estimate: Shares | None = None
    facts: RunFacts | None = None


class Published(Model):
    """The references of a run's stored result, trace and answer.

    `record_ref` is set for a nested run, whose answer is a finding of the run above. An ended run
    stores its `facts` and its `first_run_id`, which distinguishes runs with the same id.
    """

    result_ref: str
    trace_ref: str = ""
    answer_ref: str | None = None
    record_ref: str = ""
    facts: RunFacts | None = None
    first_run_id: Annotated[str, Field(exclude_if=lambda run_id: not run_id)] = ""


NoticeKind = WaitKind | Literal["paused", "ended"]


class Notice(Model):
    """A notice to the operator: how a run has ended, or the `kind` and `id` of a wait."""

    run: RunRef
    event: Literal["waiting", "ended", "failed"]
    kind: NoticeKind
    id: str | None = None
    status: Literal["running", "completed", "partial", "failed", "cancelled"]
    error: str | None = None
    confidence: float | None = None
    owner: str = ""
    at: str


class ChildRef(Model):
    """A child workflow of a supervisor."""

    run: RunRef
    workflow_id: str


class Consumed(Model):
    """The usage and the turns of a child over all executions, from the journal of its calls."""

    usage: Usage = Usage()
    turns: int = 0


class AdoptInput(Model):
    """A finding that becomes the run's answer word for word, under its label if it has one."""

    run: RunRef
    text_ref: str
    label: str | None = None


class PersonWords(Model):
    """A text written by a person, a reply or a finding; `source` names the person."""

    text: str
    source: str


class WordsInput(Model):
    """Texts that people wrote for a run at the same time."""

    run: RunRef
    words: list[PersonWords]


class WorkNote(Model):
    """A subtask of an earlier revision, for the planner's prompt."""

    subtask_id: str
    role: str
    state: str
    note: str


class PlanInput(SupervisorCall):
    """One try at a plan; `problems` are the faults of the previous try.

    From revision 2 on `plan_ref` is the current plan and `done` its state: the reply only adds to
    it; `missing` lists points that a review misses in it. `own_plan` is a plan of the run's caller,
    or one that a person edited: it is checked, and no model is asked. `comment` is a person's
    request to change the plan at `head`. With `nesting_left` 0 no role that is a team is usable.
    With `estimates` the reply estimates the plan's usage. `earlier_ref` is the reference of the
    runs that this one builds on, whose findings a plan may name.
    """

    team_ref: str
    attachments: list[ArtifactRef] = []
    max_subtasks: int
    max_turns: int = limits.MAX_TURNS
    max_tokens: int = limits.PLAN_MAX_TOKENS
    answer_schema_ref: str | None = None
    strategy: StrategyName = "auto"
    nesting_left: int = 0
    done: list[WorkNote] = []
    missing: list[str] = []
    own_plan: PackedPlan = None
    comment: str = ""
    estimates: bool = False
    earlier_ref: Annotated[str, Field(exclude_if=lambda ref: not ref)] = ""
    revision: int = 1
    attempt: int = 1
    head: str | None = None
    problems: list[str] = []

    @property
    def terms(self) -> CallTerms:
        """Names the step after the revision and the try."""
        summary = "the goal" if self.revision == 1 else f"revision {self.revision}"
        if self.attempt > 1:
            summary += f", try {self.attempt}"
        work = "the plan" if self.own_plan else "a plan"
        return CallTerms(f"plan.{self.revision}.{self.attempt}", work, summary, self.max_tokens)


class PlanReply(SupervisorReply):
    """A plan that can run, with descriptions cut to fit, or the problems with the reply.

    `team_ref` and `team` include the roles that the plan defines. `unknown_roles` maps subtasks to
    roles that the planner invented: the generalist does these. `put_right` lists other corrections
    of the planner's reply. `answer` belongs to a direct answer, whose text is in the plan.
    `finished` is True if nothing more is needed, `incapable` if no role has a required capability,
    `without_subtasks` if a plan, or an addition to one, has no work in it.
    """

    plan: PackedPlan = None
    plan_ref: str | None = None
    answer: Answer = Answer()
    strategy: StrategyName = "plan"
    team_ref: str | None = None
    team: TeamCard | None = None
    finished: bool = False
    incapable: bool = False
    without_subtasks: bool = False
    unknown_roles: dict[str, str] = {}
    put_right: list[Paragraph] = []
    estimate: Estimate | None = None
    problems: list[Paragraph] = []

    def model_post_init(self, _: Any) -> None:
        """Completes a reply that was recorded before there was `without_subtasks`."""
        if "without_subtasks" not in self.model_fields_set:
            self.without_subtasks = any("no subtasks" in problem for problem in self.problems)


class ExpandInput(Model):
    """A template to expand into at most `room` subtasks.

    `named_ref` has the lists of items that findings named.
    """

    run: RunRef
    plan_ref: str
    team_ref: str = ""
    template: str
    named_ref: list[str] = []
    attachments: list[ArtifactRef] = []
    room: int


class ExpandReply(Model):
    """The next revision of the plan, and the part of it for the briefs of the new items.

    `found` counts all items, including `unread` files.
    """

    plan: PackedPlan = None
    plan_ref: str = ""
    items_ref: str = ""
    found: int = 0
    unread: int = 0
    problem: str = ""


class TableInput(Model):
    """The findings of completed items; `answer_schema_ref` is the schema of the run's answer."""

    run: RunRef
    plan_ref: str
    team_ref: str
    findings: FindingRefs
    answer_schema_ref: str | None = None


class TableReply(Model):
    """The `tables` of templates as CSV.

    One template may fill the answer: `fills` is its id, and `answer_json` its table if that is
    short. `first_rows` stands for the findings of its items, and `problem` names items that are not
    among the rows. `lacks` describes, by template, tables with mostly empty columns.
    """

    tables: list[ArtifactRef] = []
    lacks: dict[str, str] = {}
    fills: str = ""
    answer_json: JsonValue = None
    answer_json_ref: str | None = None
    first_rows: DependencyRef | None = None
    problem: str = ""
