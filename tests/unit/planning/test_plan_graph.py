"""Validation finds whatever keeps a plan from running, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.contract.plan import Plan
from supervision.planning.plan_graph import find_cycle, plan_problems
from tests.unit.shapes import acyclic_plans, any_plans, any_text, plan, subtask


def executable(candidate: Plan) -> bool:
    """True if taking away all that have no open dependency empties the graph: another way to say acyclic."""
    open_ids = {s.id: set(s.depends_on) for s in candidate.subtasks}
    while ready := [subtask_id for subtask_id, waits in open_ids.items() if not waits & open_ids.keys()]:
        for subtask_id in ready:
            del open_ids[subtask_id]
    return not open_ids


@given(acyclic_plans())
def test_a_plan_that_can_run_has_no_problem(candidate: Plan) -> None:
    assert plan_problems(candidate, len(candidate.subtasks)) == []


@given(any_plans())
def test_a_plan_is_accepted_exactly_when_it_can_run(candidate: Plan) -> None:
    ids = [s.id for s in candidate.subtasks]
    sound = len(set(ids)) == len(ids) and all(d in ids for s in candidate.subtasks for d in s.depends_on)
    assert (plan_problems(candidate, 10) == []) == (sound and executable(candidate))


@given(any_plans())
def test_every_twin_stranger_and_self_reference_is_named(candidate: Plan) -> None:
    found = plan_problems(candidate, 10)
    ids = [s.id for s in candidate.subtasks]
    for subtask_id in ids:
        assert (f"subtask id '{subtask_id}' is used twice" in found) == (ids.count(subtask_id) > 1)
    for item in candidate.subtasks:
        for dependency in item.depends_on:
            if dependency == item.id:
                assert f"subtask '{item.id}' depends on itself" in found
            elif dependency not in ids:
                assert f"subtask '{item.id}' depends on '{dependency}', which is not in the plan" in found


@given(any_plans())
def test_a_circle_is_told_as_steps_that_each_exist(candidate: Plan) -> None:
    circle = find_cycle(candidate.subtasks)
    by_id = {s.id: s for s in candidate.subtasks}
    if circle:
        assert circle[0] == circle[-1]
        assert all(after in by_id[before].depends_on for before, after in zip(circle, circle[1:], strict=False))


@given(acyclic_plans(), st.data())
def test_closing_any_path_makes_a_circle_that_is_found(candidate: Plan, data: st.DataObject) -> None:
    by_id = {s.id: s for s in candidate.subtasks}
    last = by_id[data.draw(st.sampled_from(sorted(by_id)))]
    first = last
    while first.depends_on:
        first = by_id[data.draw(st.sampled_from(first.depends_on))]
    first.depends_on = [*first.depends_on, last.id]
    assert any("in a circle" in found or "depends on itself" in found for found in plan_problems(candidate, 99))


def test_a_long_chain_is_no_circle_and_no_recursion() -> None:
    chain = [subtask("t0"), *[subtask(f"t{n}", f"t{n - 1}") for n in range(1, limits.MAX_SUBTASKS)]]
    assert plan_problems(plan(*reversed(chain)), limits.MAX_SUBTASKS) == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": ""}, "must be 1 to 64 letters"),
        ({"id": "a b"}, "must be 1 to 64 letters"),
        ({"id": "x" * 65}, "must be 1 to 64 letters"),
        ({"id": "tâche"}, "must be 1 to 64 letters"),
        ({"description": "research"}, "no concrete description"),
        ({"description": "researchresearch"}, "no concrete description"),
        ({"description": " " * 40}, "no concrete description"),
        ({"description": "a " * limits.DESCRIPTION_CHARS}, "more than 4000 characters"),
        ({"attachments": ["gone.txt"]}, "the attachment 'gone.txt', which does not exist"),
        ({"candidates": 6}, "6 candidates"),
        ({"candidates": 0}, "0 candidates"),
        ({"timeout_seconds": 0.0}, "timeout_seconds"),
        ({"timeout_seconds": -1.0}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": float("inf")}, "timeout_seconds"),
        ({"timeout_seconds": 1e300}, "timeout_seconds"),
    ],
)
def test_a_bad_subtask_is_refused_with_the_reason(changes: dict[str, Any], complaint: str) -> None:
    [found] = plan_problems(plan(subtask("t1").model_copy(update=changes)), 5, ["there.txt"])
    assert complaint in found


@pytest.mark.parametrize(
    "description",
    ["Sum the sales", "分析各地区的销售增长", "2024年の売上を調べる", "Найди выручку", "find\tthe\nsales of 1990"],
)
def test_a_description_is_concrete_in_any_script(description: str) -> None:
    assert plan_problems(plan(subtask("t1", description=description)), 5) == []


@given(any_text, any_text)
def test_whatever_a_model_writes_gets_problems_that_can_be_sent_back(subtask_id: str, description: str) -> None:
    candidate = plan(subtask(subtask_id, description=description), subtask("t2", subtask_id))
    for found in plan_problems(candidate, 5):
        assert "\n" not in found
        found.encode("utf-8")
    if not plan_problems(candidate, 5):
        assert Plan.model_validate_json(candidate.model_dump_json()) == candidate


@pytest.mark.parametrize("field", ["goal", "final_instruction", "direct_answer"])
def test_half_a_surrogate_pair_anywhere_is_refused(field: str) -> None:
    candidate = plan(subtask("t1")).model_copy(update={field: "\ud83e"})
    assert "surrogate" in plan_problems(candidate, 5)[0]


def test_a_plan_answers_directly_or_delegates() -> None:
    direct = Plan(direct_answer="Four.")
    assert plan_problems(direct, 5) == []
    assert "not both" in plan_problems(direct.model_copy(update={"subtasks": [subtask("t1")]}), 5)[0]
    assert "no subtasks" in plan_problems(Plan(direct_answer=" \n"), 5)[0]
    assert "no subtasks" in plan_problems(Plan(), 5)[0]


def test_a_plan_above_the_limit_is_refused() -> None:
    candidate = plan(subtask("t1"), subtask("t2"))
    assert plan_problems(candidate, 2) == []
    assert plan_problems(candidate, 1) == ["the plan has 2 subtasks, at most 1 are allowed"]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("id", ["a", "x" * 64], ["", "x" * 65]),
        ("candidates", [1, limits.CANDIDATES], [0, limits.CANDIDATES + 1]),
        ("timeout_seconds", [0.1, limits.MAX_DEADLINE.total_seconds()], [0.0, limits.MAX_DEADLINE.total_seconds() + 1]),
        ("description", ["count pears.", "数数梨的数量"], ["count pears", "count-the-pears", "数梨", "  count pear  "]),
    ],
)
def test_fields_are_taken_up_to_their_bounds(field: str, good: list[object], bad: list[object]) -> None:
    for value in good:
        assert plan_problems(plan(subtask("t1").model_copy(update={field: value})), 1) == [], value
    for value in bad:
        assert len(plan_problems(plan(subtask("t1").model_copy(update={field: value})), 1)) == 1, value
