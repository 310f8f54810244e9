"""The provider breaker and its window of calls."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import OUTAGES, ErrorKind
from temporal_supervisor.supervision.provider.provider_breaker import (
    BREAKER_TRUST,
    BREAKER_WINDOW,
    CallTicket,
    CallWindow,
    Hold,
    ProviderBreaker,
)

COOLDOWN = limits.BREAKER_COOLDOWN.total_seconds()
LONGEST = limits.BREAKER_COOLDOWN_MAX.total_seconds()
NO_ROOM = Hold("no room")
WINDOW, FAILURES = BREAKER_WINDOW, limits.BREAKER_FAILURES
HARMLESS = [
    ErrorKind.RATE_LIMITED,
    ErrorKind.PROVIDER_REJECTED,
    ErrorKind.PROVIDER_AUTHENTICATION,
    ErrorKind.PROVIDER_BILLING,
]


def _go(breaker: ProviderBreaker, now: float = 0) -> CallTicket:
    ticket = breaker.request_ticket(now)
    assert not isinstance(ticket, Hold)
    return ticket


def _trusted() -> ProviderBreaker:
    breaker = ProviderBreaker()
    breaker.succeeded(_go(breaker), 0)
    return breaker


def _trusts(breaker: ProviderBreaker, now: float = 0) -> bool:
    """True if it takes more calls at once than that of a provider which has shown nothing yet."""
    return not any(isinstance(breaker.request_ticket(now), Hold) for _ in range(WINDOW + 1))


def _open(breaker: ProviderBreaker, now: float = 0, retry_after: float | None = None) -> None:
    while breaker.state(now) == "closed":
        breaker.failed(_go(breaker, now), now, ErrorKind.OVERLOADED, retry_after)


@pytest.mark.parametrize("kind", sorted(OUTAGES))
def test_five_outages_in_a_row_open_it_for_ten_seconds(kind: ErrorKind) -> None:
    breaker = _trusted()
    for _ in range(FAILURES):
        assert breaker.state(0) == "closed"
        breaker.failed(_go(breaker), 0, kind)
    assert breaker.request_ticket(0) == Hold("open", COOLDOWN)
    assert breaker.request_ticket(4) == Hold("open", COOLDOWN - 4)
    assert breaker.state(COOLDOWN) == "half_open"


@pytest.mark.parametrize("kind", [*HARMLESS, ErrorKind.BAD_RESPONSE])
def test_other_failures_never_open_it(kind: ErrorKind) -> None:
    breaker = ProviderBreaker()
    for now in range(50):
        breaker.failed(_go(breaker, now), now, kind)
    assert (breaker.state(50), breaker.failures) == ("closed", 0)
    assert _trusts(breaker, 50) == (kind in HARMLESS[1:])  # an answer, whatever it is; a 429 leaves room for one call


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    ("asked", "closed_for"), [(COOLDOWN - 0.1, 0), (COOLDOWN, COOLDOWN), (COOLDOWN + 5, COOLDOWN + 5), (900, LONGEST)]
)
def test_an_outage_that_names_a_wait_of_a_cool_down_opens_it_at_once(
    asked: float, closed_for: float, trusted: bool
) -> None:
    breaker = _trusted() if trusted else ProviderBreaker()
    breaker.failed(_go(breaker), 0, ErrorKind.OVERLOADED, asked)
    assert breaker.remaining(0) == closed_for
    assert breaker.state(0) == ("open" if closed_for else "closed")


def test_trust_ends_with_a_failure_and_with_time() -> None:
    breaker = _trusted()
    flying = [_go(breaker) for _ in range(WINDOW + 1)]
    assert breaker.request_ticket(BREAKER_TRUST.total_seconds()) == NO_ROOM
    assert isinstance(breaker.request_ticket(1), CallTicket)
    breaker.failed(flying[0], 1, ErrorKind.PROVIDER_ERROR)
    assert breaker.request_ticket(1) == NO_ROOM


def test_half_open_leases_one_probe_and_only_its_success_closes() -> None:
    breaker = _trusted()
    early = [_go(breaker) for _ in range(3)]
    _open(breaker)
    breaker.succeeded(early[0], 1)
    assert breaker.state(1) == "open"
    breaker.released(_go(breaker, COOLDOWN))
    probe = _go(breaker, COOLDOWN)
    breaker.released(early[0])
    assert breaker.request_ticket(COOLDOWN) == NO_ROOM
    breaker.succeeded(early[1], COOLDOWN)
    breaker.failed(early[2], COOLDOWN, ErrorKind.RATE_LIMITED, 1)
    breaker.answering(probe, COOLDOWN)
    assert breaker.state(COOLDOWN) == "half_open"
    breaker.succeeded(probe, COOLDOWN + 1)
    assert breaker.state(COOLDOWN + 1) == "closed"
    assert isinstance(breaker.request_ticket(COOLDOWN + 1), CallTicket)


def test_a_429_that_names_no_wait_holds_back_the_only_call_that_there_may_be() -> None:
    breaker = _trusted()
    breaker.failed(_go(breaker), 0, ErrorKind.RATE_LIMITED)
    assert breaker.request_ticket(0) == Hold("paced", limits.MODEL_RETRY_INITIAL.total_seconds())


def test_a_429_holds_calls_back_for_a_bounded_time() -> None:
    breaker = _trusted()
    one, other = _go(breaker), _go(breaker)
    breaker.failed(one, 0, ErrorKind.RATE_LIMITED, 20)
    breaker.failed(other, 1, ErrorKind.RATE_LIMITED, 2)
    assert (breaker.request_ticket(1), breaker.state(1)) == (Hold("paced", 19), "closed")
    breaker.failed(_go(breaker, 20), 20, ErrorKind.RATE_LIMITED, 900)
    assert breaker.request_ticket(20) == Hold("paced", limits.PACE_MAX.total_seconds())


@pytest.mark.parametrize("outcome", ["success", "released", *ErrorKind])
def test_each_call_that_ends_leaves_its_room_to_another(outcome: str) -> None:
    breaker = ProviderBreaker(2)
    breaker.answering(_go(breaker), 0)
    ticket = _go(breaker)
    assert breaker.request_ticket(0) == NO_ROOM
    if outcome == "success":
        breaker.succeeded(ticket, 0)
    elif outcome == "released":
        breaker.released(ticket)
    else:
        breaker.failed(ticket, 0, ErrorKind(outcome))
    assert isinstance(breaker.request_ticket(1), Hold if outcome == ErrorKind.RATE_LIMITED else CallTicket)


def test_a_429_halves_the_calls_in_flight_and_first_content_brings_them_back() -> None:
    breaker = _trusted()
    flying = [_go(breaker) for _ in range(8)]
    breaker.failed(flying.pop(), 0, ErrorKind.RATE_LIMITED)
    assert (breaker.window.size, breaker.request_ticket(0)) == (4, NO_ROOM)
    for ticket in flying[:4]:
        breaker.succeeded(ticket, 0)
        breaker.answering(ticket, 0)  # again: a call is granted once
    assert breaker.window.size == 5
    refused = _go(breaker)
    breaker.answering(flying[4], 0)
    breaker.failed(flying[4], 5, ErrorKind.RATE_LIMITED)  # refused in the middle of its answer
    assert breaker.window.size == 2
    breaker.failed(refused, 5, ErrorKind.RATE_LIMITED)
    assert breaker.window.size == 2


def test_a_probe_waits_for_no_room() -> None:
    breaker = _trusted()
    hanging = [_go(breaker) for _ in range(4)]
    flying = [_go(breaker) for _ in range(FAILURES + 2)]
    for now in (0, 1):
        breaker.failed(flying.pop(), now, ErrorKind.RATE_LIMITED)
    assert breaker.window.size < len(hanging)
    for ticket in flying:
        breaker.failed(ticket, 1, ErrorKind.OVERLOADED)
    assert isinstance(breaker.request_ticket(1 + COOLDOWN), CallTicket)


@given(st.integers(1, 300), st.booleans(), st.data())
def test_an_outage_costs_few_requests_however_many_call(callers: int, at_start: bool, data: st.DataObject) -> None:
    breaker = ProviderBreaker() if at_start else _trusted()
    now = 0.0 if at_start else BREAKER_TRUST.total_seconds()
    flying: list[CallTicket] = []
    requests = 0
    while callers and breaker.state(now) != "open":
        admission = breaker.request_ticket(now)
        if isinstance(admission, CallTicket):
            requests, callers = requests + 1, callers - 1
            flying.append(admission)
        if flying and (admission == NO_ROOM or data.draw(st.booleans())):
            ticket = flying.pop(data.draw(st.integers(0, len(flying) - 1)))
            breaker.failed(ticket, now, data.draw(st.sampled_from(sorted(OUTAGES))))
    assert requests <= FAILURES + WINDOW - 1 <= 10


class AnyCourse(RuleBasedStateMachine):
    """Whatever the order of calls, outcomes and time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = ProviderBreaker()
        self.flying: list[CallTicket] = []
        self.probes: list[CallTicket] = []

    @rule()
    def call(self) -> None:
        state = self.breaker.state(self.now)
        admission = self.breaker.request_ticket(self.now)
        if isinstance(admission, CallTicket):
            assert state != "open"
            self.flying.append(admission)
            self.probes += [admission] if state == "half_open" else []
        elif admission == NO_ROOM:
            assert self.flying, "nobody in flight could end this wait"
        else:
            assert admission.seconds > 0

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["success", "released", ErrorKind.BAD_RESPONSE, *HARMLESS, *sorted(OUTAGES)]),
        retry_after=st.sampled_from([None, None, 1.0, 45.0]),
        alive=st.booleans(),
    )
    def settle(self, data: st.DataObject, outcome: str, retry_after: float | None, alive: bool) -> None:
        ticket = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        before = self.breaker.state(self.now)
        if alive:
            self.breaker.answering(ticket, self.now)
        if outcome == "success":
            self.breaker.succeeded(ticket, self.now)
        elif outcome == "released":
            self.breaker.released(ticket)
        else:
            self.breaker.failed(ticket, self.now, ErrorKind(outcome), retry_after)
        after = self.breaker.state(self.now)
        if before != "closed" and after == "closed":
            assert ticket in self.probes
            assert outcome == "success" or outcome in HARMLESS
        if after == "open" and before != "open":
            assert outcome in OUTAGES or (ticket in self.probes and outcome == ErrorKind.BAD_RESPONSE)

    @rule(seconds=st.floats(0.1, 70))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def one_probe_at_most(self) -> None:
        if self.breaker.state(self.now) != "closed":
            assert sum(ticket in self.probes for ticket in self.flying) <= 1

    @invariant()
    def it_opens_again_in_bounded_time(self) -> None:
        assert self.breaker.remaining(self.now) <= limits.BREAKER_COOLDOWN_MAX.total_seconds()
        assert self.breaker._paced_until - self.now <= limits.PACE_MAX.total_seconds()


