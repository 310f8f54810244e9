"""The messages between an eval, its activities and its starter: references and counts alone.

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
    """Returns the id of an eval of a set; its runs are `<eval>/<question>`."""
    return f"{_EVAL_IDS}{name}-{unique}"


def is_eval_id(workflow_id: str) -> bool:
    """True for an id that an eval may have."""
    return workflow_id.startswith(_EVAL_IDS) and "/" not in workflow_id


class OwnLimits(Model):
    """The limits of one run as its request has them, which the eval's budget and deadline lower."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float


class EvalState(Model):
    """The state of an eval, carried over when it continues as new.

    `next` is the first question that was not begun, `no_opinion` why a model had none of an answer.
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
        """Counts a run that has ended; one that is `unscored` by its cost alone."""
        if judged is not None:
            self.usage += judged.usage
        if unscored:
            return
        self.ended += 1
        if judged is not None:
            self.counts[judged.verdict] = self.counts.get(judged.verdict, 0) + 1
            self.flagged_though_right += judged.verdict == "right" and judged.flagged

    def begin(self, begun: "EvalBegun") -> None:
        """Takes over the facts of the process in which the eval began."""
        self.model_queue, self.grant_ref = begun.model_queue, begun.grant_ref
        self.search_attributes, self.no_opinion = begun.search_attributes, begun.no_opinion

    def add_usage(self, usage: Usage) -> None:
        """Adds the cost of a model's opinion of an answer."""
        self.usage += usage

    def note_no_opinion(self, why: str) -> None:
        """Notes the reason why a model has no opinion of an answer."""
        self.no_opinion = cut(why, limits.ERROR_BYTES)

    @property
    def share_right(self) -> float:
        """The share of the questions that were answered rightly; 0 before the first one."""
        hits = self.counts.get("right", 0) + self.counts.get("refused_rightly", 0)
        return hits / self.ended if self.ended else 0.0

    def take_next(self) -> int:
        """Returns the place of the next question, which begins."""
        self.next += 1
        return self.next - 1

    @property
    def has_failed_alike(self) -> bool:
        """True if all runs so far have failed before they spent anything."""
        return self.counts.get("failed", 0) == self.ended and self.usage == Usage()


class EvalInput(Model):
    """The input of an eval of `total` runs, at most `parallel` of them at once.

    The set is at `set_ref`, an upload. The model `judge` is asked for its opinion of text answers.
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

    Time and cost to go are None until a run has ended, the cost where prices are unknown.
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

    A partial one says `why`, with its `n`.
    """

    status: EvalStatus
    n: int
    planned: int
    why: str = ""
    counts: dict[Verdict, int] = {}
    usage: Usage = Usage()
    table_ref: str = ""


class EvalCall(Model):
    """The beginning of every input: whose call it is. Without a `store_id` it is the first one."""

    eval_id: str
    store_id: str = ""
    set_ref: str

    def as_run(self, grant_ref: str) -> RunRef:
        """Returns the eval as its model calls name it.

        Begun again, it finds the calls that are paid: its id stands for its first execution.
        """
        ids = {"run_id": self.eval_id, "first_run_id": self.eval_id}
        return RunRef(**ids, store_id=self.store_id, grant_ref=grant_ref)


class BeginEval(EvalCall):
    """Begins an eval; with a `judge` it is granted calls of this model until it ends."""

    judge: Annotated[str, Field(exclude_if=lambda model: not model)] = ""
    expires_at: Annotated[AwareDatetime | None, Field(exclude_if=lambda time: time is None)] = None


class EvalBegun(Model):
    """The store of an eval, its own copy of the set, and the grant of its judge.

    `model_queue` is that of model calls, `search_attributes` are those that the server has.
    `no_opinion` is why its judge is not asked.
    """

    store_id: str
    set_ref: str
    model_queue: str = MODEL_QUEUE
    grant_ref: str = ""
    search_attributes: list[str] = []
    no_opinion: str = ""


class CasesInput(EvalCall):
    """Asks for the runs from `first` on."""

    first: int


class CasePart(Model):
    """A run to start: the last part of its id, its request; `bare` is one worker agent alone.

    Of a `part` alone, the plan or the answer, the run is told.
    """

    name: str
    request: dict[str, Any]
    bare: bool = False
    part: Annotated[Part, Field(exclude_if=lambda part: part == "whole")] = "whole"


class CasesReply(Model):
    """Some of the runs, as many as fit into a payload."""

    cases: list[CasePart]


class ToJudge(EvalCall):
    """A run to judge: it has ended, perhaps with a `problem`.

    One that an earlier execution has started may be under way still: it is not known as `ended`.
    One that the eval itself cut short, as it had no more budget or was cancelled, says nothing
    about its question: it is `unscored`, and only its cost counts.
    """

    index: int
    unscored: bool = False
    ended: bool = True
    problem: Problem | None = None


class JudgedCase(Model):
    """The part of a score that the eval itself has to know.

    `is_text` if an answer was given in words, of which a model may have an opinion.
    """

    verdict: Verdict
    flagged: bool = False
    is_text: bool = False
    usage: Usage = Usage()
    error: Paragraph = ""


class KeptOpinion(Model):
    """An opinion as it is stored, with the name of the run that it is about."""

    case: str
    opinion: Opinion


class GivenInput(Model):
    """Asks for the findings that an eval left in a run, from which its synthesis alone starts."""

    run: RunRef


class ScoresInput(EvalCall):
    """Has the table made of all scores; `no_opinion` is why a model had none of some answers."""

    status: EvalStatus
    why: str = ""
    no_opinion: ErrorText = ""
