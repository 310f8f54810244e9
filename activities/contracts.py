"""What goes in and out of the activities: small values and references, never content.

These models are history: fields may be added with defaults, never renamed or removed while recorded runs live.
A *reference* is a key of the artifact store. A *head* is the reference of a conversation's last entry.
"""

from pydantic import JsonValue

from supervision.base import Model
from supervision.finding import ArtifactRef
from supervision.plan import Plan
from supervision.request import RunRequest
from supervision.result import Citation, Contradiction, Gap, RunResult
from supervision.status import TraceEvent
from supervision.team import TeamCard
from supervision.usage import Usage


class RunRef(Model):
    """The run an activity works for, and the store its content lives in."""

    run_id: str
    store_id: str


class AttachmentRef(Model):
    """An attachment by name and reference."""

    name: str
    ref: str
    bytes: int = 0


class SetupInput(Model):
    """The first activity's input; a local activity, so the request is not written to history again."""

    run_id: str
    request: RunRequest


class RunSetup(Model):
    """Everything outside the request that this run's course depends on, fixed at its start."""

    store_id: str
    goal_ref: str
    team_ref: str
    team: TeamCard
    supervisor_model: str
    attachments: list[AttachmentRef] = []
    tools_queue: str
    search_attributes: list[str] = []
    warnings: list[str] = []
    model_notice: str | None = None


class PlanInput(Model):
    """One try at a plan; `head` and `problems` carry on from a try that failed."""

    run: RunRef
    goal_ref: str
    team_ref: str
    model: str
    attachments: list[AttachmentRef] = []
    max_subtasks: int
    direct_answer_allowed: bool = True
    revision: int = 1
    attempt: int = 1
    head: str | None = None
    problems: list[str] = []


class PlanReply(Model):
    """A plan that can run, or the problems with what came. `plan` may hold shortened descriptions."""

    head: str
    plan: Plan | None = None
    plan_ref: str | None = None
    problems: list[str] = []
    refusal: str | None = None
    usage: Usage


class DependencyRef(Model):
    """A finding to build on; `complete` is False for what a stopped worker agent had."""

    subtask_id: str
    role: str
    text_ref: str
    complete: bool = True


class SubtaskBrief(Model):
    """What a worker agent is told: its subtask by reference, what it builds on, what is missing."""

    goal_ref: str
    plan_ref: str
    subtask_id: str
    dependencies: list[DependencyRef] = []
    missing: list[Gap] = []
    attachments: list[AttachmentRef] = []


class ToolResultRef(Model):
    """The outcome of one tool call by reference, or as `text` when no tool ran."""

    call_id: str
    ref: str = ""
    text: str | None = None
    is_error: bool = False


class TurnInput(Model):
    """One model call of a worker agent: the brief on the first turn, afterwards the head and what is new."""

    run: RunRef
    team_ref: str
    role: str
    model: str
    step: str
    brief: SubtaskBrief | None = None
    head: str | None = None
    results: list[ToolResultRef] = []
    note: str | None = None
    max_tokens: int


class ToolCall(Model):
    """A tool call that the model asks for; its arguments stay in the conversation."""

    call_id: str
    name: str
    arguments_sha256: str
    preview: str = ""


class ConclusionRef(Model):
    """A worker agent's last message, read: its text by reference."""

    text_ref: str
    confidence: float | None = None
    limitations: list[str] = []


class TurnReply(Model):
    """A model's reply: `preview` is at most 2 KB of its text, `stop_detail` explains a refusal."""

    head: str
    stop_reason: str
    stop_detail: str | None = None
    preview: str = ""
    calls: list[ToolCall] = []
    conclusion: ConclusionRef | None = None
    usage: Usage


class ToolInput(Model):
    """One tool call: the arguments are read from the conversation at `head`."""

    run: RunRef
    team_ref: str
    role: str
    head: str
    call: ToolCall
    attachments: list[AttachmentRef] = []


class ToolReply(Model):
    """The outcome of a tool call; `preview` is at most 512 bytes of the output."""

    result: ToolResultRef
    preview: str = ""
    sources: list[str] = []
    artifacts: list[ArtifactRef] = []


class SynthesisInput(Model):
    """Findings to write the answer from, and what is missing."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    findings: list[DependencyRef]
    missing: list[Gap] = []
    number: int = 1
    max_tokens: int


class SynthesisReply(Model):
    """The answer, shortened when it is long (`answer_ref` has all of it). None when the model refused."""

    head: str
    answer: str | None = None
    answer_ref: str | None = None
    answer_json: JsonValue = None
    confidence: float | None = None
    citations: list[Citation] = []
    contradictions: list[Contradiction] = []
    stop_reason: str
    usage: Usage


class PublishInput(Model):
    """The whole result and trace of a run, to be stored; a local activity, so not in history.

    Where the answer was shortened, `answer_ref` is all of it and `answer_preview` what stands for it in `result`.
    """

    run: RunRef
    result: RunResult
    answer_ref: str | None = None
    answer_preview: str = ""
    trace: list[TraceEvent] = []


class Published(Model):
    """Where the whole result and trace are."""

    result_ref: str
    trace_ref: str