AnyCourse.TestCase.settings = settings(max_examples=60, deadline=None)
TestAnyCourse = AnyCourse.TestCase


@pytest.mark.parametrize(
    ("course", "failures", "then_trusted"),
    [
        ("a> a! b> b~", 0, True),  # first content ends a row
        ("a> a~ a/ b> b~", 1, True),  # but takes back no answer that broke off
        ("a> a~ a/ b> b~ b/ c> c~ c/", 3, False),
        ("a> a~ a/ b> b! c> c~", 1, True),
        ("a> a~ a/ b> b=", 0, True),
        ("a> b> a~ a/ b= c> c~", 1, True),  # nor does an answer to a call from before
        ("a> b> b! a=", 1, False),  # a success from before the row
        ("a> b> a! b~", 1, False),  # the last call before the failure
        ("a> b> b! a= c> c=", 0, True),
        ("a> b> a! c> b! c=", 0, True),  # a second failure does not move the beginning of its row
        ("a> a! b> c> b~ d> d! c=", 1, False),  # after new content a row begins again
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_row_ends_only_by_evidence_that_is_younger(
    course: str, failures: int, then_trusted: bool, trusted: bool
) -> None:
    """`a>` sends call a, `a~` is its first content, `a=` its success, `a!` an outage, `a/` a broken stream."""
    breaker, tickets = _trusted() if trusted else ProviderBreaker(), dict[str, CallTicket]()
    for step in course.split():
        call, event = step[0], step[1]
        if event == ">":
            tickets[call] = _go(breaker)
        elif event == "~":
            breaker.answering(tickets[call], 0)
        elif event == "=":
            breaker.succeeded(tickets[call], 0)
        else:
            breaker.failed(tickets[call], 0, ErrorKind.OVERLOADED if event == "!" else ErrorKind.STREAM_BROKEN)
    assert (breaker.failures, _trusts(breaker)) == (failures, then_trusted)


def test_calls_from_before_an_opening_do_not_count_after_it() -> None:
    breaker = _trusted()
    opening, *old = [_go(breaker) for _ in range(WINDOW)]
    breaker.failed(opening, 0, ErrorKind.OVERLOADED, COOLDOWN)
    breaker.succeeded(_go(breaker, COOLDOWN), COOLDOWN)
    for ticket in old:
        breaker.failed(ticket, COOLDOWN, ErrorKind.OVERLOADED)
    assert (breaker.state(COOLDOWN), breaker.failures) == ("closed", 0)


# --- the window of calls in flight -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "course", "sizes"),
    [
        (200, [(9, 0), (200, 1)], [4, 2]),
        (64, [(64, 7.0), (64, 7.0), (64, 7.9), (64, 8.0)], [32, 32, 32, 16]),  # within a second they are one
        (8, [None, None, None, (8, 0), None, None, None, None], [8, 8, 8, 4, 4, 4, 4, 5]),  # counted from there
        (7, [(1, 0), *[None] * 22], [1, 2, 2, 3, 3, 3, *[4] * 4, *[5] * 4, *[6] * 4, *[7] * 5]),
    ],
)
def test_a_refusal_halves_it_and_grants_widen_it(
    most: int, course: list[tuple[int, float] | None], sizes: list[int]
) -> None:
    """A step is a grant, or a refusal with the calls in flight and the time."""
    window, seen = CallWindow(most), []
    for step in course:
        window.refused(*step) if step else window.granted()
        seen.append(window.size)
    assert seen == sizes


@given(st.integers(1, 50), st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.floats(0, 3)), max_size=200))
def test_it_is_never_below_one_nor_above_the_most_and_halved_once_a_second(
    most: int, course: list[tuple[bool, int, float]]
) -> None:
    window, now, halved = CallWindow(most), 0.0, -math.inf
    for is_refused, in_flight, seconds in course:
        now += seconds
        before = window.size
        if is_refused:
            window.refused(in_flight, now)
        else:
            window.granted()
        assert 1 <= window.size <= most
        assert before // 2 <= window.size or in_flight < before
        assert window.size <= before + (not is_refused)
        if window.size < before:
            assert now - halved >= 1
            halved = now


