"""Which subtasks may start: kept up to date with every change, it is what a look at the whole plan would find."""

from hypothesis import given
from hypothesis import strategies as st

from supervision.contract.plan import Plan
from supervision.run.board import Readiness
from tests.unit.shapes import acyclic_plans, plan, subtask

Outcome = tuple[bool, bool | None]
OUTCOMES: list[Outcome] = [(True, None), (False, None), (False, True), (False, False)]


def by_looking(shape: Plan, outcomes: dict[str, Outcome]) -> tuple[list[str], str | None]:
    """Returns what is ready and the first without hope, from the whole plan."""
    ready: list[str] = []
    hopeless: list[str] = []
    for each in shape.subtasks:
        successes = [outcomes[dependency][1] for dependency in each.depends_on]
        if not outcomes[each.id][0] or None in successes:
            continue
        (ready if True in successes or not successes else hopeless).append(each.id)
    return ready, next(iter(hopeless), None)


@given(acyclic_plans(), st.data())
def test_after_any_changes_it_is_what_a_look_at_the_plan_finds(shape: Plan, data: st.DataObject) -> None:
    ids = st.sampled_from([each.id for each in shape.subtasks])
    states = st.sampled_from(OUTCOMES)
    outcomes = {each.id: data.draw(states) for each in shape.subtasks}
    readiness = Readiness(shape.subtasks, outcomes.__getitem__)
    for subtask_id, outcome in data.draw(st.lists(st.tuples(ids, states), max_size=12)):
        outcomes[subtask_id] = outcome
        readiness.changed(subtask_id, *outcome)
        assert (list(readiness.ready()), readiness.hopeless()) == by_looking(shape, outcomes)


def test_it_begins_with_what_a_look_at_the_plan_finds() -> None:
    shape = plan(subtask("t1"), subtask("t2", "t1"), subtask("t3", "t1"), subtask("t4", "t2"))
    for first in OUTCOMES:
        outcomes: dict[str, Outcome] = {"t1": first, "t2": (True, None), "t3": (False, False), "t4": (True, None)}
        readiness = Readiness(shape.subtasks, outcomes.__getitem__)
        assert (list(readiness.ready()), readiness.hopeless()) == by_looking(shape, outcomes)


def test_a_subtask_that_waits_again_is_ready_again_and_its_dependents_are_not() -> None:
    shape = plan(subtask("t1"), subtask("t2", "t1"))
    readiness = Readiness(shape.subtasks, lambda subtask_id: (True, None))
    assert list(readiness.ready()) == ["t1"]
    readiness.changed("t1", waits=False, success=True)
    assert list(readiness.ready()) == ["t2"]
    readiness.changed("t1", waits=True, success=None)
    assert list(readiness.ready()) == ["t1"]
    readiness.changed("t1", waits=False, success=False)
    assert (list(readiness.ready()), readiness.hopeless()) == ([], "t2")
    readiness.changed("t2", waits=False, success=False)
    assert readiness.hopeless() is None


def test_a_second_success_makes_what_rests_on_both_ready() -> None:
    shape = plan(subtask("t1"), subtask("t2"), subtask("t3", "t1", "t2"))
    outcomes: dict[str, Outcome] = {"t1": (False, True), "t2": (False, None), "t3": (True, None)}
    readiness = Readiness(shape.subtasks, outcomes.__getitem__)
    readiness.changed("t2", waits=False, success=True)
    assert (list(readiness.ready()), readiness.hopeless()) == (["t3"], None)
