"""What activities are told of a run: small values and references, never content.

The models of all `*contracts` modules are history: fields may be added with defaults, never renamed or removed while
recorded runs live. A *reference* is a key of the artifact store; a *head* is that of a conversation's last entry.
"""

from typing import Literal

from supervision.contract.base import Model
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import RunRequest
from supervision.contract.result import Gap, RunResult
from supervision.contract.team import TeamCard
from supervision.store_keys import named_key


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
    ceilings: Ceilings | None = None


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