# --- bad luck and stalls ------------------------------------------------------------------------------

RECENT = limits.BREAKER_RECENT.total_seconds()
STALLED = limits.STALLED_AFTER.total_seconds()


def _busy(served: int, now: float = 0) -> ProviderBreaker:
    breaker = ProviderBreaker()
    for number in range(served):
        ticket = breaker.request_ticket(now, f"good-{number}")
        assert not isinstance(ticket, Hold)
        breaker.succeeded(ticket, now)
    return breaker


def _fail(breaker: ProviderBreaker, call: str, now: float) -> None:
    ticket = breaker.request_ticket(now, call)
    assert not isinstance(ticket, Hold)
    breaker.failed(ticket, now, ErrorKind.OVERLOADED)


def test_five_failures_in_a_row_among_many_good_calls_are_bad_luck() -> None:
    breaker = _busy(20)
    for number in range(FAILURES):
        _fail(breaker, f"bad-{number}", 1)
    assert breaker.state(1) == "closed"


def test_a_call_that_fails_again_and_again_is_one_call() -> None:
    breaker = _busy(FAILURES + 1)
    for _ in range(4 * FAILURES):
        _fail(breaker, "the same", 1)
    assert breaker.state(1) == "closed"


def test_a_call_that_was_answered_at_last_has_not_failed() -> None:
    """The first send of each call fails, the second is answered: no outage, however often five fail in a row."""
    breaker = _busy(1)
    for number in range(10):
        _fail(breaker, f"call-{number}", number / 10)
        ticket = breaker.request_ticket(number / 10, f"call-{number}")
        assert not isinstance(ticket, Hold)
        breaker.succeeded(ticket, number / 10)
    for number in range(FAILURES):
        _fail(breaker, f"late-{number}", 2)
    assert breaker.state(2) == "closed"


