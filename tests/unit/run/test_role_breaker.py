"""The role breaker: when it opens, who gets the one probe, and what late outcomes may not do."""

from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from supervision.base import limits
from supervision.run.role_breaker import RoleBreaker, RoleTicket
from tests.unit.shapes import START, Clock

COOLDOWN = limits.ROLE_BREAKER_COOLDOWN


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> RoleBreaker:
    return RoleBreaker("finder", clock)


def _state(breaker: RoleBreaker) -> str:
    return breaker.state


def _admit(breaker: RoleBreaker) -> RoleTicket:
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def _fail(breaker: RoleBreaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(_admit(breaker))


def test_three_failures_in_a_row_open_it_for_ten_seconds(breaker: RoleBreaker, clock: Clock) -> None:
    _fail(breaker, 3)
    assert (_state(breaker), breaker.admits(), breaker.admit()) == ("open", False, None)
    assert breaker.retry_at == START + timedelta(seconds=10)
    clock.at += COOLDOWN
    assert _state(breaker) == "half_open"
    assert breaker.admits()


def test_each_failed_probe_doubles_the_cooldown_up_to_its_cap(breaker: RoleBreaker, clock: Clock) -> None:
    _fail(breaker, 3)
    waits = []
    for _ in range(7):
        assert breaker.retry_at is not None
        waits.append((breaker.retry_at - clock.at).total_seconds())
        clock.at = breaker.retry_at
        _fail(breaker)
    assert waits == [10, 20, 40, 80, 160, 300, 300]


def test_a_late_failure_neither_prolongs_nor_reopens_it(breaker: RoleBreaker, clock: Clock) -> None:
    early = [_admit(breaker) for _ in range(4)]
    _fail(breaker, 3)
    breaker.failed(early[0])
    assert breaker.retry_at == START + COOLDOWN
    clock.at += COOLDOWN
    breaker.succeeded(_admit(breaker))
    for ticket in early[1:]:
        breaker.failed(ticket)
    assert (_state(breaker), breaker.failures) == ("closed", 0)


def test_a_cancelled_probe_gives_its_lease_back(breaker: RoleBreaker, clock: Clock) -> None:
    _fail(breaker, 3)
    clock.at += COOLDOWN
    first = _admit(breaker)
    breaker.released(first)
    second = _admit(breaker)
    assert second.probe
    breaker.succeeded(first)
    breaker.failed(first)
    assert _state(breaker) == "half_open"
    breaker.succeeded(second)
    assert _state(breaker) == "closed"


class AnyCourse(RuleBasedStateMachine):
    """Whatever the order of attempts, outcomes and time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = RoleBreaker("finder", self.clock)
        self.running: list[RoleTicket] = []

    @rule()
    def start(self) -> None:
        admitted = self.breaker.admits()
        ticket = self.breaker.admit()
        assert (ticket is not None) == admitted
        if ticket:
            self.running.append(ticket)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), outcome=st.sampled_from(["succeeded", "failed", "released"]))
    def settle(self, data: st.DataObject, outcome: str) -> None:
        ticket = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        before = self.breaker.state
        getattr(self.breaker, outcome)(ticket)
        if before != "closed" and self.breaker.state == "closed":
            assert ticket.probe
            assert outcome == "succeeded"
        if before == "closed" and self.breaker.state == "open":
            assert outcome == "failed"

    @rule(seconds=st.integers(1, 400))
    def wait(self, seconds: int) -> None:
        self.clock.at += timedelta(seconds=seconds)

    @invariant()
    def at_most_one_probe_runs_while_it_is_not_closed(self) -> None:
        if self.breaker.state != "closed":
            leased = [t for t in self.running if t == self.breaker._probe]
            assert len(leased) <= 1
            assert self.breaker.state == "half_open" or not self.breaker.admits()

    @invariant()
    def it_never_stays_shut_for_ever(self) -> None:
        if self.breaker.state == "half_open":
            assert self.breaker.admits() or self.breaker._probe in self.running
        if self.breaker.state == "open":
            assert self.breaker.retry_at is not None
            assert self.breaker.retry_at - self.clock.at <= limits.ROLE_BREAKER_COOLDOWN_MAX


TestAnyCourse = AnyCourse.TestCase
