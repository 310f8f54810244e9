"""The messages between an eval, its activities and its starter: only references and counts.

These models are history: only add fields with defaults.
"""

from typing import Annotated, Any

from pydantic import AwareDatetime, Field, TypeAdapter

from activities.contracts.run_contracts import RunRef
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import MODEL_QUEUE
from temporal_supervisor.supervision.base.text import cut
from temporal_supervisor.supervision.contract.base import ErrorText, Model, Paragraph
from temporal_supervisor.supervision.contract.result import Problem
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.scores.eval_budget import EvalBudget
from temporal_supervisor.supervision.scores.eval_plan import Part
from temporal_supervisor.supervision.scores.question_sets import MOST_QUESTIONS, GivenFinding
from temporal_supervisor.supervision.scores.score import Opinion, Verdict
from temporal_supervisor.supervision.scores.score_table import EvalStatus

EVAL_TYPE = "EvalWorkflow"
GIVEN = "findings"  # the name of those that a synthesis alone starts from, in its run
GIVEN_FINDINGS = TypeAdapter(list[GivenFinding])
TABLE = "table"  # the name of all that an eval has come to, in its part of the store
_EVAL_IDS = "eval-"


def new_eval_id(name: str, unique: str) -> str:
    """Returns the id of a new eval, such as `eval-sales-8f2a`; its runs are `<eval>/<question>`."""
    return f"{_EVAL_IDS}{name}-{unique}"


def is_eval_id(workflow_id: str) -> bool:
    """True if a workflow id is a valid eval id."""
    return workflow_id.startswith(_EVAL_IDS) and "/" not in workflow_id


class OwnLimits(Model):
    """The limits in a run's own request, which the eval's budget and deadline may lower."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float


class EvalState(Model):
    """The state of an eval, kept when it continues as new.

    `next` is the index of the first question that has not begun. `no_opinion` is the reason why a
    model gave no opinion of some answer.
    """

    began_at: AwareDatetime
    store_id: str = ""
    model_queue: Annotated[str, Field(exclude_if=lambda queue: queue == MODEL_QUEUE)] = MODEL_QUEUE
    grant_ref: Annotated[str, Field(exclude_if=lambda ref: not ref)] = ""
    search_attributes: list[str] = []
    next: int = 0
    ended: int = 0
    counts: dict[Verdict, int] = {}
    flagged_though_right: int = 0
    usage: Usage = Usage()
    no_opinion: Annotated[ErrorText, Field(exclude_if=lambda why: not why)] = ""

    def count(self, judged: "JudgedCase | None", *, unscored: bool = False) -> None:
        """Counts a run that has ended; an `unscored` one adds only its usage."""
        if judged is not None:
            self.usage += judged.usage
        if unscored:
            return
        self.ended += 1
        if judged is not None:
            self.counts[judged.verdict] = self.counts.get(judged.verdict, 0) + 1
            self.flagged_though_right += judged.verdict == "right" and judged.flagged

    def begin(self, begun: "EvalBegun") -> None:
        """Keeps the facts about the process in which the eval began."""
        self.model_queue, self.grant_ref = begun.model_queue, begun.grant_ref
        self.search_attributes, self.no_opinion = begun.search_attributes, begun.no_opinion

    def add_usage(self, usage: Usage) -> None:
        """Adds the usage of a model's opinion."""
        self.usage += usage

    def set_no_opinion(self, why: str) -> None:
        """Sets the reason why a model gave no opinion of an answer."""
        self.no_opinion = cut(why, limits.ERROR_BYTES)

    @property
    def share_right(self) -> float:
        """The share of ended questions that were answered correctly; 0 before the first one."""
        hits = self.counts.get("right", 0) + self.counts.get("refused_rightly", 0)
        return hits / self.ended if self.ended else 0.0

    def take_next(self) -> int:
        """Returns the index of the next question, and marks it as begun."""
        self.next += 1
        return self.next - 1

    @property
    def has_failed_alike(self) -> bool:
        """True if all runs so far have failed before they spent anything."""
        return self.counts.get("failed", 0) == self.ended and self.usage == Usage()


