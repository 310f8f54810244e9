"""The score of a question: its verdict, flags and cost."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.base import ErrorText, Model, Sentence
from temporal_supervisor.supervision.contract.result import Problem, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.scores.flagged import Flag, flags, own_flags
from temporal_supervisor.supervision.scores.judging import Given, Judged, judge_answer
from temporal_supervisor.supervision.scores.plan_fit import PlanFit, plan_fit
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion, Truth

Verdict = Literal[
    "right",
    "wrong_flagged",
    "wrong_unflagged",
    "refused_rightly",
    "refused_wrongly",
    "failed",
]

_SHOWN_BYTES = 300  # of an answer and of the true one, in a row
_NO_ANSWER = {ErrorKind.ALL_SUBTASKS_FAILED, ErrorKind.QUORUM_NOT_MET, ErrorKind.NO_CAPABLE_WORKER}
_DECLINED = {ErrorKind.CANNOT_DO, ErrorKind.REFUSED, ErrorKind.DEPENDENCIES_FAILED}


class Opinion(Model):
    """A model's opinion of an answer in words, which may be `right` in other words.

    It has no effect on the verdict, which is computed by code.
    """

    model: str
    right: bool
    reason: Sentence = ""
    usage: Usage = Usage()


class Score(Model):
    """One question asked once of one variant, judged by code.

    `share` is how much of the answer is right, by field in `fields`; `lenient` whether the text has
    the true answer among others. `routed` says whether the role that should take it did. Of the
    supporting files `cited` is the F1. `plan` is the fit of the plan where one was expected.
    `fault_shown` says whether the fault of given findings was. `opinion` is that of a model, if
    one was asked.
    """

    case: str
    question: str
    variant: int = 0
    run_id: str
    verdict: Verdict
    flags: list[Flag] = []
    lenient: bool = False
    share: float = 0.0
    fields: dict[str, float] = {}
    routed: bool | None = None
    cited: float | None = None
    plan: Annotated[PlanFit | None, Field(exclude_if=lambda fit: fit is None)] = None
    fault_shown: Annotated[bool | None, Field(exclude_if=lambda shown: shown is None)] = None
    opinion: Annotated[Opinion | None, Field(exclude_if=lambda opinion: opinion is None)] = None
    given: Sentence = ""
    expected: Sentence = ""
    error: ErrorText = ""
    usage: Usage = Usage()
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """True for a right answer, and for a right refusal."""
        return self.verdict in ("right", "refused_rightly")


class EndedRun(Model):
    """The end of a question's run: its result, and the problem if there is no answer.

    An `alone` run had one worker agent, whose `output` has the fields. A `bare` one had no checks.
    A `plan_alone` run carried out nothing.
    """

    run_id: str
    result: RunResult | None = None
    problem: Problem | None = None
    output: JsonValue = None
    alone: bool = False
    bare: bool = False
    plan_alone: bool = False


def score_of(question: EvalQuestion, case: str, variant: int, run: EndedRun) -> Score:
    """Returns the score of a question from the end of its run.

    The fields of a single agent are its `output`.
    """
    result = run.result or RunResult()
    has_answer = run.problem is None
    given = _given_answer(question, run, result)
    outcome = judge_answer(question.answer, given)
    shown = _shown_flags(run, result)
    error = f"{run.problem.type}: {run.problem.message}" if run.problem else ""
    score = Score(
        case=case,
        question=question.id,
        variant=variant,
        run_id=run.run_id,
        verdict=_verdict(question, outcome, shown, run),
        flags=shown,
        lenient=outcome.lenient and has_answer,
        share=outcome.share if has_answer else 0.0,
        fields=dict(outcome.by_field),
        plan=given.plan,
        given=one_line(_answer_text(given.fields, result.answer), _SHOWN_BYTES),
        expected=one_line(str(question.answer.value), _SHOWN_BYTES),
        error=error,
        usage=result.usage,
        seconds=result.timing.wall_seconds,
    )

    if question.role is not None:
        score.routed = question.role in given.roles[:1]
    if question.supporting:
        score.cited = _cited(question.supporting, result)
    if question.flag is not None:
        score.fault_shown = question.flag in shown
    return score


def _given_answer(question: EvalQuestion, run: EndedRun, result: RunResult) -> Given:
    """Returns the parts of a run that are compared with the true answer."""
    took = result.subtasks if run.plan_alone else _completed(result)
    fit = None
    if question.plan and not run.alone:
        fit = plan_fit(question.plan, result.subtasks)
    text = result.answer if run.problem is None else ""
    fields = run.output if run.alone else result.answer_json
    roles = [report.role for report in took if report.template is None]

    return Given(
        text=text,
        fields=fields,
        roles=roles,
        has_gap=bool(result.gaps),
        plan=fit,
    )


def is_in_words(truth: Truth, score: Score) -> bool:
    """True if the answer is in words, so that other words may mean the same."""
    is_given = score.verdict in ("right", "wrong_flagged", "wrong_unflagged")
    return is_given and truth.kind in ("text", "list", "facts")


def _completed(result: RunResult) -> list[SubtaskReport]:
    return [report for report in result.subtasks if report.state == "completed"]


def _shown_flags(run: EndedRun, result: RunResult) -> list[Flag]:
    """Returns the flags of an answer; a plan alone has no answer to flag."""
    if run.plan_alone:
        return []
    return own_flags(result) if run.bare else flags(result)


def _verdict(
    question: EvalQuestion,
    outcome: Judged,
    shown: Sequence[Flag],
    run: EndedRun,
) -> Verdict:
    """Returns the verdict on the answer, or on its absence."""
    if run.problem is not None and not _declined(run.problem, run.result):
        return "failed"
    is_open = question.answer.kind == "none"
    if run.problem is not None or outcome.refused:
        return "refused_rightly" if is_open else "refused_wrongly"
    if outcome.right:
        return "right"
    return "wrong_flagged" if shown else "wrong_unflagged"


def _declined(problem: Problem, result: RunResult | None) -> bool:
    """True if a run gave no answer because its worker agents found that there is none."""
    if problem.type not in _NO_ANSWER or result is None:
        return False
    return all(report.error is None or report.error.type in _DECLINED for report in result.subtasks)


def _answer_text(fields: JsonValue, text: str) -> str:
    """Returns the fields of an answer that have content in one line; without fields its text."""
    if not isinstance(fields, dict):
        return text if fields is None else str(fields)
    shown = []
    for name, value in fields.items():
        if value in (None, "", []):
            continue
        shown.append(f"{value}" if name in ("value", "values", "scale") else f"{name} {value}")
    return ", ".join(shown) or "no answer"


def _cited(supporting: Sequence[str], result: RunResult) -> float:
    """Returns the F1 of the files that findings name, against the supporting ones."""
    findings = [report.finding for report in result.subtasks if report.finding]
    sources = [source for finding in findings for source in finding.sources]
    named = {PurePosixPath(source.partition("#")[0].split(" ")[0]).name for source in sources}
    wanted = {PurePosixPath(name).name for name in supporting}
    hits = {name for name in wanted if any(name in each for each in [*named, *sources])}
    others = {name for name in named if not any(each in name for each in wanted)}
    had = len(hits) + len(others)
    return 2 * len(hits) / (len(wanted) + had)
