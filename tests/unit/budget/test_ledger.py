"""The ledger and the deadline of a run: what is left, and what a person may set them to."""

import math
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.budget.ledger import (
    SUPERVISOR,
    SYNTHESIS_HOLDBACK_TOKENS,
    Amount,
    Ledger,
    NextCall,
    Spending,
    call_estimate,
    may_call,
    next_call,
    token_price,
)
from temporal_supervisor.supervision.budget.time_and_budget import TimeAndBudget
from temporal_supervisor.supervision.contract.ceilings import Ceilings
from temporal_supervisor.supervision.contract.request import Budget, RunRequest
from temporal_supervisor.supervision.contract.updates import NewBudget
from temporal_supervisor.supervision.contract.usage import Spend, Usage
from tests.corpus.growth import seconds
from tests.unit.shapes import START, Clock

LARGEST_CALL = 3 * limits.LEAST_GRANT_TOKENS
PRICE = 1e-5

totals = st.none() | st.integers(1, 40 * limits.LEAST_GRANT_TOKENS)
dollars = st.none() | st.floats(0.001, 2.0)
call_sizes = st.integers(0, LARGEST_CALL)


def call(tokens: int, usd: float | None = 0.0) -> Usage:
    return Usage(model_calls=1, input_tokens=tokens, usd=usd)


class Run:
    """A supervisor with worker agents whose calls may cost anything up to LARGEST_CALL, whatever was estimated."""

    def __init__(self, ledger: Ledger, subtasks: int, parallel: int, size: Callable[[], int], price: float) -> None:
        self.ledger, self.waiting, self.parallel = ledger, [f"t{n}" for n in range(subtasks)], parallel
        self.size, self.price = size, price
        self.running: dict[str, tuple[Amount, Usage]] = {}

    def paid(self) -> Usage:
        tokens = self.size()
        return call(tokens, tokens * self.price)

    def dispatch(self) -> None:
        while self.waiting and len(self.running) < self.parallel:
            share = min(len(self.waiting), self.parallel - len(self.running))
            grant = self.ledger.grant(self.waiting[0], share)
            if grant is None:
                return
            self.running[self.waiting.pop(0)] = (grant, Usage())

    def turn(self, subtask_id: str) -> None:
        """One more call of a worker agent, or its end when its grant is used up."""
        grant, used = self.running[subtask_id]
        if may_call(grant, used, self.size()):
            self.running[subtask_id] = (grant, used + self.paid())
        else:
            self.end(subtask_id)

    def end(self, subtask_id: str) -> None:
        _, used = self.running.pop(subtask_id)
        self.ledger.settle(subtask_id, used)

    def own_call(self) -> None:
        estimate = self.size()
        if self.ledger.reserve_call(estimate):
            self.ledger.settle_call(estimate, self.paid())

    def consumed(self) -> Usage:
        return sum((used for _, used in self.running.values()), start=self.ledger.spent)


@given(totals, dollars, st.integers(1, 12), st.integers(1, 4), st.sampled_from([0.0, PRICE]), st.data())
def test_no_run_overspends_by_more_than_the_calls_under_way(
    tokens: int | None, usd: float | None, subtasks: int, parallel: int, price: float, data: st.DataObject
) -> None:
    run = Run(Ledger(tokens, usd), subtasks, parallel, lambda: data.draw(call_sizes), price)
    for _ in range(40):
        run.dispatch()
        if not run.running:
            break
        if data.draw(st.booleans()):
            run.own_call()
        subtask_id = data.draw(st.sampled_from(sorted(run.running)))
        run.turn(subtask_id) if data.draw(st.integers(0, 3)) else run.end(subtask_id)
        consumed = run.consumed()
        under_way = (parallel + 1) * LARGEST_CALL
        assert tokens is None or consumed.tokens <= tokens + under_way
        assert usd is None or (consumed.usd or 0.0) <= usd + under_way * price + 1e-9
        free = run.ledger.free
        assert free.tokens is None or free.tokens >= 0
        assert free.usd is None or free.usd >= 0


