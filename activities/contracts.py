"""What goes in and out of the activities: small values and references, never content.

These models are history: fields may be added with defaults, never renamed or removed while recorded runs live.
A *reference* is a key of the artifact store. A *head* is the reference of a conversation's last entry.
"""

from typing import Literal

from pydantic import JsonValue

from supervision.base import Model
from supervision.finding import ArtifactRef
from supervision.keys import named_key
from supervision.plan import Plan
from supervision.request import RunRequest
from supervision.result import Citation, Contradiction, Gap, Problem, RunResult
from supervision.team import TeamCard
from supervision.usage import Usage

Strategy = Literal["auto", "plan", "route", "step"]


class RunRef(Model):
    """The run an activity works for, and the store its content lives in.

    A nested supervisor works for its root's run; `scope` keeps its named objects apart.
    """

    run_id: str
    store_id: str
    scope: str = ""

    def key(self, name: str) -> str:
        """The reference of an object that this supervisor has once, such as its plan."""
        return named_key(self.run_id, f"{self.scope}{name}")


class AttachmentRef(Model):
    """An attachment by name and reference."""

    name: str
    ref: str
    bytes: int = 0


class SetupInput(Model):
    """The first activity's input; a local activity, so the request is not written to history again.

    For a nested supervisor `brief` holds what its goal builds on.
    """

    run_id: str
    scope: str = ""
    request: RunRequest
    brief: "SubtaskBrief | None" = None


class RunSetup(Model):
    """Everything outside the request that this run's course depends on, fixed at its start."""

    store_id: str
    goal_ref: str
    team_ref: str
    team: TeamCard
    supervisor_model: str
    answer_schema_ref: str | None = None
    unpriced_models: list[str] = []
    attachments: list[AttachmentRef] = []
    tools_queue: str
    search_attributes: list[str] = []
    warnings: list[str] = []
    model_notice: str | None = None


class WorkNote(Model):
    """What the planner is told of a subtask of an earlier revision."""

    subtask_id: str
    role: str
    state: str
    note: str


class PlanInput(Model):
    """One try at a plan; `head` and `problems` carry on from a try that failed.

    From revision 2 on `previous_ref` is the plan so far and `done` what became of it: the reply only adds to it.
    `nesting_left` is how many levels of nested supervisors may still begin: with 0, roles that are teams are off.
    """

    run: RunRef
    goal_ref: str
    team_ref: str
    model: str
    attachments: list[AttachmentRef] = []
    max_subtasks: int
    strategy: Strategy = "auto"
    nesting_left: int = 0
    in_flight: dict[str, int] = {}
    done: list[WorkNote] = []
    previous_ref: str | None = None
    revision: int = 1
    attempt: int = 1
    head: str | None = None
    problems: list[str] = []


class PlanReply(Model):
    """A plan that can run, or the problems with what came. `plan` may hold shortened descriptions.

    `team_ref` and `team` replace the run's team when the plan defines roles of its own. `finished` is the `step`
    strategy's word that nothing more is needed. `incapable` says that no roles have a capability asked for.
    """

    head: str
    plan: Plan | None = None
    plan_ref: str | None = None
    strategy: Strategy = "plan"
    team_ref: str | None = None
    team: TeamCard | None = None
    finished: bool = False
    incapable: bool = False
    problems: list[str] = []
    refusal: str | None = None
    usage: Usage


class DependencyRef(Model):
    """A finding to build on; `complete` is False for what a stopped worker agent had."""

    subtask_id: str
    role: str
    text_ref: str
    bytes: int = 0
    importance: Literal["required", "optional"] = "required"
    complete: bool = True


class SubtaskBrief(Model):
    """What a worker agent is told: its subtask by reference, what it builds on, what is missing.

    `description_ref` is a refined description in place of the plan's. In a round of review `feedback` says what to
    mend in the finding at `previous_ref`.
    """

    goal_ref: str
    plan_ref: str
    subtask_id: str
    dependencies: list[DependencyRef] = []
    missing: list[Gap] = []
    attachments: list[AttachmentRef] = []
    description_ref: str | None = None
    feedback: str | None = None
    previous_ref: str | None = None


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
    bytes: int = 0
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


class RefineInput(Model):
    """A subtask attempt that failed, to be described better."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    subtask_id: str
    description_ref: str | None = None
    role: str
    model: str
    attempt: int
    error: Problem


class RefineReply(Model):
    """The better description by reference; None when the model gave none."""

    head: str
    description_ref: str | None = None
    preview: str = ""
    usage: Usage


class ReviewInput(Model):
    """Findings to be held against the goal."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    round: int
    findings: list[DependencyRef]


class Verdict(Model):
    """A finding that falls short, and exactly what its worker agent should mend."""

    subtask_id: str
    feedback: str


class ReviewReply(Model):
    """The findings that fall short and those that disagree; `problem` when the review itself could not be read."""

    head: str
    verdicts: list[Verdict] = []
    conflicts: list[Contradiction] = []
    problem: str | None = None
    usage: Usage


class JudgeInput(Model):
    """Findings of which one should be chosen (`select`), or which disagree (`conflict`)."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    number: int
    question: Literal["select", "conflict"]
    description: str
    findings: list[DependencyRef]


class JudgeReply(Model):
    """`choice` is an index into the findings, None when none should be preferred."""

    head: str
    choice: int | None = None
    resolution: str = ""
    usage: Usage


class SynthesisInput(Model):
    """Findings to write the answer from, and what is missing.

    `digest` condenses some findings into one text for a later synthesis; `draft` is an answer from what has come so
    far, which later ones take up by `draft_ref`. `answer_schema_ref` asks for `answer_json` of that JSON schema;
    `head` and `problems` send an `answer_json` back that did not fit it.
    """

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    findings: list[DependencyRef]
    missing: list[Gap] = []
    contradictions: list[Contradiction] = []
    mode: Literal["final", "draft", "digest"] = "final"
    draft_ref: str | None = None
    answer_schema_ref: str | None = None
    head: str | None = None
    problems: list[str] = []
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
    problems: list[str] = []
    stop_reason: str
    usage: Usage


class PublishInput(Model):
    """The result of a run, to be stored whole; a local activity, so not in history.

    What was shortened in `result` to fit an activity's input is found by reference: the answer by `answer_ref` (with
    `answer_preview` standing for it), descriptions by `plan_ref`, findings by their own references.
    """

    run: RunRef
    result: RunResult
    plan_ref: str | None = None
    answer_ref: str | None = None
    answer_preview: str = ""


class Published(Model):
    """Where the whole result and trace are."""

    result_ref: str
    trace_ref: str
