"""The parts that activities' inputs share, and the first and last activity's: references, never content.

The models of all `*contracts` modules are history: fields may be added with defaults, never renamed or removed while
recorded runs live. A *reference* is a key of the artifact store; a *head* is that of a conversation's last entry.
"""

from datetime import datetime

from pydantic import JsonValue

from activities.contracts.packed import FindingRefs
from supervision import limits
from supervision.contract.base import Model
from supervision.contract.ceilings import Ceilings
from supervision.contract.model_choice import Effort
from supervision.contract.request import RunRequest
from supervision.contract.result import Gap, Problem, RunResult
from supervision.contract.team import TeamCard
from supervision.contract.usage import Usage


class RunRef(Model):
    """The run that an activity works for, and the store that holds its content.

    A nested supervisor works for its root's run.
    """

    run_id: str
    store_id: str


class SupervisorCall(Model):
    """The fields of every model call of the supervisor about a plan; `effort` None is the model's default."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str
    effort: Effort | None = None


class AttachmentRef(Model):
    """An attachment by name and reference."""

    name: str
    ref: str
    bytes: int = 0


class SubtaskBrief(Model):
    """A worker agent's assignment: its subtask by reference, the findings that it builds on, those that are missing.

    `description_ref` is a refined description in place of the plan's. In a round of review `feedback` says what to
    fix in the finding at `previous_ref`.
    """

    goal_ref: str
    plan_ref: str
    subtask_id: str
    dependencies: FindingRefs = []
    missing: list[Gap] = []
    attachments: list[AttachmentRef] = []
    description_ref: str | None = None
    feedback: str | None = None
    previous_ref: str | None = None


class SetupInput(Model):
    """The first activity's input; a local activity, so the request is not written to history again.

    `brief` is a nested supervisor's assignment by its parent, `first_run_id` the id before any reset, `began_at` the
    time of the run's first workflow task.
    """

    run: RunRef
    request: RunRequest
    began_at: datetime | None = None
    brief: SubtaskBrief | None = None
    first_run_id: str = ""


class RunSetup(Model):
    """Everything that a run depends on beside its request, fixed when it starts.

    `prompt_tokens` is how many tokens of findings one prompt of the supervisor's models holds. `began_at` is what came
    in: in a replay the first workflow task can seem later than it was (docs/decisions/0004).
    """

    store_id: str
    began_at: datetime | None = None
    goal_ref: str
    team_ref: str
    team: TeamCard
    supervisor_model: str
    supervisor_fallbacks: list[str] = []
    prompt_tokens: int = limits.CONTEXT_TOKENS
    answer_schema_ref: str | None = None
    attachments: list[AttachmentRef] = []
    own_plan_ref: str | None = None
    tools_queue: str
    search_attributes: list[str] = []
    warnings: list[str] = []
    model_notice: str | None = None
    ceilings: Ceilings | None = None
    was_reset: bool = False

    @property
    def prompt_bytes(self) -> int:
        """The same as the size of stored texts."""
        return int(self.prompt_tokens * limits.CHARS_PER_TOKEN)


class PublishInput(Model):
    """The result of a run, to be stored whole; a local activity, so not in history.

    Texts that were shortened to fit an activity's input are read again by reference: the answer by `answer_ref`,
    descriptions by `plan_ref`, findings by their own references.
    """

    run: RunRef
    result: RunResult
    plan_ref: str | None = None
    answer_ref: str | None = None


class Published(Model):
    """Where the whole result, trace and answer are: by their hashes, so that a rewritten store is noticed."""

    result_ref: str
    trace_ref: str
    answer_ref: str | None = None


class PoolQuestion(Model):
    """Asks how long work has waited in the queue of a pool."""

    run: RunRef
    queue: str


class ChildQuestion(Model):
    """Asks for a child that an earlier execution of the same supervisor started.

    `start` is the how-maniest start under that id it was, from 0: the child of an attempt starts anew after a wait.
    """

    run: RunRef
    workflow_id: str
    start: int


class ChildRef(Model):
    """A child workflow of a supervisor, by the first execution of its chain; `report_key` is a nested supervisor's."""

    run: RunRef
    workflow_id: str
    first_run_id: str
    report_key: str = ""


class ChildEnd(Model):
    """How a child ended: with a result, or with a problem and the details of its error. `lost`: with neither.

    `given_up`: it was lost before the reset, and the supervisor had begun another attempt in its place.
    """

    value: JsonValue = None
    problem: Problem | None = None
    lost: bool = False
    given_up: bool = False


class Consumed(Model):
    """What a child consumed by the journal of its model calls, and how many turns it made."""

    usage: Usage = Usage()
    turns: int = 0


class AdoptInput(Model):
    """A finding that is to be the run's answer word for word, under a label if there is one."""

    run: RunRef
    text_ref: str
    label: str | None = None


class AdoptReply(Model):
    """The answer, shortened if it is long: `answer_ref` has all of it."""

    answer: str
    answer_ref: str
