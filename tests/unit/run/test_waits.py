"""What a run waits for: shown while it waits, told apart by whether a person has to act."""

import contextlib

from supervision.run.waits import ProviderWait, Waits
from tests.unit.shapes import Clock

TIMED = ProviderWait(name="t1", workflow_id="r/t1/1", model="m", why="overloaded", retry_at="2026-01-01T00:01:00+00:00")
FOR_A_PERSON = ProviderWait(name="t2", workflow_id="r/t2/1", model="m", why="no credit")


def waits(*below: ProviderWait) -> Waits:
    return Waits(Clock(), lambda: [*below])


def fail(some: Waits, role: str, times: int) -> None:
    for _ in range(times):
        ticket = some.breaker(role).admit()
        assert ticket
        some.breaker(role).failed(ticket)


def test_each_role_has_one_breaker() -> None:
    some = waits()
    assert some.breaker("digger") is some.breaker("digger")
    assert some.breaker("digger") is not some.breaker("finder")
    assert some.breaker("digger").role == "digger"


def test_a_wait_is_shown_while_it_lasts_and_no_longer() -> None:
    some = waits()
    with some.waiting(TIMED):
        assert some.current == [TIMED]
    assert some.current == []


def test_a_wait_that_ends_badly_is_over_too() -> None:
    some = waits()
    with contextlib.suppress(TimeoutError), some.waiting(TIMED):
        raise TimeoutError
    assert some.current == []


def test_waits_of_nested_supervisors_count_like_own_ones() -> None:
    some = waits(FOR_A_PERSON)
    with some.waiting(TIMED):
        assert some.current == [TIMED, FOR_A_PERSON]


def test_only_what_has_no_time_of_its_own_waits_for_a_person() -> None:
    assert waits(TIMED, FOR_A_PERSON).for_resume == [FOR_A_PERSON]


def test_a_wait_for_a_person_asks_to_resume() -> None:
    asked = FOR_A_PERSON.request("2026-01-02T00:00:00+00:00")
    assert (asked.id, asked.kind, asked.workflow_id) == ("t2", "resume", "r/t2/1")
    assert (asked.prompt_preview, asked.expires_at) == ("no credit", "2026-01-02T00:00:00+00:00")


def test_cards_are_of_roles_that_failed_and_of_providers_that_are_tried_again() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    some.breaker("finder")
    fail(some, "digger", 1)
    role, provider = some.cards()
    assert (role["role"], role["state"], role["failures"]) == ("digger", "closed", 1)
    assert provider == {
        "provider": "m",
        "state": "open",
        "waiting": "t1",
        "retry_at": TIMED.retry_at,
        "why": "overloaded",
    }


def test_each_wait_has_a_note_and_a_closed_breaker_has_none() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    fail(some, "digger", 3)
    fail(some, "finder", 2)
    role, provider, person = some.notes()
    assert "digger" in role
    assert "t1" in provider
    assert "t2" in person
    assert "no credit" in person


def test_waits_are_told_apart_by_workflow_and_name() -> None:
    again = TIMED.model_copy(update={"why": "still overloaded"})
    assert again.key == TIMED.key
    assert TIMED.model_copy(update={"workflow_id": "r/t1/2"}).key != TIMED.key
    assert TIMED.model_copy(update={"name": "synthesis"}).key != TIMED.key


def test_a_role_whose_breaker_rests_is_open_until_its_cool_down_ends() -> None:
    clock = Clock()
    some = Waits(clock, list)
    fail(some, "digger", 3)
    assert [card["state"] for card in some.cards()] == ["open"]
    clock.tick(3600)
    assert [card["state"] for card in some.cards()] == ["half_open"]