def test_as_many_failed_calls_as_good_ones_are_an_outage() -> None:
    breaker = _busy(8)
    for number in range(8):
        assert breaker.state(1) == "closed"
        _fail(breaker, f"bad-{number}", 1)
    assert breaker.state(1) == "open"


def test_what_was_decided_long_ago_does_not_hide_an_outage() -> None:
    breaker = _busy(50)
    for number in range(FAILURES):
        _fail(breaker, f"bad-{number}", RECENT + 1)
    assert breaker.state(RECENT + 1) == "open"


def test_a_stalled_call_does_not_hold_the_last_place_of_a_narrowed_model() -> None:
    breaker = _trusted()
    first = _go(breaker)
    breaker.failed(_go(breaker), 0, ErrorKind.RATE_LIMITED)
    assert breaker.window.size == 1
    later = limits.PACE_MAX.total_seconds()
    breaker.answering(first, later)
    breaker.succeeded(first, later)
    stalled = _go(breaker, later)
    breaker.window.size = 1
    assert breaker.request_ticket(later) == NO_ROOM
    assert breaker.next_stall(later) == STALLED
    assert breaker.request_ticket(later + STALLED - 0.1) == NO_ROOM
    assert not isinstance(breaker.request_ticket(later + STALLED), Hold)
    breaker.succeeded(stalled, later + STALLED)  # it was only slow


def test_a_call_with_content_holds_its_place_for_as_long_as_it_takes() -> None:
    breaker = _trusted()
    breaker.answering(_go(breaker), 0)
    breaker.window.size = 1
    assert breaker.request_ticket(100 * STALLED) == NO_ROOM
    for now in (STALLED / 2, STALLED, 100 * STALLED):
        assert breaker.next_stall(now) is None, "whoever waits for room would ask without a pause"
