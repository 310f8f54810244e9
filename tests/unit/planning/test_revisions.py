"""Append-only revisions: what was done stays as it was, what is new fits in, and what is left can still run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.plan import NewRole, Plan, Subtask
from supervision.contract.result import SubtaskState
from supervision.planning.plan_graph import find_cycle
from supervision.planning.revisions import merge, replacements, revision_problems
from tests.unit.shapes import acyclic_plans, plan, subtask

STATES: list[SubtaskState] = ["completed", "failed", "skipped", "cancelled", "running", "waiting"]


def replacing(subtask_id: str, *replaces: str, after: tuple[str, ...] = ()) -> Subtask:
    return subtask(subtask_id, *after).model_copy(update={"replaces": list(replaces)})


@st.composite
def additions(draw: st.DrawFn, previous: Plan, prefix: str, replaceable: list[str]) -> Plan:
    """New subtasks that build on anything older; some take the place of failed ones."""
    known = [s.id for s in previous.subtasks]
    new: list[Subtask] = []
    for n in range(draw(st.integers(1, 4))):
        replaces = draw(st.lists(st.sampled_from(replaceable), unique=True, max_size=2)) if replaceable else []
        depends_on = draw(st.lists(st.sampled_from([*known, *[s.id for s in new]]), unique=True, max_size=3))
        new.append(replacing(f"{prefix}{n}", *replaces, after=tuple(depends_on)))
    return plan(*new)


def replaceable(candidate: Plan, states: dict[str, SubtaskState]) -> list[str]:
    gone = replacements(candidate.subtasks)
    return [s.id for s in candidate.subtasks if states[s.id] in ("failed", "skipped") and s.id not in gone]


@given(acyclic_plans(8), st.data())
def test_revisions_change_no_started_work_and_leave_a_graph_that_can_run(current: Plan, data: st.DataObject) -> None:
    states: dict[str, SubtaskState] = {}
    for revision in range(2, 5):
        for s in current.subtasks:
            if states.get(s.id, "waiting") == "waiting":
                states[s.id] = data.draw(st.sampled_from(STATES))
        addition = data.draw(additions(current, f"r{revision}-", replaceable(current, states)))
        if revision_problems(current, addition, 99, states):
            continue
        merged = merge(current, addition, states)
        assert merged.revision == current.revision + 1
        assert [s.id for s in merged.subtasks] == [s.id for s in [*current.subtasks, *addition.subtasks]]
        assert find_cycle(merged.subtasks) == []
        gone = replacements(merged.subtasks)
        for before, after in zip(current.subtasks, merged.subtasks, strict=False):
            assert after.model_copy(update={"depends_on": before.depends_on}) == before
            if states[before.id] not in ("waiting", "skipped") or before.id in gone:
                assert after == before
        for s in merged.subtasks:
            assert set(s.depends_on) <= {other.id for other in merged.subtasks} - {s.id}
            if states.get(s.id, "waiting") in ("waiting", "skipped") and s.id not in gone:
                assert not gone.keys() & {*s.depends_on}
        current = merged


@given(acyclic_plans(6), st.data())
def test_an_addition_in_plan_order_is_refused_only_for_a_circle(current: Plan, data: st.DataObject) -> None:
    """New subtasks build on older ones only: a circle can come from what they replace alone."""
    states = {s.id: data.draw(st.sampled_from(STATES)) for s in current.subtasks}
    addition = data.draw(additions(current, "n", replaceable(current, states)))
    found = revision_problems(current, addition, 99, states)
    assert all("circle" in problem or "which it replaces" in problem for problem in found)
    if not any(s.replaces for s in addition.subtasks):
        assert found == []


def test_dependents_that_have_not_started_wait_for_the_replacement() -> None:
    previous = plan(subtask("t1"), subtask("t2"), subtask("t3", "t1"), subtask("t4", "t2"), subtask("t5", "t3", "t4"))
    states: dict[str, SubtaskState] = {"t1": "failed", "t2": "completed", "t3": "skipped", "t4": "running"}
    merged = merge(previous, plan(replacing("t6", "t1")), states)
    assert [s.depends_on for s in merged.subtasks] == [[], [], ["t6"], ["t2"], ["t3", "t4"], []]
    merged = merge(previous, plan(replacing("t6", "t1", "t3")), states)
    assert [s.depends_on for s in merged.subtasks] == [[], [], ["t1"], ["t2"], ["t6", "t4"], []]
    assert previous.subtask("t5").depends_on == ["t3", "t4"]


def test_instruction_and_roles_are_added_to() -> None:
    role = NewRole(name="poet", description="d", system_prompt="p")
    previous = plan(subtask("t1")).model_copy(update={"final_instruction": "short", "new_roles": [role]})
    addition = plan(subtask("t2"))
    assert merge(previous, addition, {}).final_instruction == "short"
    addition = addition.model_copy(update={"final_instruction": "long", "new_roles": [role]})
    merged = merge(previous, addition, {})
    assert (merged.final_instruction, merged.new_roles, merged.goal) == ("long", [role, role], "g")


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        (subtask("t1"), "subtask id 't1' is in the plan already: give new subtasks new ids"),
        (replacing("t9", "t7"), "subtask 't9' replaces 't7', which is not in the plan so far"),
        (replacing("t9", "t2"), "subtask 't9' replaces 't2', which is completed: only failed or skipped ones can be"),
        (replacing("t9", "t1"), "subtask 't9' replaces 't1', which t3 replaced before: replace that"),
        (replacing("t9", "t3", after=("t3",)), "subtask 't9' depends on 't3', which it replaces"),
        (replacing("t9", "t3", after=("t4",)), "these subtasks depend on each other in a circle: "),
    ],
)
def test_an_addition_that_does_not_fit_is_refused_with_the_reason(added: Subtask, complaint: str) -> None:
    previous = plan(subtask("t1"), subtask("t2"), replacing("t3", "t1"), subtask("t4", "t3"))
    states: dict[str, SubtaskState] = {"t1": "failed", "t2": "completed", "t3": "failed"}
    [found] = revision_problems(previous, plan(added), 9, states)
    assert found.startswith(complaint)


def test_an_addition_of_nothing_is_refused() -> None:
    assert revision_problems(plan(subtask("t1")), plan(), 9, {}) == ["the revision adds no subtasks"]


@pytest.mark.parametrize(("newer", "kept"), [("it failed", "it failed"), ("", "as asked")])
def test_a_revision_says_why_it_is_so_and_without_a_word_the_reason_before_stands(newer: str, kept: str) -> None:
    previous, addition = plan(subtask("a")), plan(subtask("b"))
    previous.reasoning, addition.reasoning = "as asked", newer
    assert merge(previous, addition, {}).reasoning == kept
