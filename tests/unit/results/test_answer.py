"""Answers: what a model claims is checked against what was done, and bounds how sure it may be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.finding import Finding, Outcome
from temporal_supervisor.supervision.contract.plan import Importance
from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import (
    Citation,
    Contradiction,
    Gap,
    RunResult,
    SubtaskReport,
    SubtaskState,
    Unsupported,
)
from temporal_supervisor.supervision.results.answer import Answer, answer_record, findings_as_answer, with_gaps
from temporal_supervisor.supervision.results.confidence import (
    SURE,
    ceiling,
    doubts_about,
    unsupported_in,
)
from tests.unit.shapes import FINDING, any_text


def test_the_answer_lists_what_is_missing() -> None:
    gaps = [
        Gap(subtask_id="t2", reason="failed: TurnLimit: no finding"),
        Gap(subtask_id="t3", description="d" * 1000, reason="r" * 1000),
    ]
    *lines, last = with_gaps("Sales grew.\n\n", gaps).split("\n")
    assert lines == ["Sales grew.", "", "**Missing from this answer**", "", "- `t2`: failed: TurnLimit: no finding"]
    assert size(last) == size("-  (`t3`: )") + 120 + 600


def test_a_long_reason_is_written_once() -> None:
    reason = "failed: CannotDo: This needs a model: “Why is the sky blue?”. It looks up values."
    gaps = [
        *(Gap(subtask_id=f"t{n}", description=f"Work {n}", reason=reason) for n in (1, 2)),
        *(Gap(subtask_id=f"t{n}", reason="failed") for n in (3, 4)),
    ]
    assert with_gaps("", gaps).splitlines()[-4:] == [
        f"- Work 1 (`t1`: {reason})",
        "- Work 2 (`t2`: for the same reason as `t1`)",
        "- `t3`: failed",
        "- `t4`: failed",
    ]


def test_the_record_of_a_nested_answer_has_its_sources_and_what_it_misses() -> None:
    finding = FINDING.model_copy(update={"sources": ["sales.csv", "notes.md"]})
    reports = [SubtaskReport(id="t1", finding=finding), SubtaskReport(id="t2"), SubtaskReport(id="t3", finding=finding)]
    unsupported = [Unsupported(text="42", where=where) for where in ("answer", "t1")]
    gaps = [Gap(subtask_id="t2", reason="failed")]
    made = answer_record(
        RunResult(subtasks=reports, gaps=gaps, warnings=["slow"], confidence=0.5, unsupported=unsupported)
    )
    assert (made.sources, made.unsupported, made.confidence) == (["sales.csv", "notes.md"], ["42"], 0.5)
    assert made.limitations == ["slow", "missing: t2: failed"]


@given(any_text, st.lists(st.builds(Gap, subtask_id=st.sampled_from(["t1", "t2"]), reason=any_text), max_size=4))
def test_each_gap_is_one_line_after_the_untouched_answer(answer: str, gaps: list[Gap]) -> None:
    told = with_gaps(answer, gaps)
    assert told.startswith(answer.rstrip() if gaps else answer)
    listed = told[len(answer.rstrip()) :].splitlines() if gaps else []
    assert sum(line.startswith("- `t") for line in listed) == len(gaps)
    assert len(listed) == 4 + len(gaps) if gaps else told == answer


# --- runs without an answer -----------------------------------------------------------------------


def found(subtask_id: str, summary: str) -> SubtaskReport:
    return SubtaskReport(id=subtask_id, state="completed", finding=Finding(summary=summary, text_ref="r"))


def test_findings_in_place_of_an_answer_stand_under_their_subtasks_with_the_reason() -> None:
    told = findings_as_answer([found("t1", "Four."), SubtaskReport(id="t2"), found("t3", "Five.")], "the model is away")
    reason, *rest = told.split("\n\n")
    assert "the model is away" in reason
    assert rest == ["**t1**", "Four.", "**t3**", "Five."]


@pytest.mark.parametrize("others", [20, 60])
def test_findings_in_place_of_an_answer_share_its_room_evenly(others: int) -> None:
    share = limits.ANSWER_INLINE_BYTES // (2 + others)
    told = findings_as_answer([found("t1", "a" * (share + 1)), *[found("t2", "b" * share)] * others], "why")
    assert f"\n{'a' * (share - len('…'.encode()))}…" in told
    assert told.count("b" * share) == others


# --- confidence --------------------------------------------------------------------------------------


def finding(outcome: Outcome = "done", unsupported: int = 0, **more: Any) -> Finding:
    claims = [f"claim {n}" for n in range(unsupported)]
    return Finding(summary="s", text_ref="r", outcome=outcome, unsupported=claims, **more)


def report(subtask_id: str, state: SubtaskState = "completed", **fields: Any) -> SubtaskReport:
    return SubtaskReport(id=subtask_id, state=state, **fields)


def own(*confidences: float) -> list[SubtaskReport]:
    """Subtasks t0, t1 ... whose findings claim so much."""
    return [report(f"t{n}", finding=finding(confidence=claimed)) for n, claimed in enumerate(confidences)]


def citing(*subtask_ids: str, **more: Any) -> Answer:
    return Answer(
        text="a", citations=[Citation(claim="c", subtask_ids=[subtask_id]) for subtask_id in subtask_ids], **more
    )


CITING = citing("t9")


def bound(
    reports: list[SubtaskReport], answer: Answer = CITING, optional: str = "", conflict: str = "", points: int = 0
) -> float:
    """The ceiling of an answer; `optional` are the ids of subtasks that the plan calls so. Items have a dot."""
    named = [r.id for r in reports if "." not in r.id]
    levels: dict[str, Importance] = {each: "optional" if each in optional.split() else "required" for each in named}
    contradictions = [Contradiction(description="d", resolution=conflict.strip(":"))] if conflict else []
    gaps = [Gap(subtask_id="t1", reason="no unit")] * points
    return ceiling(answer, reports, levels, contradictions, gaps, doubts_about("a goal", answer, reports))


WHOLE = [report(f"t{n}", finding=finding()) for n in range(4)]
PARTIAL, FAILED = report("t4", finding=finding("partial")), report("t5", "failed")
FIGURE = Unsupported(text="1 %", where="answer")
MADE_UP = Unsupported(text="180", where="answer_json.days")
MANY = [Unsupported(text=f"{number} %", where="answer") for number in range(40)]


def test_a_whole_answer_that_names_its_basis_may_be_sure() -> None:
    assert bound(WHOLE) == bound(WHOLE, conflict="the newer figure") == 1.0
    assert bound([], Answer(text="a")) == 1.0  # an answer without a plan has nothing to cite


@pytest.mark.parametrize(
    ("reports", "more", "expected"),
    [
        ([report("t4", finding=finding(unsupported=1))], {}, 0.65),
        ([report("t4", finding=finding(unsupported=1)), report("t5", finding=finding(unsupported=1))], {}, 0.6),
        ([], {"answer": citing("t1", unsupported=[FIGURE])}, 0.45),
        ([], {"answer": citing("t1", unsupported=[FIGURE, MADE_UP])}, 0.4),
        ([], {"answer": citing("t1", unsupported=[FIGURE] * 3)}, 0.45),  # one claim, found at three places
        ([], {"answer": citing("t1", unsupported=MANY)}, 0.1),
        ([], {"conflict": ":"}, 0.6),
        ([], {"conflict": ": \n:"}, 0.6),
        ([], {"points": 3}, 0.65),
        ([report("t4", stale=True)], {}, 0.7),
        ([], {"answer": Answer(text="a")}, 0.6),
        ([report("t4", finding=finding(unsupported=2))], {"answer": Answer(text="a")}, 0.51),  # two kinds
        ([report("t4", finding=finding(unsupported=2), stale=True)], {"answer": Answer(text="a")}, 0.43),
        ([report("t4", finding=finding(grounding="knowledge"))], {}, 0.7),
        ([report(t, finding=finding(grounding="knowledge")) for t in ("t4", "t5")], {}, 0.7),
    ],
)
def test_no_answer_with_a_known_fault_reads_as_sure(
    reports: list[SubtaskReport], more: dict[str, Any], expected: float
) -> None:
    assert bound([*WHOLE, *reports], **more) == expected < SURE


def test_a_claim_without_support_that_the_answer_repeats_counts_as_one_of_the_answer() -> None:
    reports = [*WHOLE, report("t4", finding=finding(unsupported=1))]
    cited = CITING.citations
    assert bound(reports, Answer(text="It is claim 0.", citations=cited)) == 0.45
    assert bound(reports, Answer(text="It is claim 01.", citations=cited)) == 0.65
    assert bound(reports, Answer(text="claim 0", citations=cited, unsupported=[FIGURE])) == 0.4


def test_a_doubt_about_a_query_keeps_it_below_a_half() -> None:
    doubted = report("t4", finding=finding(doubts=["the query has no condition on 1994"]))
    assert bound([*WHOLE, doubted]) == 0.45
    listed = [(doubt.text, doubt.where) for doubt in doubts_about("a goal", CITING, [*WHOLE, doubted])]
    assert listed == [("the query has no condition on 1994", "t4")]


def test_an_answer_without_a_part_of_the_goal_is_below_a_half() -> None:
    goal = "What was the revenue in the South, and which carrier took over there?"
    answer = Answer(text="The revenue in the South was 24,591.60 EUR.", citations=CITING.citations)
    doubts = doubts_about(goal, answer, WHOLE)

    assert [(doubt.text, doubt.where) for doubt in doubts] == [
        ("the answer has nothing for: which carrier took over there", "answer")
    ]
    assert ceiling(answer, WHOLE, {"t1": "required"}, [], [], doubts) == 0.45


@pytest.mark.parametrize(
    ("reports", "optional", "expected"),
    [
        ([*WHOLE[:3], FAILED], "", 0.75),
        ([*WHOLE[:3], PARTIAL], "", 0.88),
        ([*WHOLE, FAILED], "t5", 0.89),
        ([*WHOLE, PARTIAL], "t4", 0.94),
        ([FAILED], "", 0.0),
        ([*WHOLE, report("t5.1", "failed")], "", 1.0),  # an item: its template counts
        ([FAILED, WHOLE[0]], "t0", 0.33),
        *(([WHOLE[0], report("t5", state)], "", 0.5) for state in ("skipped", "cancelled", "running", "waiting")),
        *(([report("each", counts=Counts(total=2, completed=n))], "", n / 2) for n in (1, 2)),
    ],
)
def test_what_is_missing_lowers_it_in_proportion(reports: list[SubtaskReport], optional: str, expected: float) -> None:
    assert bound(reports, optional=optional) == expected


@pytest.mark.parametrize(
    ("reports", "cited", "optional", "expected"),
    [
        (own(0.9, 0.7), "t0 t1", "", 0.8),  # their mean
        (own(0.9, 0.7), "t0 t0", "", 0.85),  # the weakest, cited or not
        (own(*[0.9] * 11, 0.05), "t0", "", 0.53),
        (own(0.9, 0.05), "t0", "t1", 0.9),  # an optional one only where it is cited
        (own(0.9, 0.0), "t0 t1", "t1", 0.45),
        ([*own(0.9), report("t8", finding=finding()), report("t9")], "t0 t8 t9 ghost", "", 0.9),
    ],
)
def test_the_findings_own_doubts_bound_it(
    reports: list[SubtaskReport], cited: str, optional: str, expected: float
) -> None:
    assert bound(reports, citing(*cited.split()), optional) == expected


reports_of_any_kind = st.lists(
    st.builds(
        report,
        st.uuids().map(str),
        st.sampled_from(["completed", "failed"]),
        stale=st.booleans(),
        finding=st.builds(
            finding,
            st.sampled_from(["done", "partial"]),
            st.integers(0, 3),
            confidence=st.none() | st.floats(0, 1),
            grounding=st.sampled_from(["tools", "knowledge"]),
        ),
    ),
    max_size=6,
)


@given(reports_of_any_kind, st.integers(0, 3), st.sampled_from([{}, {"points": 1}, {"conflict": ":"}]))
def test_one_more_fault_never_raises_it(reports: list[SubtaskReport], made_up: int, more: dict[str, Any]) -> None:
    now = bound(reports, citing("t1", unsupported=[FIGURE] * made_up), **more)
    assert 0.0 <= bound(reports, citing("t1", unsupported=[FIGURE] * (made_up + 1)), **more) <= now <= 1.0
    assert bound(reports, Answer(text="a", unsupported=[FIGURE] * made_up), **more) <= now
    for n, one in enumerate(reports):
        for fault in ({"stale": True}, {"state": "failed"}):
            worse = [*reports[:n], one.model_copy(update=fault), *reports[n + 1 :]]
            assert bound(worse, citing("t1", unsupported=[FIGURE] * made_up), **more) <= now


# --- the list -------------------------------------------------------------------------------------


def test_claims_without_support_are_listed_with_their_place_the_answers_first() -> None:
    answer = Answer(text="a", unsupported=[FIGURE, MADE_UP])
    assert unsupported_in(answer, [report("t1"), report("t2", finding=finding(unsupported=2))]) == [
        FIGURE,
        MADE_UP,
        Unsupported(text="claim 0", where="t2"),
        Unsupported(text="claim 1", where="t2"),
    ]


def test_the_list_of_claims_without_support_is_bounded() -> None:
    answer = Answer(text="a", unsupported=[FIGURE] * (limits.UNSUPPORTED_LISTED - 1))
    listed = unsupported_in(answer, [report("t1", finding=finding(unsupported=3))])
    assert len(listed) == limits.UNSUPPORTED_LISTED
