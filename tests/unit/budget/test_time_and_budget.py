"""A run's deadline and budget: what is left of them, and what a person may set them to."""

from datetime import timedelta

import pytest

from supervision.base import limits
from supervision.budget.amount import Amount
from supervision.budget.time_and_budget import TimeAndBudget
from supervision.contract.ceilings import Ceilings
from supervision.contract.request import Budget, RunRequest
from supervision.contract.updates import NewBudget
from supervision.contract.usage import Usage
from tests.unit.shapes import START, Clock

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def a_run(clock: Clock | None = None, grant: Amount | None = None, **fields: object) -> TimeAndBudget:
    request = RunRequest.model_validate({"goal": "g", "deadline": HOUR, **fields})
    return TimeAndBudget(request, clock or Clock(), START, grant)


def test_work_ends_before_the_deadline_so_that_there_is_time_for_the_answer() -> None:
    assert a_run().deadline_at == START + HOUR
    assert a_run().work_until == START + HOUR - limits.SYNTHESIS_RESERVE
    short = a_run(deadline=100 * SECOND)
    assert short.work_until == START + 100 * SECOND * (1 - limits.SYNTHESIS_RESERVE_SHARE)
    assert short.latest_deadline_at == START + limits.MAX_DEADLINE


def test_work_may_begin_until_then_and_not_at_that_moment() -> None:
    clock = Clock()
    run = a_run(clock)
    clock.at = run.work_until - SECOND
    assert run.time_left
    clock.at = run.work_until
    assert not run.time_left


def test_a_stop_ends_the_time_for_work_alone_whatever_the_deadline_becomes() -> None:
    run = a_run()
    assert run.stopped_because == ""
    run.stop("its history is full")
    assert (run.time_left, run.stopped_because) == (False, "its history is full")
    assert (run.deadline_at, run.closing_time) == (START + HOUR, limits.CHILD_CLOSE_WAIT)
    run.extend(None, 2 * HOUR)
    run.restart_clock()
    assert not run.time_left


@pytest.mark.parametrize(
    ("left", "closing"),
    [(HOUR, limits.CHILD_CLOSE_WAIT), (20 * SECOND, 10 * SECOND), (SECOND, limits.LEAST_CALL_TIME)],
)
def test_children_get_a_part_of_what_is_left_to_stop(left: timedelta, closing: timedelta) -> None:
    clock = Clock()
    run = a_run(clock)
    clock.at = run.deadline_at - left
    assert run.closing_time == closing


def test_the_free_budget_is_shared_by_those_without_a_grant_and_the_supervisor() -> None:
    run = a_run()
    assert [run.shares(agents) for agents in (0, 1, 3)] == [2, 2, 4]
    assert run.agents_waiting == 0
    run.ledger.grant("t1", 2)
    assert [run.shares(agents) for agents in (1, 3)] == [2, 3]


def test_a_run_is_out_of_budget_when_no_agent_can_be_paid() -> None:
    run = a_run(budget={"tokens": 20_000})
    assert not run.out_of_budget
    run.ledger.settle_call(0, Usage(model_calls=1, input_tokens=9_000))
    assert run.out_of_budget


def test_what_is_spent_is_told_with_dollars_where_both_are_known() -> None:
    run = a_run(budget={"tokens": 100, "usd": 2.0})
    assert run.spent_line() == "0 of 100 tokens spent, $0.0000 of $2.00"
    run.ledger.settle_call(0, Usage(input_tokens=7, usd=None))
    assert run.spent_line() == "7 of 100 tokens spent"
    assert a_run(budget={"tokens": None, "usd": None}).spent_line() == "0 of any number of tokens spent"


def test_a_change_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to change"):
        a_run().check(None, None)
    a_run().check(NewBudget(tokens=10), None)
    a_run().check(None, HOUR)


def test_a_deadline_must_be_ahead() -> None:
    clock = Clock()
    run = a_run(clock)
    clock.tick(60)
    for passed in (59 * SECOND, 60 * SECOND):
        with pytest.raises(ValueError, match="passed already"):
            run.check(None, passed)
    run.check(None, 61 * SECOND)


def test_a_budget_must_cover_what_is_spent_and_stay_below_the_ceilings() -> None:
    run = a_run()
    run.ledger.settle_call(0, Usage(input_tokens=500, usd=0.5))
    with pytest.raises(ValueError, match=r"budget\.tokens must be at least 500"):
        run.check(NewBudget(tokens=499), None)
    run.check(NewBudget(tokens=500, usd=0.5), None)
    run.keep_within(Ceilings(tokens=1000), RunRequest(goal="g"))
    with pytest.raises(ValueError, match="ceiling"):
        run.check(NewBudget(tokens=1001), None)
    assert (run.budget.tokens, run.card().budget_tokens, run.ledger.card()["tokens"]) == (
        1000, 1000, {"total": 1000, "spent": 500, "promised": 0, "held_back": 500, "free": 0},
    )  # fmt: skip


def test_new_totals_count_and_the_others_stay() -> None:
    run = a_run(budget={"tokens": 1000, "usd": 1.0})
    run.extend(NewBudget(tokens=2000), None)
    assert (run.budget, run.deadline) == (Budget(tokens=2000, usd=1.0), HOUR)
    run.extend(None, 2 * HOUR)
    assert (run.budget, run.deadline_at) == (Budget(tokens=2000, usd=1.0), START + 2 * HOUR)
    card = run.card()
    assert (card.deadline_seconds, card.budget_tokens, card.budget_usd) == (7200, 2000, 1.0)
    assert (card.max_subtasks, card.max_parallel, card.max_turns) == (12, 8, 10)


def test_a_limit_that_is_removed_is_the_operators_ceiling_if_there_is_one() -> None:
    run = a_run(budget={"tokens": 500, "usd": 1.0})
    run.keep_within(Ceilings(tokens=1000), RunRequest(goal="g"))
    run.extend(NewBudget(unlimited=["tokens", "usd"]), None)
    assert run.budget == Budget(tokens=1000, usd=None)


def test_a_nested_run_has_its_slice_and_the_clock_of_its_parent() -> None:
    run = a_run(grant=Amount(tokens=5000, usd=None))
    assert run.budget.tokens == 5000
    run.set_slice(Amount(tokens=7000, usd=None), START + 3 * HOUR)
    assert (run.budget.tokens, run.deadline_at) == (7000, START + 3 * HOUR)


def test_after_a_reset_the_whole_deadline_begins_anew() -> None:
    clock = Clock()
    run = a_run(clock)
    clock.tick(1800)
    run.restart_clock()
    assert run.deadline_at == START + timedelta(seconds=1800) + HOUR