class EvalInput(Model):
    """The input of an eval of `total` runs, at most `parallel` of them at once.

    The set is the upload at `set_ref`. The model `judge` gives its opinion of text answers.
    """

    set_ref: str
    name: str
    total: Annotated[int, Field(ge=1, le=MOST_QUESTIONS)]
    own: OwnLimits
    parallel: Annotated[int, Field(ge=1, le=limits.MAX_PARALLEL)] = 4
    judge: Annotated[str, Field(exclude_if=lambda model: not model)] = ""
    budget: EvalBudget = EvalBudget()
    deadline_seconds: Annotated[float, Field(ge=1)] = 86_400.0
    state: EvalState | None = None


class EvalProgress(Model):
    """The progress of an eval.

    `seconds_to_go` and `usd_to_go` are None until a run has ended; the cost is also None where
    prices are unknown.
    """

    eval_id: str
    status: EvalStatus
    why: str = ""
    planned: int
    ended: int
    under_way: list[str] = []
    counts: dict[Verdict, int] = {}
    flagged_though_right: int = 0
    usage: Usage = Usage()
    began_at: AwareDatetime
    deadline_at: AwareDatetime
    seconds_to_go: float | None = None
    usd_to_go: float | None = None


class EvalResult(Model):
    """The result of an eval; its table is in the store at `table_ref`.

    A partial one has the reason `why` it is partial; `n` runs have ended.
    """

    status: EvalStatus
    n: int
    planned: int
    why: str = ""
    counts: dict[Verdict, int] = {}
    usage: Usage = Usage()
    table_ref: str = ""


class EvalCall(Model):
    """The common fields of the inputs: the eval, its store and its set.

    The first has no `store_id`.
    """

    eval_id: str
    store_id: str = ""
    set_ref: str

    def as_run(self, grant_ref: str) -> RunRef:
        """Returns the eval as a run, for its model calls.

        An eval that is started again finds the calls that were paid: its id stands for its first
        execution.
        """
        ids = {"run_id": self.eval_id, "first_run_id": self.eval_id}
        return RunRef(**ids, store_id=self.store_id, grant_ref=grant_ref)


class BeginEval(EvalCall):
    """Begins an eval; with a `judge` it may call that model until `expires_at`."""

    judge: Annotated[str, Field(exclude_if=lambda model: not model)] = ""
    expires_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None


class EvalBegun(Model):
    """The store of an eval, its own copy of the set, and the grant for its judge.

    `model_queue` is the task queue of model calls. The server has these `search_attributes`.
    `no_opinion` is the reason why the judge is not asked.
    """

    store_id: str
    set_ref: str
    model_queue: str = MODEL_QUEUE
    grant_ref: str = ""
    search_attributes: list[str] = []
    no_opinion: str = ""


class CasesInput(EvalCall):
    """Asks for the runs from index `first` on."""

    first: int


class CasePart(Model):
    """A run to start: the last part of its id, and its request.

    A `bare` run is one worker agent alone. With a `part` the run does only that part of the work.
    """

    name: str
    request: dict[str, Any]
    bare: bool = False
    part: Annotated[Part, Field(exclude_if=lambda part: part == "whole")] = "whole"


class CasesReply(Model):
    """The next runs, as many as fit into a payload."""

    cases: list[CasePart]


class ToJudge(EvalCall):
    """A run to judge, which may have a `problem`.

    `ended` is False for a run that an earlier execution has started: it may still be open. A run
    that the eval itself cut short, for lack of budget or by a cancellation, is `unscored`: only its
    cost counts.
    """

    index: int
    unscored: bool = False
    ended: bool = True
    problem: Problem | None = None


class JudgedCase(Model):
    """The part of a score that the eval needs.

    `is_text` is True for an answer in words, which a model may judge, too.
    """

    verdict: Verdict
    flagged: bool = False
    is_text: bool = False
    usage: Usage = Usage()
    error: Paragraph = ""


class KeptOpinion(Model):
    """A stored opinion, with the name of its run."""

    case: str
    opinion: Opinion


class GivenInput(Model):
    """Asks for the findings that an eval left in a run, for its synthesis."""

    run: RunRef


class ScoresInput(EvalCall):
    """Asks for the table of all scores; `no_opinion` is why some answers have no opinion."""

    status: EvalStatus
    why: str = ""
    no_opinion: ErrorText = ""
