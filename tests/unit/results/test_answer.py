"""Answers: what a model claims is checked against what was done, and bounds how sure it may be."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.base.text import size
from supervision.contract.finding import Finding, Outcome
from supervision.contract.plan import Importance
from supervision.contract.progress import Counts
from supervision.contract.result import Citation, Contradiction, Gap, SubtaskReport, SubtaskState, Unsupported
from supervision.results.answer import (
    TRIED_SHOWN,
    Answer,
    checked_contradictions,
    failure_text,
    findings_as_answer,
    with_gaps,
)
from supervision.results.confidence import SURE, Basis, basis_of, ceiling, unsupported_in
from tests.unit.shapes import any_text

ids = st.sampled_from(["t1", "t2", "t3", "ghost", ""])
completed_sets = st.sets(st.sampled_from(["t1", "t2", "t3"]))


@given(
    st.lists(st.builds(Contradiction, description=st.sampled_from(["a", " "]), subtask_ids=st.lists(ids))),
    completed_sets,
)
def test_contradictions_name_completed_subtasks_only(items: list[Contradiction], completed: set[str]) -> None:
    kept = checked_contradictions(items, completed)
    assert all(set(c.subtask_ids) <= completed and c.subtask_ids for c in kept)
    assert len(kept) == sum(c.description == "a" and bool(completed & {*c.subtask_ids}) for c in items)


def test_the_answer_lists_what_is_missing() -> None:
    gaps = [Gap(subtask_id="t2", reason="failed: TurnLimit: no finding"), Gap(subtask_id="t3", reason="skipped")]
    assert with_gaps("Sales grew.\n\n", gaps) == (
        "Sales grew.\n\n**Missing from this answer**\n\n- `t2`: failed: TurnLimit: no finding\n- `t3`: skipped"
    )


@given(any_text, st.lists(st.builds(Gap, subtask_id=st.sampled_from(["t1", "t2"]), reason=any_text), max_size=4))
def test_each_gap_is_one_line_after_the_untouched_answer(answer: str, gaps: list[Gap]) -> None:
    told = with_gaps(answer, gaps)
    assert told.startswith(answer.rstrip() if gaps else answer)
    assert len(told) >= len(answer.rstrip())
    listed = told[len(answer.rstrip()) :].splitlines() if gaps else []
    assert sum(line.startswith("- `t") for line in listed) == len(gaps)
    if gaps:
        assert len(listed) == 4 + len(gaps)
    else:
        assert told == answer


# --- runs without an answer -----------------------------------------------------------------------


def found(subtask_id: str, summary: str) -> SubtaskReport:
    return SubtaskReport(id=subtask_id, state="completed", finding=Finding(summary=summary, text_ref="r"))


def test_findings_in_place_of_an_answer_stand_under_their_subtasks_with_the_reason() -> None:
    told = findings_as_answer([found("t1", "Four."), SubtaskReport(id="t2"), found("t3", "Five.")], "the model is away")
    reason, *rest = told.split("\n\n")
    assert "the model is away" in reason
    assert rest == ["**t1**", "Four.", "**t3**", "Five."]


@pytest.mark.parametrize("others", [0, 1, 4])
def test_findings_in_place_of_an_answer_share_its_room_evenly(others: int) -> None:
    share = limits.ANSWER_INLINE_BYTES // (1 + others)
    told = findings_as_answer([found("t1", "a" * (share + 1)), *[found("t2", "b" * share)] * others], "why")
    assert f"\n{'a' * (share - len('…'.encode()))}…" in told
    assert told.count("b" * share) == others


def tried(number: int, attempts: int = 1) -> SubtaskReport:
    return SubtaskReport(
        id=f"t{number}", role="digger", description=f"Dig hole {number}", state="failed", attempts=attempts
    )


def lines_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("- ")]


def test_a_failed_run_gives_the_advice_and_what_was_tried() -> None:
    told = failure_text("Ask again.", [tried(1), tried(2, attempts=0), tried(3)])
    assert told.startswith("Ask again.\n")
    first, second = lines_of(told)
    assert "Dig hole 1" in first
    assert "Dig hole 3" in second


@pytest.mark.parametrize(("attempts", "words"), [(1, "1 attempt by digger"), (3, "3 attempts by digger")])
def test_what_was_tried_says_how_often_and_by_whom(attempts: int, words: str) -> None:
    (line,) = lines_of(failure_text("Ask again.", [tried(1, attempts)]))
    assert words in line


@pytest.mark.parametrize(("count", "more"), [(0, False), (1, True), (7, True)])
def test_a_long_list_of_what_was_tried_is_cut_and_counted(count: int, more: bool) -> None:
    shown = lines_of(failure_text("Ask again.", [tried(n) for n in range(TRIED_SHOWN + count)]))
    assert len([line for line in shown if "Dig" in line]) == TRIED_SHOWN
    assert [line for line in shown if "Dig" not in line] == ([f"- and {count} more"] if more else [])


def test_the_reason_of_a_gap_is_told_at_some_length() -> None:
    told = with_gaps("a", [Gap(subtask_id="t1", description="d" * 1000, reason="r" * 1000)])
    assert size(told.splitlines()[-1]) == size("-  (`t1`: )") + limits.SENTENCE_BYTES + 600


# --- confidence --------------------------------------------------------------------------------------


WHOLE = Basis(required=4, citations=3)
COUNTS = st.integers(0, 20)


def test_a_whole_answer_that_names_its_basis_may_be_sure() -> None:
    assert ceiling(WHOLE) == 1.0
    assert ceiling(Basis()) == 1.0


@pytest.mark.parametrize(
    "fault",
    [
        {"unsupported_in_answer": 1},
        {"unsupported_in_findings": 1},
        {"unsettled": 1},
        {"open_points": 1},
        {"stale": 1},
        {"citations": 0},
        {"own": (0.5, 0.9)},
        {"missing_required": 2},
        {"partial_required": 4},
    ],
)
def test_no_answer_with_a_known_fault_reads_as_sure(fault: dict[str, Any]) -> None:
    assert ceiling(replace(WHOLE, **fault)) < SURE


def test_what_is_missing_lowers_it_in_proportion() -> None:
    assert ceiling(replace(WHOLE, missing_required=1)) == 0.75
    assert ceiling(replace(WHOLE, partial_required=1)) == 0.88
    assert ceiling(replace(WHOLE, optional=4, missing_optional=2)) == 0.83
    assert ceiling(replace(WHOLE, optional=4, missing_optional=1, partial_optional=2)) == 0.83
    assert ceiling(replace(WHOLE, missing_required=4)) == 0.0


def test_each_further_figure_from_nowhere_lowers_it() -> None:
    assert [ceiling(replace(WHOLE, unsupported_in_answer=n)) for n in (1, 2, 3, 40)] == [0.5, 0.45, 0.4, 0.1]
    assert [ceiling(replace(WHOLE, unsupported_in_findings=n)) for n in (1, 2)] == [0.65, 0.6]


def test_the_findings_own_doubts_bound_it() -> None:
    assert ceiling(replace(WHOLE, own=(0.9, 0.7))) == 0.8


def test_each_further_kind_of_fault_lowers_it() -> None:
    made_up = replace(WHOLE, unsupported_in_findings=2)
    assert [ceiling(made_up), ceiling(replace(made_up, citations=0))] == [0.6, 0.51]
    assert ceiling(replace(made_up, citations=0, stale=1)) == 0.43


def test_the_weakest_required_finding_bounds_it() -> None:
    assert ceiling(replace(WHOLE, own=(*[0.9] * 11, 0.05), weakest=0.05)) == 0.53
    assert ceiling(replace(WHOLE, own=(0.9, 0.8), weakest=0.8)) == 0.85


def test_a_finding_from_knowledge_bounds_it_and_two_do_not_bound_it_more() -> None:
    assert [ceiling(replace(WHOLE, from_knowledge=n)) for n in (0, 1, 2)] == [1.0, 0.7, 0.7]


@given(
    st.builds(
        Basis,
        required=COUNTS,
        optional=COUNTS,
        missing_required=COUNTS,
        missing_optional=COUNTS,
        partial_required=COUNTS,
        partial_optional=COUNTS,
        unsupported_in_answer=COUNTS,
        unsupported_in_findings=COUNTS,
        unsettled=COUNTS,
        open_points=COUNTS,
        stale=COUNTS,
        citations=COUNTS,
        own=st.lists(st.floats(0, 1), max_size=4),
        weakest=st.floats(0, 1),
        from_knowledge=COUNTS,
    ),
    st.sampled_from(
        ["missing_required", "partial_required", "unsupported_in_answer", "unsettled", "stale", "from_knowledge"]
    ),
)
def test_one_more_fault_never_raises_it(basis: Basis, fault: str) -> None:
    worse = replace(basis, **{fault: getattr(basis, fault) + 1})
    assert 0.0 <= ceiling(worse) <= ceiling(basis) <= 1.0


def test_a_plan_with_as_many_optional_as_required_subtasks_needs_citations_too() -> None:
    assert ceiling(Basis(required=1, optional=1)) == 0.6
    assert ceiling(Basis()) == 1.0


def finding(outcome: Outcome = "done", confidence: float | None = None, unsupported: int = 0) -> Finding:
    claims = [f"claim {n}" for n in range(unsupported)]
    return Finding(summary="s", text_ref="r", outcome=outcome, confidence=confidence, unsupported=claims)


def report(subtask_id: str, state: SubtaskState = "completed", found: Finding | None = None) -> SubtaskReport:
    return SubtaskReport(id=subtask_id, state=state, finding=found)


def basis(*reports: SubtaskReport, answer: Answer | None = None, optional: str = "") -> Basis:
    """The basis of an answer; `optional` are the ids of subtasks that the plan calls so."""
    levels: dict[str, Importance] = {r.id: "optional" if r.id in optional.split() else "required" for r in reports}
    return basis_of(answer or Answer(), reports, levels, [], [])


def citing(*subtask_ids: str) -> Answer:
    return Answer("a", citations=[Citation(claim="c", subtask_ids=[subtask_id]) for subtask_id in subtask_ids])


def test_an_answer_without_a_plan_rests_on_nothing() -> None:
    assert basis() == Basis(own=[])


def test_the_weakest_required_finding_counts_cited_or_not_and_an_optional_one_does_not() -> None:
    reports = [report(f"t{n}", found=finding(confidence=n / 10)) for n in (1, 3, 9)]
    assert basis(*reports, report("t4", found=finding()), optional="t1").weakest == 0.3


def test_findings_from_knowledge_are_counted() -> None:
    remembered = finding().model_copy(update={"grounding": "knowledge"})
    others = [report(f"t{n}", found=finding()) for n in (2, 3)]
    assert basis(report("t1", found=remembered), *others).from_knowledge == 1


def test_required_and_optional_subtasks_are_counted_apart() -> None:
    counted = basis(report("t1"), report("t2"), report("t3"), optional="t2")
    assert (counted.required, counted.optional) == (2, 1)


@pytest.mark.parametrize("state", ["failed", "skipped", "cancelled", "running", "waiting"])
def test_whatever_did_not_complete_is_missing(state: SubtaskState) -> None:
    counted = basis(report("t1"), report("t2", state), report("t3", state), report("t4", state), optional="t4")
    assert (counted.missing_required, counted.missing_optional) == (2, 1)


def test_a_completed_subtask_with_a_partial_finding_is_partial() -> None:
    partial = finding("partial")
    reports = [report("t1", found=partial), report("t2", found=finding()), report("t3", found=partial)]
    items = [Counts(total=2, completed=number) for number in (1, 2)]
    reports += [SubtaskReport(id="each", state="completed", counts=counts) for counts in items]
    counted = basis(*reports, optional="t3")
    assert (counted.partial_required, counted.partial_optional) == (2, 1)
    assert (counted.missing_required, counted.missing_optional) == (0, 0)


def test_claims_without_support_are_counted_where_they_stand() -> None:
    field = Unsupported(text="180", where="answer_json.days")
    answer = Answer("a", unsupported=["1 %", "2 %"], unsupported_fields=[field])
    counted = basis(
        report("t1", found=finding(unsupported=2)),
        report("t2"),
        report("t3", found=finding(unsupported=3)),
        answer=answer,
    )
    assert (counted.unsupported_in_answer, counted.unsupported_in_findings) == (3, 5)


def test_a_contradiction_is_unsettled_until_it_has_a_resolution() -> None:
    items = [Contradiction(description="d", resolution=text) for text in ("", " \n", "the newer figure")]
    assert basis_of(Answer(), [], {}, items, []).unsettled == 2


def test_open_points_and_stale_findings_and_citations_are_counted() -> None:
    stale = [report(f"t{n}").model_copy(update={"stale": n < 2}) for n in range(3)]
    points = [Gap(subtask_id="t1", reason="no unit")] * 4
    counted = basis_of(citing("t1", "t2", "t1"), stale, {}, [], points)
    assert (counted.open_points, counted.stale, counted.citations) == (4, 2, 3)


def test_only_cited_findings_that_claim_a_confidence_give_their_own() -> None:
    reports = [
        report("cited", found=finding(confidence=0.9)),
        report("cited surely", found=finding(confidence=0.0)),
        report("cited without", found=finding()),
        report("cited empty"),
        report("uncited", found=finding(confidence=0.2)),
    ]
    counted = basis(*reports, answer=citing("cited", "cited", "cited surely", "cited without", "cited empty", "nobody"))
    assert counted.own == [0.9, 0.0]


# --- the list -------------------------------------------------------------------------------------


def test_claims_without_support_are_listed_with_their_place_the_answers_first() -> None:
    field = Unsupported(text="180", where="answer_json.days")
    answer = Answer("a", unsupported=["5 %"], unsupported_fields=[field])
    listed = unsupported_in(answer, [report("t1"), report("t2", found=finding(unsupported=2))])
    assert listed == [
        Unsupported(text="5 %", where="answer"),
        field,
        Unsupported(text="claim 0", where="t2"),
        Unsupported(text="claim 1", where="t2"),
    ]


def test_the_list_of_claims_without_support_is_bounded() -> None:
    answer = Answer("a", unsupported=["1 %"] * (limits.UNSUPPORTED_LISTED - 1))
    assert len(unsupported_in(answer, [report("t1", found=finding(unsupported=3))])) == limits.UNSUPPORTED_LISTED