@given(totals, dollars, st.integers(1, 12), st.integers(1, 4), st.data())
def test_nothing_locks_up_while_something_is_free(
    tokens: int | None, usd: float | None, subtasks: int, parallel: int, data: st.DataObject
) -> None:
    """A run whose worker agents all end gets to its last subtask, or its ledger says that it is exhausted."""
    run = Run(Ledger(tokens, usd), subtasks, parallel, lambda: data.draw(call_sizes), PRICE)
    for _ in range(subtasks):
        run.dispatch()
        if not run.running:
            break
        subtask_id = data.draw(st.sampled_from(sorted(run.running)))
        run.turn(subtask_id)
        if subtask_id in run.running:
            run.end(subtask_id)
    if not run.running and run.waiting:
        assert run.ledger.exhausted
        assert run.ledger.grant("t", 1) is None


@given(st.integers(1, 40 * limits.LEAST_GRANT_TOKENS), st.integers(1, 12), st.integers(1, 4), st.data())
def test_what_is_held_back_is_there_when_calls_keep_to_their_estimates(
    tokens: int, subtasks: int, parallel: int, data: st.DataObject
) -> None:
    ledger = Ledger(tokens, None)
    held = tokens - (ledger.free.tokens or 0)
    assert held == min(max(-(-tokens // 10), SYNTHESIS_HOLDBACK_TOKENS), tokens // 2)
    waiting, running = [f"t{n}" for n in range(subtasks)], dict[str, Amount]()
    while waiting and (grant := ledger.grant(waiting[0], min(len(waiting), parallel))):
        running[waiting.pop(0)] = grant
        own = data.draw(st.integers(0, LARGEST_CALL))
        if ledger.reserve_call(own):
            ledger.settle_call(own, call(data.draw(st.integers(0, own))))
        if len(running) == parallel:
            subtask_id = data.draw(st.sampled_from(sorted(running)))
            ledger.settle(subtask_id, call(data.draw(st.integers(0, running.pop(subtask_id).tokens or 0))))
        assert ledger.has_room(held, synthesis=True)
    assert ledger.reserve_call(held, synthesis=True)


def test_dollars_run_out_like_tokens() -> None:
    ledger = Ledger(None, 1.0)
    assert ledger.reserve_call(1_000_000)
    ledger.settle_call(1_000_000, call(50_000, 0.5))
    assert ledger.free.usd == pytest.approx(0.4)
    assert not ledger.reserve_call(50_000)
    assert ledger.has_room(50_000, synthesis=True)
    assert ledger.reserve_call(30_000)
    assert ledger.free.usd == pytest.approx(0.1)
    assert not ledger.exhausted
    ledger.settle_call(30_000, call(40_000, 0.4))
    assert ledger.exhausted


@given(totals, dollars, st.integers(0, 100_000), st.integers(0, 100_000))
def test_new_totals_continue_an_exhausted_run(tokens: int | None, usd: float | None, spent: int, more: int) -> None:
    ledger = Ledger(tokens, usd)
    ledger.settle_call(0, call(spent, spent * PRICE))
    new = 2 * (spent + limits.LEAST_GRANT_TOKENS + more)
    ledger.extend(new, new * PRICE * 2)
    assert not ledger.exhausted
    ledger.extend(None, None)
    assert ledger.free == Amount()


def test_new_totals_are_never_below_what_is_spent_and_promised() -> None:
    ledger = Ledger(100_000, 1.0)
    ledger.settle_call(0, call(10_000, 0.1))
    assert ledger.grant("t1", 1)
    with pytest.raises(ValueError, match="budget.tokens must be at least 80000"):
        ledger.extend(79_999, None)
    with pytest.raises(ValueError, match="budget.usd must be at least 0.9"):
        ledger.extend(None, 0.89)
    ledger.extend(80_000, 0.91)
    assert ledger.exhausted


@pytest.mark.parametrize(
    ("grant", "used", "estimate", "last_grant", "step"),
    [
        (Amount(tokens=10_000), call(4000), 3000, False, NextCall.CALL),
        (Amount(tokens=10_000), call(4000), 3001, False, NextCall.STOP),  # one call is left to conclude in
        (Amount(tokens=10_000), call(4000), 3000, True, NextCall.CALL),
        (Amount(tokens=10_000), call(4000), 3001, True, NextCall.CONCLUDE),
        (Amount(tokens=10_000), call(4000), 6000, True, NextCall.CONCLUDE),
        (Amount(tokens=10_000), call(4000), 6001, True, NextCall.STOP),
        (Amount(tokens=0), Usage(), 5000, False, NextCall.CALL),
        (Amount(tokens=0), Usage(), 5000, True, NextCall.CONCLUDE),
        (Amount(usd=1.5), call(100, 1.0), 25, False, NextCall.CALL),  # a token costs 0.01
        (Amount(usd=1.5), call(100, 1.0), 50, True, NextCall.CONCLUDE),
        (Amount(usd=1.5), call(100, 1.0), 51, True, NextCall.STOP),
        (Amount(usd=1.5), call(100, None), 10**6, False, NextCall.CALL),
    ],
)
def test_a_worker_agent_keeps_within_its_grant_and_a_grant_of_nothing_pays_one_call(
    grant: Amount, used: Usage, estimate: int, last_grant: bool, step: NextCall
) -> None:
    assert next_call(grant, used, estimate, last_grant=last_grant) is step


def test_what_is_free_is_shared_among_agents_without_a_grant_and_the_supervisor() -> None:
    means = TimeAndBudget(RunRequest(goal="x"), Clock(), START)
    assert [means.shares(agents) for agents in (0, 1, 4)] == [2, 2, 5]
    assert means.ledger.grant("t1.0", means.shares(4))
    assert means.shares(4) == 4


def test_a_grant_is_a_share_of_what_is_free_until_an_unknown_price_ends_the_account_of_dollars() -> None:
    ledger = Ledger(200_000, 10.0)
    ledger.settle_call(0, call(10_000, 1.0))
    assert ledger.grant("t1", 2) == Amount(tokens=85_000, usd=4.0)
    assert ledger.free == Amount(tokens=85_000, usd=4.0)
    ledger.settle("t1", call(5, None))
    assert ledger.free == Amount(tokens=169_995)
    assert Ledger(200_010, None).grant("t1", 2) == Amount(tokens=90_004), "nothing of what has no limit"
    assert Ledger(None, 1.0).grant("t1", 1) == Amount(usd=0.9)


def test_an_own_call_is_reserved_until_it_is_settled() -> None:
    ledger = Ledger(100_000, None)
    assert ledger.reserve_call(30_000)
    assert not ledger.has_room(50_001)
    assert ledger.has_room(50_000)
    ledger.settle_call(10_000, call(0))
    assert ledger.has_room(60_000)
    assert not ledger.has_room(60_001)
    ledger.settle_call(50_000, call(0))  # more than is reserved
    assert ledger.has_room(80_000)
    assert not ledger.has_room(80_001)


def test_with_dollars_for_less_than_the_smallest_grant_no_agent_can_be_paid() -> None:
    ledger = Ledger(None, 10.0)
    ledger.settle_call(0, call(limits.LEAST_GRANT_TOKENS, 4.5))  # 4.5 is free, and the smallest grant costs as much
    assert not ledger.exhausted
    ledger.settle_call(0, call(0, 0.1))
    assert ledger.exhausted
    nothing = Ledger(None, 0.0)
    assert (nothing.free, nothing.exhausted, nothing.has_room(0)) == (Amount(usd=0.0), True, False)


def test_a_call_takes_its_prompt_and_a_usual_reply_at_the_price_of_those_before() -> None:
    assert call_estimate(7001) == 2001 + 1500
    assert [token_price(usage) for usage in (Usage(), call(4, None), call(4, 2.0))] == [0.0, 0.0, 0.5]


def test_sums_are_by_role_and_model_the_largest_first_and_the_last_row_holds_the_rest() -> None:
    spending = Spending()
    spending.add("analyst", "small", call(10, 0.1))
    spending.add(SUPERVISOR, "large", call(50, 0.1))
    spending.add("analyst", "small", call(30, 0.1))
    spending.add("analyst", "large", call(5, 0.1))
    spending.add("analyst", "never", Usage())
    spending.add_team("team", [Spend(role="cook", model="small", usage=call(4, 0.1))], call(4, 0.1))
    spending.add_team("other", [], call(3, 0.1))
    assert [(row.role, row.model, row.usage.input_tokens) for row in spending.rows()] == [
        (SUPERVISOR, "large", 50),
        ("analyst", "small", 40),
        ("analyst", "large", 5),
        ("team/cook", "small", 4),
        ("other", "", 3),
    ]
    for number in range(limits.STATUS_PAGE):
        spending.add(f"role{number}", "m", call(60, 0.1))
    assert {row.usage.input_tokens for row in spending.rows()} == {60}, "so many rows are the largest ones"


HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def a_run(clock: Clock | None = None, grant: Amount | None = None, **fields: object) -> TimeAndBudget:
    request = RunRequest.model_validate({"goal": "g", "deadline": HOUR, **fields})
    return TimeAndBudget(request, clock or Clock(), START, grant)


def test_work_ends_before_the_deadline_and_children_have_a_part_of_what_is_left_to_stop() -> None:
    clock, short = Clock(), a_run(deadline=100 * SECOND)
    run = a_run(clock)
    assert (run.deadline_at, run.work_until) == (START + HOUR, START + HOUR - limits.SYNTHESIS_RESERVE)
    assert short.work_until == START + 100 * SECOND * (1 - limits.SYNTHESIS_RESERVE_SHARE)
    assert short.latest_deadline_at == START + limits.MAX_DEADLINE
    for left in (SECOND, 0 * SECOND):
        clock.at = run.work_until - left
        assert run.time_left == bool(left)
    closing = {HOUR: limits.CHILD_CLOSE_WAIT, 20 * SECOND: 10 * SECOND, SECOND: limits.LEAST_CALL_TIME}
    for left, closing_time in closing.items():
        clock.at = run.deadline_at - left
        assert run.closing_time == closing_time


def test_a_stop_ends_the_time_for_work_alone_whatever_the_deadline_becomes() -> None:
    run = a_run()
    assert (run.stopped_because, run.agents_waiting) == ("", set())
    run.stopped_because = "its history is full"
    assert (run.time_left, run.stopped_because) == (False, "its history is full")
    assert (run.deadline_at, run.closing_time) == (START + HOUR, limits.CHILD_CLOSE_WAIT)
    run.extend(None, 2 * HOUR)
    assert run.deadline_at == START + 2 * HOUR
    run.extend(NewBudget(tokens=10**6), None)
    assert run.deadline_at == START + 2 * HOUR
    run.restart_clock()
    assert not run.time_left


def test_a_budget_must_cover_what_is_spent_and_stay_below_the_ceilings() -> None:
    run = a_run()
    run.ledger.settle_call(0, Usage(input_tokens=500, usd=0.5))
    with pytest.raises(ValueError, match=r"budget\.tokens must be at least 500"):
        run.check(NewBudget(tokens=499), None)
    run.check(NewBudget(tokens=500, usd=0.5), None)
    run.keep_within(Ceilings(tokens=1000))
    with pytest.raises(ValueError, match="ceiling"):
        run.check(NewBudget(tokens=1001), None)
    assert (run.budget.tokens, run.card(RunRequest(goal="g")).budget_tokens) == (1000, 1000)
    assert (run.ledger.free.tokens, run.ledger.for_synthesis.tokens) == (0, 500)


def test_a_grant_is_open_until_it_is_settled_and_nothing_is_given_where_nothing_is_free() -> None:
    ledger = Ledger(50_000, None)
    assert ledger.grant("t1", 2) == Amount(tokens=15_000)
    assert (ledger.has_grant("t1"), ledger.has_grant("t2"), ledger.has_grant(None)) == (True, False, False)
    with pytest.raises(ValueError, match="not settled"):
        ledger.grant("t1", 1)
    assert ledger.grant("t2", math.inf) == Amount(tokens=limits.LEAST_GRANT_TOKENS)
    assert ledger.grant("t3", 1) == Amount(tokens=11_000)
    assert ledger.grant("t4", 1) is None
    assert ledger.last_grant("t4") == Amount(tokens=0)
    ledger.settle("t1", call(5_000))
    assert not ledger.has_grant("t1")
    assert ledger.grant("t5", 1) == Amount(tokens=10_000)


# --- the clock, and what is left for further subtasks --------------------------------------------------


def test_the_clock_stands_still_while_anything_holds_it() -> None:
    clock = Clock()
    time = TimeAndBudget(RunRequest(goal="x", deadline=timedelta(minutes=10)), clock, START)
    end, latest = time.deadline_at, time.latest_deadline_at
    clock.tick(60)
    assert time.hold("people")
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
    assert time.held_time(START, clock.at) == 5400 * SECOND
    assert time.held_time(START + timedelta(seconds=90), START + timedelta(seconds=100)) == 10 * SECOND
    assert time.held_time(clock.at, clock.at + timedelta(seconds=9)) == 0 * SECOND
    time.hold("paused")
    clock.tick(20)
    assert time.held_time(START, clock.at) == 5420 * SECOND
    time.restart_clock()
    clock.tick(10)
    assert time.deadline_at == clock.at + timedelta(minutes=10)
    assert time.held_time(START, clock.at) == 5430 * SECOND


def test_a_nested_run_has_the_time_of_its_root_which_stands_still_with_it() -> None:
    clock, minute = Clock(), timedelta(minutes=1)
    nested = a_run(clock)
    nested.follow_root(START + 3 * minute)
    assert nested.deadline_at == START + 3 * minute
    clock.tick(60)
    nested.follow_root(None)
    clock.tick(3600)
    assert (nested.held, nested.time_left, nested.deadline_at - clock.at) == (True, True, 2 * minute)
    nested.follow_root(clock.at + 2 * minute)
    assert (nested.held, nested.deadline_at) == (False, clock.at + 2 * minute)


def test_a_nested_run_has_a_share_of_the_time_left_when_it_began_and_more_if_its_root_has_more() -> None:
    clock = Clock()
    root = a_run(clock, deadline=100 * SECOND)
    work = root.work_until - START
    clock.tick(10)
    began = root.elapsed
    given = (work - began) * limits.NESTED_DEADLINE_SHARE
    assert root.nested_deadline(began, None) == clock.at + given
    assert root.nested_deadline(began, 20 * SECOND) == clock.at + 20 * SECOND
    clock.tick(5)
    assert root.nested_deadline(began, None) == START + began + given, "as before"
    root.hold("people")
    clock.tick(50)
    root.hold("people", False)
    assert root.nested_deadline(began, 20 * SECOND) == START + began + 70 * SECOND
    root.extend(None, 1000 * SECOND)
    assert root.nested_deadline(began, None) > START + 800 * SECOND
    clock.tick(2000)
    assert root.nested_deadline(root.elapsed, None) == clock.at + limits.MIN_DEADLINE


def test_agents_that_wait_for_budget_are_counted_by_subtask() -> None:
    run = a_run()
    for _ in range(2):
        run.agent_waits("t1")
    run.agent_waits_no_longer("t1")
    assert run.agents_waiting == {"t1"}
    run.agent_waits_no_longer("t1")
    assert run.agents_waiting == set()


def test_a_look_at_the_deadline_takes_no_longer_after_many_holds() -> None:
    """All that waits looks at it at each event."""
    clock = Clock()
    time = a_run(clock)

    def look_after(holds: int) -> float:
        for wanted in [True, False] * holds:
            time.hold("people", wanted)
            clock.tick(1)
        return min(seconds(lambda looks: [time.deadline_at for _ in range(looks)], 1000) for _ in range(5))

    few, many = look_after(10), look_after(1000)
    assert many < 10 * few  # with a sum over all holds it was 100 times


@pytest.mark.parametrize(
    ("budget", "tokens", "ended", "count"),
    [
        (Budget(tokens=100_000, usd=None), 10_000, [], 8),
        (Budget(tokens=100_000, usd=None), 0, [Usage(input_tokens=10_000)], 8),
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
    ("budget", "spent", "line"),
    [
        (
            Budget(tokens=5000, usd=2.0),
            1000,
            "1,000 of 5,000 tokens spent, 2,500 set aside for the answer and work at hand, $0.1000 of $2.00",
        ),
        (Budget(tokens=5000, usd=None), 5000, "5,000 of 5,000 tokens spent"),
        (Budget(tokens=None, usd=None), 0, "0 of any number of tokens spent"),
    ],
)
def test_the_budget_in_one_line(budget: Budget, spent: int, line: str) -> None:
    time = TimeAndBudget(RunRequest(goal="x", budget=budget), Clock(), START)
    time.ledger.settle_call(0, Usage(input_tokens=spent, usd=0.1))
    assert time.spent_line() == line
