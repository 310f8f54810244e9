"""What an answer rests on, counted, and the bound of confidence that it sets."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.finding import Finding, Outcome
from supervision.contract.plan import Importance
from supervision.contract.result import Citation, Contradiction, Gap, SubtaskReport, SubtaskState, Unsupported
from supervision.results.answer import Answer
from supervision.results.confidence import SURE, Basis, basis_of, ceiling, unsupported_in

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
    assert basis(report("t1", found=remembered), report("t2", found=finding())).from_knowledge == 1


def test_required_and_optional_subtasks_are_counted_apart() -> None:
    counted = basis(report("t1"), report("t2"), report("t3"), optional="t2")
    assert (counted.required, counted.optional) == (2, 1)


@pytest.mark.parametrize("state", ["failed", "skipped", "cancelled", "running", "waiting"])
def test_whatever_did_not_complete_is_missing(state: SubtaskState) -> None:
    counted = basis(report("t1"), report("t2", state), report("t3", state), report("t4", state), optional="t4")
    assert (counted.missing_required, counted.missing_optional) == (2, 1)


def test_a_completed_subtask_with_a_partial_finding_is_partial() -> None:
    partial = finding("partial")
    counted = basis(
        report("t1", found=partial), report("t2", found=finding()), report("t3", found=partial), optional="t3"
    )
    assert (counted.partial_required, counted.partial_optional) == (1, 1)
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
