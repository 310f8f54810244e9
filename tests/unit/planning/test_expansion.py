"""Templates and their items: which are refused, how many there is room for, and the revision that has them."""

import json
from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import Finding
from temporal_supervisor.supervision.contract.plan import Plan, Subtask, folded, template_of
from temporal_supervisor.supervision.planning.expansion import (
    ITEM_BYTES,
    asks_for_each,
    for_each_problems,
    item_text,
    items_of,
    room_for,
    with_items,
)
from temporal_supervisor.supervision.planning.plan_graph import find_cycle, plan_problems
from temporal_supervisor.supervision.planning.revisions import merge, revision_problems
from temporal_supervisor.supervision.results.success_rule import nothing_missing
from temporal_supervisor.supervision.run.board import Board
from tests.unit.shapes import Clock, subtask, work

SOURCES = ["items:t1", "rows:orders", "lines:trees", "files:*.pdf"]
DATA = {"rows": ["orders"], "lines": ["trees"], "files": ["a.pdf", "B.PDF", "c.txt"]}


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """A plan that can run, with at least one template."""
    subtasks = [subtask("t1")]
    for number in range(2, draw(st.integers(3, 7))):
        earlier = [other.id for other in subtasks]
        after = {"t1", *draw(st.lists(st.sampled_from(earlier), max_size=3))} if draw(st.booleans()) else {"t1"}
        source = draw(st.sampled_from([None, *SOURCES])) if number > 2 else "items:t1"
        subtasks.append(subtask(f"t{number}", *sorted(after), for_each=source))
    return Plan(subtasks=subtasks)


def templates(plan: Plan) -> Iterator[Subtask]:
    return (planned for planned in plan.subtasks if planned.for_each)


@given(plans(), st.integers(1, 9))
def test_a_revision_with_items_is_the_old_plan_with_the_items_in_place_of_their_template(plan: Plan, n: int) -> None:
    assert plan_problems(plan, 12, data=DATA) == []
    for template in templates(plan):
        items = items_of(plan.subtask(template.id), [f"item {number}" for number in range(n)])
        after = with_items(plan, items)
        ids = [f"{template.id}.{number}" for number in range(1, n + 1)]
        assert [item.id for item in items] == ids
        assert (after.folded().subtasks, after.revision) == (plan.folded().subtasks, plan.revision + 1)
        assert find_cycle(after.subtasks) == []
        for planned in after.subtasks:
            assert template.id not in planned.depends_on
            assert set(ids) <= set(planned.depends_on) or not set(ids) & set(planned.depends_on)
        assert [item.item for item in items] == [f"item {number}" for number in range(n)]
        plan = after


@pytest.mark.parametrize("after", [("t1", "t3"), ("t1.1", "t1.2", "t3")])
def test_items_do_not_wait_for_the_finding_that_names_them(after: tuple[str, ...]) -> None:
    (item,) = items_of(subtask("t2", *after, for_each="items:t1"), ["a"])
    assert item.depends_on == ["t3"]


@given(plans())
def test_the_order_in_which_templates_are_expanded_makes_no_difference(plan: Plan) -> None:
    """After a reset it may be another one, and what is asked then has to be the same."""
    ids = [template.id for template in templates(plan)]
    wholes = []
    for order in list(permutations(ids))[:6]:
        whole = plan
        for template_id in order:
            whole = with_items(whole, items_of(plan.subtask(template_id), ["a", "b"]))
        wholes.append([planned.id for planned in whole.subtasks])
    assert all(whole == wholes[0] for whole in wholes)


@given(plans(), st.data())
def test_a_board_counts_items_and_gives_their_template_the_state_they_come_to(plan: Plan, data: st.DataObject) -> None:
    board = Board(plan, Clock())
    while True:
        if expandable := board.expandable():
            assert not set(board.ready()) & set(expandable)
            plan = with_items(plan, items_of(plan.subtask(expandable[0]), ["a", "b", "c"]))
            board.extend(plan)
        elif ready := list(board.ready()):
            work(board, data.draw(st.sampled_from(ready)), data.draw(st.sampled_from(["completed", "failed"])))
        elif not board.skip_blocked():
            break
        reports = {report.id: report for report in board.reports()}
        assert list(reports) == [planned.id for planned in plan.subtasks]
        counted = [report for report in reports.values() if report.counts is None]
        assert board.counts().total == len(counted)
        for report in reports.values():
            if report.counts is not None:
                states = [other.state for other in counted if template_of(other.id) == report.id]
                assert [getattr(report.counts, state) for state in set(states)] == [
                    states.count(state) for state in set(states)
                ]
                is_open = {"waiting", "running"} & set(states)
                assert (
                    report.state == "running" if is_open else (report.state == "completed") == ("completed" in states)
                )
    assert not board.counts().waiting
    gaps = [gap.subtask_id for gap in board.gaps()]
    assert len(gaps) == len(set(gaps))
    assert all(template_of(gap) is None for gap in gaps)
    assert bool(gaps) != nothing_missing(board.current())


