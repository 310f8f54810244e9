"""Inputs and replies of refining, reviewing, judging and synthesis. History: see `run_contracts`."""

from typing import Literal

from pydantic import JsonValue

from activities.contracts.packed import FindingRefs
from activities.contracts.run_contracts import SupervisorCall
from supervision.contract.base import Model
from supervision.contract.result import Citation, Contradiction, Gap, Problem
from supervision.contract.usage import Usage


class AttemptRef(Model):
    """The conversation of an attempt: the calls that it made, the errors that it met, its last words."""

    head: str


class RefineInput(SupervisorCall):
    """A subtask attempt that failed, to be described better; `tried` is what it did, if it came to anything."""

    subtask_id: str
    description_ref: str | None = None
    role: str
    attempt: int
    error: Problem
    tried: AttemptRef | None = None


class RefineReply(Model):
    """The better description by reference; None if the model gave none."""

    head: str
    description_ref: str | None = None
    preview: str = ""
    usage: Usage


class Verdict(Model):
    """A finding that falls short, and exactly what its worker agent should fix; `anew` not in its old conversation."""

    subtask_id: str
    feedback: str
    anew: bool = False


class ReviewInput(SupervisorCall):
    """Findings to be checked against the goal; `former` are the verdicts of the round before."""

    round: int
    former: list[Verdict] = []
    findings: FindingRefs


class ReviewReply(Model):
    """The findings that fall short, those that disagree, and what the plan lacks.

    `problem` says why a review could not be read.
    """

    head: str
    verdicts: list[Verdict] = []
    conflicts: list[Contradiction] = []
    missing: list[str] = []
    problem: str | None = None
    usage: Usage


class JudgeInput(SupervisorCall):
    """Findings of which one should be chosen (`select`), or which disagree (`conflict`)."""

    number: int
    question: Literal["select", "conflict"]
    description: str
    findings: FindingRefs


class JudgeReply(Model):
    """`choice` is an index into the findings, None when none should be preferred.

    `resolution` is the judge's reason; without one, `problem` says why there is none.
    """

    head: str
    choice: int | None = None
    resolution: str = ""
    problem: str = ""
    usage: Usage


class SynthesisInput(SupervisorCall):
    """Findings to write the answer from, the gaps, and the points that a review left open.

    `problems` send back the answer at `head` with what is wrong with it. `doubtful` are claims of digests and drafts
    that no finding has.

    `digest` condenses some findings into one text for a later synthesis; `draft` is an answer from the findings so
    far, which a later synthesis reads at `draft_ref`. `answer_schema_ref` asks for `answer_json` of that JSON schema.
    """

    findings: FindingRefs
    missing: list[Gap] = []
    open_points: list[Gap] = []
    contradictions: list[Contradiction] = []
    mode: Literal["final", "draft", "digest"] = "final"
    draft_ref: str | None = None
    answer_schema_ref: str | None = None
    head: str | None = None
    problems: list[str] = []
    doubtful: list[str] = []
    number: int = 1
    max_tokens: int


class SynthesisReply(Model):
    """The answer, shortened when it is long (`answer_ref` has all of it, `answer_bytes`). None if there is none.

    `problems` say why it cannot be used, `unsupported` what it claims that no finding says.
    """

    head: str
    answer: str | None = None
    answer_ref: str | None = None
    answer_bytes: int = 0
    answer_json: JsonValue = None
    confidence: float | None = None
    citations: list[Citation] = []
    contradictions: list[Contradiction] = []
    problems: list[str] = []
    unsupported: list[str] = []
    stop_reason: str
    usage: Usage
