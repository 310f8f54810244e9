"""The bound of confidence: what is wrong with an answer's basis lowers it, and nothing raises it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.results.confidence import SURE, Basis, ceiling

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
