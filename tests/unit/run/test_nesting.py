"""Nested runs: what each is given at its start, what it reports and gives back; slots, in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base.limits import NESTED_SUBTASKS_LEAST
from temporal_supervisor.supervision.contract.progress import Counts, NestedRun
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.contract.status import Wait
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.run.board import Board
from temporal_supervisor.supervision.run.decisions import Instructions
from temporal_supervisor.supervision.run.nested_runs import (
    SPENT_STEPS,
    NestedGrant,
    NestedRuns,
    portion,
    share_of_subtasks,
    spent_step,
)
from temporal_supervisor.supervision.run.run_state import RunState
from temporal_supervisor.supervision.run.slots import Slot, Slots
from temporal_supervisor.supervision.run.status_and_result import status_of
from tests.unit.shapes import FINDING, START, Clock, plan, subtask

GRANT = NestedGrant(tokens=1000, slots=2, subtasks=5)


def runs(*subtask_ids: str) -> NestedRuns:
    """Nested runs at work on these subtasks."""
    nested = NestedRuns(Board(plan(*map(subtask, subtask_ids)), Clock()))
    for subtask_id in subtask_ids:
        nested.begin(f"r/{subtask_id}/1", subtask_id, GRANT)
    return nested


def test_a_nested_run_tells_how_many_waits_need_people_and_what_is_spent() -> None:
    nested = runs("t1", "t2")
    for subtask_id, waits in (("t1", 2), ("t2", 1)):
        spent = Usage(model_calls=4)
        assert nested.report(f"r/{subtask_id}/1", waits, spent, waits_for_people=waits == 2)
    assert (nested.waits, nested.spent.model_calls) == (3, 8)
    assert nested.waiting_for_people == {"t1"}
    assert nested.slots_waiting_for_people == GRANT.slots
    assert nested._board["t2"].nested == NestedRun(workflow_id="r/t2/1", waits=1, spent=Usage(model_calls=4))


def test_a_report_of_a_run_that_is_not_at_work_is_ignored() -> None:
    nested = runs("t1")
    assert not nested.report("r/t1/2", 9, Usage(model_calls=9), waits_for_people=True)
    nested.end("r/t1/1")
    assert not nested.report("r/t1/1", 9, Usage(model_calls=9), waits_for_people=True)
    assert (nested.waits, nested.spent, nested.waiting_for_people) == (0, Usage(), set())


def test_a_nested_run_gives_back_what_it_did_not_use() -> None:
    nested = runs("t1")
    nested.report("r/t1/1", 1, Usage(model_calls=3), waits_for_people=True)
    assert nested.subtasks == 5
    last = NestedRun(status="completed", counts=Counts(total=3, completed=3), named=3)
    nested.end("r/t1/1", last)
    assert (nested.subtasks, nested.waits, nested.spent) == (3, 0, Usage())
    assert nested._board["t1"].nested == last.model_copy(update={"workflow_id": "r/t1/1"})


def test_of_a_nested_run_that_left_nothing_the_last_report_stays() -> None:
    nested = runs("t1")
    nested.report("r/t1/1", 1, Usage(model_calls=3), waits_for_people=True)
    nested.end("r/t1/1")
    left = nested._board["t1"].nested
    assert left is not None
    assert (left.status, left.waits, left.spent.model_calls) == ("partial", 0, 3)


def test_reports_on_what_is_spent_are_as_many_for_a_large_budget() -> None:
    for total in (20_000, 1_000_000, None):
        sizes = range(0, total or 1_000_000, 1000)
        seen = {spent_step(Usage(input_tokens=size), total) for size in sizes}
        assert len(seen) == SPENT_STEPS


# --- grants ---------------------------------------------------------------------------------------


@given(st.integers(0, 60), st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_nested_runs_never_get_more_subtasks_than_are_free_and_each_gets_the_least(
    free: int, weights: list[float]
) -> None:
    left, given_out = free, []
    while weights:
        weight, *weights = weights
        share = share_of_subtasks(left, weight, weights)
        given_out.append(share)
        left -= share
    assert left >= 0
    if free >= NESTED_SUBTASKS_LEAST * len(given_out):
        assert min(given_out) >= NESTED_SUBTASKS_LEAST


def test_subtasks_are_divided_by_weight_and_a_lone_run_gets_all() -> None:
    assert share_of_subtasks(10, 0.5, []) == 10
    assert share_of_subtasks(10, 0.6, [0.2]) == 2 + 4
    assert share_of_subtasks(1, 0.5, []) == 1
    assert portion(0.0, [0.0]) == 0.5


def a_run(*subtasks: str, **fields: object) -> RunState:
    """A run with a plan of these subtasks."""
    run = RunState(RunRequest.model_validate({"goal": "g", **fields}), Clock(), START)
    run.adopt(plan(*map(subtask, subtasks)))
    return run


def test_the_caps_of_a_run_hold_for_its_nested_runs_too() -> None:
    run = a_run("t1", "t2", "t3", max_subtasks=12)
    teams = {"t1", "t2"}
    run.board.start("t1", "team")
    first = run.shares.subtasks_for("t1", lambda each: each.id in teams)
    assert first == 2 + 2  # of the nine that are free: two each, and a half of what is left
    run.nested.begin("r/t1/1", "t1", NestedGrant(slots=1, subtasks=first))
    assert run.shares.subtasks_left == 5
    run.nested.end("r/t1/1", NestedRun(named=3))
    run.board.complete("t1", FINDING)
    assert run.shares.subtasks_left == 6
    assert run.shares.subtasks_for("t2", lambda each: each.id in teams) == 6
    short = a_run("t1", "t2", max_subtasks=3)
    assert short.shares.subtasks_for("t1", lambda each: True) == 0, "one is no plan"


def test_budget_is_divided_by_weight_over_what_has_not_started() -> None:
    run = a_run("t1", "t2", "t3")
    ledger = run.time_and_budget.ledger
    for subtask_id in ("t1", "t2"):  # at once: before either has its grant
        run.board.start(subtask_id, "team")
        run.board.set_workflow(subtask_id, f"r/{subtask_id}/1")
    assert run.shares.slices_for("t1") == pytest.approx(3)
    assert ledger.grant("r/t1/1", 3)
    assert run.shares.slices_for("t2") == 2
    assert ledger.grant("r/t2/1", 2)
    assert run.shares.slices_for("t3") == 1, "a lone one gets all"


def test_a_nested_run_has_its_grant_as_its_limits() -> None:
    request = RunRequest(goal="g", max_parallel=8, max_subtasks=12)
    limits = status_of(RunState(request, Clock(), START, GRANT)).limits
    assert (limits.max_parallel, limits.max_subtasks) == (2, 5)
    assert (limits.budget_tokens, limits.budget_usd) == (1000, None)


# --- people ---------------------------------------------------------------------------------------


def ask(run: RunState, subtask_id: str) -> None:
    """Shows a question of a subtask."""
    asked = Wait(id=f"{subtask_id}/1:1.0", kind="question", workflow_id="r", since="")
    run.waits.add(asked.model_copy(update={"subtask_id": subtask_id}), None)


def test_only_people_can_help_once_all_that_works_waits_for_them() -> None:
    run = a_run("t1", "t2", "t3", max_parallel=2)
    assert not run.only_people_can_help
    run.board.start("t1", "team")
    assert run.slots.occupy("t1", 2)
    run.nested.begin("r/t1/1", "t1", GRANT)
    run.board.start("t2", "hand")
    run.nested.report("r/t1/1", 1, Usage(), waits_for_people=True)
    assert run.people_awaited == 1
    assert run.flags.waiting_person
    assert not run.only_people_can_help, "t2 is at work"
    ask(run, "t2")
    assert run.only_people_can_help
    run.nested.report("r/t1/1", 1, Usage(), waits_for_people=False)
    assert not run.only_people_can_help, "the nested run works"


@pytest.mark.parametrize("lacks", ["slot", "budget"])
def test_work_that_lacks_what_a_waiting_nested_run_keeps_waits_for_people(lacks: str) -> None:
    run = a_run("t1", "t2", max_parallel=2)
    run.board.start("t1", "team")
    assert run.slots.occupy("t1", 2)
    run.nested.begin("r/t1/1", "t1", GRANT)
    run.nested.report("r/t1/1", 1, Usage(), waits_for_people=True)
    run.board.start("t2", "hand")
    assert not run.only_people_can_help
    if lacks == "slot":
        run.slots.enqueue(Slot("t2"))
    else:
        run.time_and_budget.agent_waits("t2")
    assert run.only_people_can_help


def test_a_wait_for_the_provider_lets_the_clock_run() -> None:
    run = a_run("t1")
    run.board.start("t1", "hand")
    ask(run, "t1")
    assert run.only_people_can_help
    run.waits.add(Wait(id="t1/1", kind="resume", workflow_id="r", since=""), None)
    assert not run.only_people_can_help


def test_a_nested_run_follows_its_root_and_no_late_word() -> None:
    run = a_run("t1")
    later = START.replace(hour=3)
    run.follow(Instructions(number=2, words=["one", "two"], deadline_at=later))
    assert run.time_and_budget.deadline_at == later
    run.follow(Instructions(number=1, words=["one"], paused=True))
    assert (run.time_and_budget.held, run.steering.paused) == (False, False)
    run.follow(Instructions(number=3, words=["one", "two"], paused=True))
    assert (run.time_and_budget.held, run.steering.paused) == (True, True)
    assert run.steering.words_to_all == ["one", "two"]


def test_instructions_that_are_delivered_again_have_no_second_effect() -> None:
    run = a_run("t1")
    sent = [START.replace(minute=minute) for minute in (1, 2)]
    first, second = (
        Instructions(number=1, paused=True, deadline_at=START.replace(hour=hour), sent_at=at)
        for hour, at in zip((2, 3), sent, strict=True)
    )
    run.follow(first)
    run.steering.resume()  # by a person, in this run alone
    run.follow(first)
    assert not run.steering.paused
    run.follow(second)
    run.follow(first)
    assert run.time_and_budget.deadline_at == START.replace(hour=3)


# --- slots ----------------------------------------------------------------------------------------


def slots(total: int = 2) -> Slots:
    return Slots(lambda: total)


def test_slots_are_given_in_the_order_of_asking() -> None:
    one = slots(1)
    holder = one.occupy("t1")
    first, second = Slot("t2"), Slot("t3")
    one.enqueue(first)
    one.enqueue(second)
    assert holder
    assert (first.held, second.held, one.queued) == (False, False, {"t2", "t3"})
    one.release(holder)
    one.release(holder)
    assert (first.held, second.held, one.occupy("t4")) == (True, False, None)


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 9))))
def test_limits_hold_and_nobody_waits_who_could_work(total: int, steps: list[tuple[bool, int]]) -> None:
    some, known = slots(total), list[Slot]()
    for asks, index in steps:
        if asks:
            known.append(Slot())
            some.enqueue(known[-1])
        elif known:
            some.release(known.pop(index % len(known)))
        assert some.held == sum(slot.held for slot in known) == min(total, len(known))


@pytest.mark.parametrize(
    ("total", "taken", "ready", "share"),
    [(8, 0, 1, 8), (8, 0, 3, 2), (8, 6, 2, 1), (2, 1, 9, 1), (1, 0, 1, 1), (8, 2, 1, 6)],
)
def test_a_nested_run_gets_the_free_slots_divided_by_what_is_ready(
    total: int, taken: int, ready: int, share: int
) -> None:
    some = slots(total)
    for _ in range(taken):
        assert some.occupy("t0")
    slot = some.occupy("t1", some.share(ready))
    assert slot is not None
    assert (slot.places, some.held) == (share, taken + share)
    some.release(slot)
    assert some.held == taken


def test_a_nested_run_that_waited_gets_no_more_than_is_free() -> None:
    some = slots(3)
    held = [some.occupy("t0") for _ in range(3)]
    asked = Slot("t1", places=3)
    some.enqueue(asked)
    assert held[0] is not None
    some.release(held[0])
    assert (asked.held, asked.places, some.held) == (True, 1, 3)


@given(st.integers(1, 4), st.lists(st.integers(1, 6), max_size=5))
def test_all_levels_together_never_have_more_than_the_root(total: int, wanted: list[int]) -> None:
    """A nested run's worker agents work within its places, whatever it could use."""
    root, at_work = slots(total), 0
    for number, agents in enumerate(wanted):
        slot = root.occupy(f"t{number}", root.share(len(wanted) - number))
        if slot is None:
            break
        below = slots(slot.places)
        at_work += sum(below.occupy("t1") is not None for _ in range(agents))
    assert at_work <= root.held <= total