def test_items_whose_findings_are_partial_are_one_gap() -> None:
    plan = Plan(subtasks=[subtask("t1", for_each="lines:trees")])
    board = Board(plan, Clock())
    board.extend(with_items(plan, items_of(plan.subtask("t1"), ["elm", "oak", "ash"])))
    for number, outcome in enumerate(("partial", "done", "partial"), 1):
        found = {"outcome": outcome, "summary": "Half.", "limitations": ["no scales"][: number - 1], "text_ref": "ref"}
        work(board, f"t1.{number}", finding=Finding.model_validate(found))
    reason = "t1.1: only a part: Half., t1.3: no scales"
    assert [(gap.subtask_id, gap.reason) for gap in board.partial_findings()] == [("t1", reason)]
    assert board.gaps() == []
    assert not nothing_missing(board.current())


def test_what_replaces_a_template_replaces_its_items() -> None:
    plan = Plan(subtasks=[subtask("t1"), subtask("t2", "t1", for_each="items:t1"), subtask("t3", "t2")])
    plan = with_items(plan, items_of(plan.subtask("t2"), ["a", "b"]))
    addition = Plan(subtasks=[subtask("t4", replaces=["t2"])])
    states = {"t1": "completed", "t2": "failed", "t3": "skipped"}
    assert revision_problems(plan, addition, 4, states) == []
    assert merge(plan, addition, states).subtask("t3").depends_on == ["t4"]
    later = merge(plan, Plan(subtasks=[subtask("t5", "t2")]), {**states, "t2": "completed"})
    assert later.subtask("t5").depends_on == ["t2.1", "t2.2"]
    assert folded(later.subtask("t5").depends_on) == ["t2"]


def test_a_revision_names_templates_and_no_items() -> None:
    plan = Plan(subtasks=[subtask("t1"), subtask("t2", "t1", for_each="items:t1")])
    plan = with_items(plan, items_of(plan.subtask("t2"), ["a"]))
    for addition in (subtask("t4", "t2.1"), subtask("t4", replaces=["t2.1"]), subtask("t2.2")):
        assert revision_problems(plan, Plan(subtasks=[addition]), 9, {"t2": "running"})


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("items:t1", "list that in its depends_on"),
        ("rows:order", "did you mean 'orders'?"),
        ("lines:orders", "is for the lines of 'orders', which is not attached"),
        ("files:*.xlsx", "no attached file has such a name"),
        ("files", "no attached file has such a name"),
        ("trees", "it must be items:SUBTASK"),
        ("", "it must be items:SUBTASK"),
    ],
)
def test_a_template_needs_a_source_that_is_there(source: str, problem: str) -> None:
    (found,) = for_each_problems(subtask("t2", for_each=source), DATA)
    assert problem in found


@pytest.mark.parametrize(("most", "good"), [(1, True), (limits.ITEMS, True), (0, False), (limits.ITEMS + 1, False)])
@pytest.mark.parametrize("source", SOURCES[1:])
def test_data_that_is_there_is_a_source_of_a_bounded_number_of_items(source: str, most: int, good: bool) -> None:
    found = for_each_problems(subtask("t2", for_each=source, max_items=most), DATA)
    assert ["1 to 1000 are allowed" in problem for problem in found] == ([] if good else [True])


@given(st.none() | st.integers(1, 1000), st.integers(0, 1000), st.none() | st.integers(0, 2000))
@example(None, limits.ITEMS, None)
def test_room_is_the_least_of_what_bounds_it(most: int | None, others: int, affordable: int | None) -> None:
    room, why = room_for(subtask("t2", max_items=most), others, affordable)
    assert (room, bool(why)) == (min(n for n in (most, limits.ITEMS - others, affordable) if n is not None), True)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
@example("half of a pair: \ud800")
def test_an_item_is_a_text_of_bounded_size(item: object) -> None:
    shown = item_text(item)  # type: ignore[arg-type]
    assert len(shown.encode()) <= ITEM_BYTES
    if not isinstance(item, str) and len(shown) < 100:
        assert json.loads(shown) == item
    assert item_text(["Bäume"]) == '["Bäume"]'


@pytest.mark.parametrize(
    ("goal", "each"),
    [
        ("Say of each contract when it ends.", True),
        ("Nenne für jede Region den Umsatz.", True),
        ("What was sold per region?", True),
        ("How many rentals did the station Harbour have in May 2024?", False),
        ("Who teaches Percussion?", False),
    ],
)
def test_a_goal_asks_for_each_by_its_words(goal: str, each: bool) -> None:
    assert asks_for_each(goal) == each
