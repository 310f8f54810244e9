"""Inputs and replies of the activities that plan, expand templates and tabulate their items. See `run_contracts`."""

from pydantic import JsonValue

from activities.contracts.packed import DependencyRef, FindingRefs, PackedPlan
from activities.contracts.run_contracts import AttachmentRef, CallTerms, RunRef, SupervisorCall, SupervisorReply
from supervision.base import limits
from supervision.contract.base import Model
from supervision.contract.finding import ArtifactRef
from supervision.contract.plan import Estimate
from supervision.contract.strategy import StrategyName
from supervision.contract.team import TeamCard


class WorkNote(Model):
    """A subtask of an earlier revision in the planner's prompt."""

    subtask_id: str
    role: str
    state: str
    note: str


class PlanInput(SupervisorCall):
    """One try at a plan; `head` and `problems` carry on from a try that failed.

    From revision 2 on `plan_ref` is the plan so far and `done` its outcome: the reply only adds to it; `missing` is
    what a review misses in it. `own_plan_ref` is the plan of the run's caller, `own_plan` one that a person edited: it
    is checked, and no model is asked. `comment` says what a person wants to be different in the plan at `head`.
    `nesting_left` is how many levels of nested supervisors may still begin: with 0, no role that is a team is usable.
    `max_turns` is how many turns one worker agent has. With `estimates` the reply says what the plan will take.
    """

    team_ref: str
    attachments: list[AttachmentRef] = []
    max_subtasks: int
    max_turns: int = limits.MAX_TURNS
    strategy: StrategyName = "auto"
    nesting_left: int = 0
    in_flight: dict[str, int] = {}
    done: list[WorkNote] = []
    missing: list[str] = []
    own_plan_ref: str | None = None
    own_plan: PackedPlan = None
    comment: str = ""
    estimates: bool = False
    revision: int = 1
    attempt: int = 1
    head: str | None = None
    problems: list[str] = []

    @property
    def is_given(self) -> bool:
        """True if the plan is there, so that no model is asked for it."""
        return self.own_plan_ref is not None or self.own_plan is not None

    @property
    def terms(self) -> CallTerms:
        """Names the step after the revision and the try."""
        summary = "the goal" if self.revision == 1 else f"revision {self.revision}"
        if self.attempt > 1:
            summary += f", try {self.attempt}"
        work = "the plan" if self.is_given else "a plan"
        return CallTerms(f"plan.{self.revision}.{self.attempt}", work, summary, limits.PLAN_MAX_TOKENS)


class PlanReply(SupervisorReply):
    """A plan that can run, or the problems with the reply. `plan` may hold shortened descriptions.

    `team_ref` and `team` replace the run's team if the plan defines roles of its own. `unknown_roles` are roles that
    the planner made up, by subtask: the generalist does these subtasks. `answer_ref` is the text of a
    direct answer, `unsupported` its claims that the goal does not hold. `finished` is True if the planner says that
    nothing more is needed, `incapable` if no role has a capability that the plan asks for.
    """

    plan: PackedPlan = None
    plan_ref: str | None = None
    answer_ref: str | None = None
    unsupported: list[str] = []
    strategy: StrategyName = "plan"
    team_ref: str | None = None
    team: TeamCard | None = None
    finished: bool = False
    incapable: bool = False
    unknown_roles: dict[str, str] = {}
    estimate: Estimate | None = None
    problems: list[str] = []


class ExpandInput(Model):
    """A template whose items can be known: at most `room` of them get a subtask.

    `named_ref` are the lists of items that findings named.
    """

    run: RunRef
    plan_ref: str
    template: str
    named_ref: list[str] = []
    attachments: list[AttachmentRef] = []
    room: int


class ExpandReply(Model):
    """The next revision, and by itself the part of it that the items' briefs need; `found` counts all items."""

    plan: PackedPlan = None
    plan_ref: str = ""
    items_ref: str = ""
    found: int = 0
    problem: str = ""


class TableInput(Model):
    """The findings of completed items; `answer_schema_ref` is the form of the run's answer."""

    run: RunRef
    plan_ref: str
    team_ref: str
    findings: FindingRefs
    answer_schema_ref: str | None = None


class TableReply(Model):
    """The `tables` of templates as CSV. One of them may be the answer: that of the template that `fills` it.

    Then `answer_json_ref` leads to its rows, which are `answer_json` if they are not too many. `first_rows` stands for
    the findings of its items, and `problem` says which of them are not among the rows, or why there are none.
    """

    tables: list[ArtifactRef] = []
    fills: str = ""
    answer_json: JsonValue = None
    answer_json_ref: str = ""
    first_rows: DependencyRef | None = None
    problem: str = ""
