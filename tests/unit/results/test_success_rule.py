"""The success rule in exact numbers: what counts, how many, and whether it can still come."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.contract.plan import Importance, Plan
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.result import SubtaskReport, SubtaskState
from temporal_supervisor.supervision.results.success_rule import (
    explain_rule,
    is_met,
    is_reachable,
    needed_subtasks,
    nothing_missing,
)
from tests.unit.shapes import FINDING, subtask

STATES: list[SubtaskState] = ["completed", "failed", "skipped", "cancelled", "running", "waiting"]

rules = st.sampled_from(["any", "all", "2/3", "1/3", "1/1000", 0.5, 0.1, 1.0]) | st.builds(
    lambda a, b: f"{min(a, b)}/{max(a, b)}", st.integers(1, 50), st.integers(1, 50)
)
entries = st.lists(
    st.tuples(st.sampled_from(STATES), st.sampled_from(["required", "optional"])), min_size=1, max_size=12
)


def board(items: list[tuple[SubtaskState, Importance]]) -> tuple[list[SubtaskReport], dict[str, Importance]]:
    reports = [SubtaskReport(id=f"t{n}", state=state) for n, (state, _) in enumerate(items)]
    return reports, {f"t{n}": level for n, (_, level) in enumerate(items)}


@given(rules, entries)
def test_a_rule_is_met_exactly_when_its_share_has_completed(
    rule: str | float, items: list[tuple[SubtaskState, Importance]]
) -> None:
    reports, levels = board(items)
    if rule == "any":
        assert is_met(rule, reports, levels) == any(state == "completed" for state, _ in items)
        return
    required = [state for state, level in items if level == "required"] or [state for state, _ in items]
    share = Fraction(1) if rule == "all" else Fraction(str(rule))
    assert is_met(rule, reports, levels) == (required.count("completed") >= share * len(required))


@given(rules, entries)
def test_a_rule_is_within_reach_exactly_when_the_best_case_meets_it(
    rule: str | float, items: list[tuple[SubtaskState, Importance]]
) -> None:
    reports, levels = board(items)
    best = [r.model_copy(update={"state": "completed"}) if r.state in ("running", "waiting") else r for r in reports]
    assert is_reachable(rule, reports, levels) == is_met(rule, best, levels)
    if is_met(rule, reports, levels):
        assert is_reachable(rule, reports, levels)


@pytest.mark.parametrize(
    ("rule", "levels", "expected"),
    [
        ("any", "rro", 1),
        ("all", "rro", 2),
        ("all", "ooo", 3),
        ("2/3", "rrr", 2),
        ("2/3", "rrrr", 3),
        (0.5, "rrro", 2),
        (0.1, "r" * 10, 1),
        (0.3, "r" * 10, 3),
        ("1/1000", "r", 1),
    ],
)
def test_the_needed_number_is_rounded_up_in_exact_arithmetic(rule: str | float, levels: str, expected: int) -> None:
    names: dict[str, Importance] = {"r": "required", "o": "optional"}
    assert needed_subtasks(rule, {f"t{n}": names[level] for n, level in enumerate(levels)}) == expected


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match='"any", "all", or a fraction'):
        needed_subtasks("most", {"t1": "required"})


@pytest.mark.parametrize("rule", ["any", "all", 0.5])
def test_nothing_meets_no_rule(rule: str | float) -> None:
    assert not is_met(rule, [], {})
    assert not is_reachable(rule, [], {})


def test_what_a_later_revision_replaced_is_not_asked_for() -> None:
    plan = Plan(subtasks=[subtask("t1"), subtask("t2"), subtask("t3", replaces=["t1"])], revision=2)
    reports = [
        SubtaskReport(id="t1", state="failed"),
        SubtaskReport(id="t2", state="completed"),
        SubtaskReport(id="t3", state="running"),
    ]
    assert not is_met("all", reports, plan.importance)
    assert is_reachable("all", reports, plan.importance)
    reports[2].state = "completed"
    assert is_met("all", reports, plan.importance)


def test_the_explanation_names_the_numbers_and_what_is_missing() -> None:
    reports, levels = board(
        [("completed", "required"), ("failed", "required"), ("running", "required"), ("completed", "optional")]
    )
    assert explain_rule("2/3", reports, levels) == (
        'success "2/3" needs 2 of the 3 subtasks that count: 1 completed; t1 is failed, t2 is running'
    )


# --- nothing is missing ---------------------------------------------------------------------------


def whole(subtask_id: str = "t1", state: SubtaskState = "completed", **fields: object) -> SubtaskReport:
    return SubtaskReport.model_validate({"id": subtask_id, "state": state, "finding": FINDING, **fields})


PARTIAL = FINDING.model_copy(update={"outcome": "partial"})


@pytest.mark.parametrize(
    ("reports", "nothing"),
    [
        ([], True),
        *(([whole(), whole("t2", state)], state == "completed") for state in STATES),
        ([whole(finding=None)], True),
        ([whole(finding=PARTIAL)], False),
        ([whole(nested=NestedRun(status="completed"))], True),
        ([whole(nested=NestedRun(status="partial"))], False),
        ([whole("t1", "failed", replaced_by="t2"), whole("t2")], True),
        ([whole(counts=Counts(total=2, completed=2))], True),
        ([whole(counts=Counts(total=2, completed=2, partial=1))], False),
        ([whole(counts=Counts(total=3, completed=2, partial=1))], False),
    ],
)
def test_nothing_is_missing_if_all_that_counts_is_whole(reports: list[SubtaskReport], nothing: bool) -> None:
    assert nothing_missing(reports) == nothing
