"""The parts that activities' inputs share, and the first and last activity's: references, never content.

The models of all `*contracts` modules are history: fields may be added with defaults, never renamed or removed while
recorded runs live. A *reference* is a key of the artifact store; a *head* is that of a conversation's last entry.
"""

from supervision.contract.base import Model
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import RunRequest
from supervision.contract.result import Gap, RunResult
from supervision.contract.team import TeamCard


class RunRef(Model):
    """The run that an activity works for, and the store that holds its content.

    A nested supervisor works for its root's run.
    """

    run_id: str
    store_id: str


class SupervisorCall(Model):
    """The fields of every model call of the supervisor about a plan."""

    run: RunRef
    goal_ref: str
    plan_ref: str
    model: str


class AttachmentRef(Model):
    """An attachment by name and reference."""

    name: str
    ref: str
    bytes: int = 0


class DependencyRef(Model):
    """A finding to build on; `complete` is False if its worker agent was stopped before it was done."""

    subtask_id: str
    role: str
    text_ref: str
    bytes: int = 0
    weight: float = 0.5
    complete: bool = True


class SubtaskBrief(Model):
    """A worker agent's assignment: its subtask by reference, the findings that it builds on, those that are missing.

    `description_ref` is a refined description in place of the plan's. In a round of review `feedback` says what to
    fix in the finding at `previous_ref`.
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


class SetupInput(Model):
    """The first activity's input; a local activity, so the request is not written to history again.

    `brief` is a nested supervisor's assignment by its parent.
    """

    run: RunRef
    request: RunRequest
    brief: SubtaskBrief | None = None


class RunSetup(Model):
    """Everything that a run depends on beside its request, fixed when it starts."""

    store_id: str
    goal_ref: str
    team_ref: str
    team: TeamCard
    supervisor_model: str
    answer_schema_ref: str | None = None
    attachments: list[AttachmentRef] = []
    own_plan_ref: str | None = None
    tools_queue: str
    search_attributes: list[str] = []
    warnings: list[str] = []
    model_notice: str | None = None
    ceilings: Ceilings | None = None


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


class AdoptInput(Model):
    """A finding that is to be the run's answer word for word, under a label if there is one."""

    run: RunRef
    text_ref: str
    label: str | None = None


class AdoptReply(Model):
    """The answer, shortened if it is long: `answer_ref` has all of it."""

    answer: str
    answer_ref: str
