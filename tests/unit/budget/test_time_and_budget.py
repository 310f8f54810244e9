"""The time and the budget of one supervisor: a clock that can be held, and what is left for further subtasks."""

from datetime import timedelta

import pytest

from supervision.budget.amount import Amount
from supervision.budget.time_and_budget import TimeAndBudget
from supervision.contract.request import Budget, RunRequest
from supervision.contract.usage import Usage
from tests.unit.shapes import START, Clock


def test_the_clock_stands_still_while_anything_holds_it() -> None:
    clock = Clock()
    time = TimeAndBudget(RunRequest(goal="x", deadline=timedelta(minutes=10)), clock, START)
    end, latest = time.deadline_at, time.latest_deadline_at
    clock.tick(60)
    assert not time.hold("people")
    clock.tick(3600)
    assert time.held
    assert time.time_left
    assert time.deadline_at == end + timedelta(hours=1)
    assert not time.hold("paused")
    assert not time.hold("people", False)
    clock.tick(1800)
    assert time.hold("paused", False)
    assert not time.held
    assert not time.hold("paused", False)
    clock.tick(60)
    assert time.deadline_at == end + timedelta(minutes=90)
    assert time.latest_deadline_at == latest + timedelta(minutes=90)
    time.check(None, timedelta(minutes=5))
    with pytest.raises(ValueError, match="has passed already"):
        time.check(None, timedelta(minutes=2))
    assert time.held_seconds(START, clock.at) == 5400
    assert time.held_seconds(START + timedelta(seconds=90), START + timedelta(seconds=100)) == 10
    assert time.held_seconds(clock.at, clock.at + timedelta(seconds=9)) == 0
    time.hold("paused")
    clock.tick(20)
    assert time.held_seconds(START, clock.at) == 5420
    time.restart_clock()
    clock.tick(10)
    assert time.deadline_at == clock.at + timedelta(minutes=10)
    assert time.held_seconds(START, clock.at) == 5430


def test_a_nested_run_whose_clock_was_held_ends_when_its_parent_says() -> None:
    clock = Clock()
    time = TimeAndBudget(RunRequest(goal="x"), clock, START, Amount(tokens=9_000))
    time.hold("people")
    clock.tick(100)
    time.hold("people", False)
    end = clock.at + timedelta(minutes=3)
    time.set_slice(Amount(tokens=9_000), end)
    assert time.deadline_at == end


def test_work_ends_with_its_time() -> None:
    clock = Clock()
    time = TimeAndBudget(RunRequest(goal="x"), clock, START)
    clock.at = time.work_until - timedelta(seconds=1)
    assert time.time_left
    clock.tick()
    assert not time.time_left
    assert not time.out_of_budget


@pytest.mark.parametrize(
    ("budget", "tokens", "ended", "count"),
    [
        (Budget(tokens=100_000, usd=None), 10_000, [], 8),
        (Budget(tokens=100_000, usd=None), 0, [Usage(input_tokens=10_000), Usage(input_tokens=30_000)], 4),
        (Budget(tokens=None, usd=1.0), 0, [Usage(usd=0.1), Usage(usd=0.3)], 4),
        (Budget(tokens=1_000_000, usd=1.0), 10_000, [Usage(usd=0.1), Usage(usd=None)], 18),
        (Budget(tokens=None, usd=None), 10_000, [], None),
        (Budget(tokens=100_000, usd=None), 0, [], None),
    ],
)
def test_as_many_subtasks_as_the_budget_has_room_for(
    budget: Budget, tokens: int, ended: list[Usage], count: int | None
) -> None:
    time = TimeAndBudget(RunRequest(goal="x", budget=budget), Clock(), START)
    assert time.affordable(tokens, ended) == count


@pytest.mark.parametrize(
    ("budget", "line"),
    [
        (Budget(tokens=5000, usd=2.0), "0 of 5000 tokens spent, $0.0000 of $2.00"),
        (Budget(tokens=None, usd=None), "0 of any number of tokens spent"),
    ],
)
def test_the_budget_in_one_line(budget: Budget, line: str) -> None:
    assert TimeAndBudget(RunRequest(goal="x", budget=budget), Clock(), START).spent_line() == line
