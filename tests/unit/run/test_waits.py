"""What a run waits for: shown while it waits, told apart by whether a person can end it."""

from datetime import datetime, timedelta

from supervision.contract.status import Wait
from supervision.run.waits import Waits
from tests.unit.shapes import START, Clock

LATER = "2026-01-01T00:01:00+00:00"
SOON = datetime.fromisoformat(LATER)
TIMED = Wait(
    id="t1/1",
    kind="provider",
    workflow_id="r",
    subtask_id="t1",
    prompt_preview="overloaded",
    since=START.isoformat(),
    expires_at=LATER,
    model="m",
)
FOR_A_PERSON = TIMED.model_copy(
    update={"id": "t2/1", "subtask_id": "t2", "kind": "resume", "prompt_preview": "no credit"}
)


def waits(*below: Wait) -> Waits:
    return Waits(Clock(), lambda: [*below])


def fail(some: Waits, role: str, times: int) -> None:
    for _ in range(times):
        ticket = some.breaker(role).admit()
        assert ticket
        some.breaker(role).failed(ticket)


def test_a_wait_is_shown_until_its_end_with_its_latest_time() -> None:
    some, same = waits(), TIMED.model_copy()
    some.show(TIMED, START)
    some.show(same, SOON)
    some.show(TIMED, SOON + timedelta(minutes=1))
    assert [wait.expires_at for wait in some.current] == ["2026-01-01T00:02:00+00:00", LATER]
    some.end(TIMED)
    some.end(TIMED)
    assert some.current == [TIMED]
    some.end(same)
    assert some.current == []


def test_cards_are_of_roles_that_failed_and_of_providers_that_are_tried_again() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    some.breaker("finder")
    fail(some, "digger", 1)
    role, provider = some.cards()
    assert (role["role"], role["state"], role["failures"]) == ("digger", "closed", 1)
    assert provider == {"provider": "m", "state": "open", "waiting": "t1", "retry_at": LATER, "why": "overloaded"}


def test_each_wait_has_a_note_and_a_closed_breaker_has_none() -> None:
    some = waits(TIMED, FOR_A_PERSON)
    fail(some, "digger", 3)
    fail(some, "finder", 2)
    role, provider, person = some.notes()
    assert "digger" in role
    assert "t1" in provider
    assert person == "t2 waits for resume: no credit"
