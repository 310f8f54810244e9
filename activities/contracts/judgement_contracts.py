"""What goes in and out of refining, reviewing, judging and synthesis. History: see `run_contracts`."""

from typing import Literal

from pydantic import JsonValue

from activities.contracts.run_contracts import DependencyRef, RunRef
from supervision.contract.base import Model
from supervision.contract.result import Citation, Contradiction, Gap, Problem
from supervision.contract.usage import Usage


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
    """Findings to write the answer from, what is missing, and what a review left open in them.

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
    open_points: list[Gap] = []
    contradictions: list[Contradiction] = []
    mode: Literal["final", "draft", "digest"] = "final"
    draft_ref: str | None = None
    answer_schema_ref: str | None = None
    head: str | None = None
    problems: list[str] = []
    number: int = 1
    max_tokens: int


class SynthesisReply(Model):
    """The answer, shortened when it is long (`answer_ref` has all of it, `answer_bytes`). None when it was refused."""

    head: str
    answer: str | None = None
    answer_ref: str | None = None
    answer_bytes: int = 0
    answer_json: JsonValue = None
    confidence: float | None = None
    citations: list[Citation] = []
    contradictions: list[Contradiction] = []
    problems: list[str] = []
    stop_reason: str
    usage: Usage
