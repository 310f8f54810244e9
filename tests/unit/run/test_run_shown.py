"""What a run says of itself: how sure its answer is, its pages, its notes."""

from datetime import timedelta

import pytest

from supervision.base import limits
from supervision.contract.plan import Plan
from supervision.contract.progress import NestedRun
from supervision.contract.request import RunRequest
from supervision.contract.result import Citation, Timing
from supervision.contract.status import Wait
from supervision.results.answer import ANSWER, Answer
from supervision.run.nested_runs import WaitChanges
from supervision.run.run_state import RunState
from tests.unit.shapes import FINDING, START, Clock, plan, subtask


def state(candidate: Plan | None = None, goal: str = "Sum the sales", **changes: object) -> RunState:
    made = RunState(RunRequest.model_validate({"goal": goal, **changes}), Clock(), START)
    if candidate:
        made.adopt(candidate)
    return made


# --- Confidence -----------------------------------------------------------------------------------


def answered(confidence: float | None) -> RunState:
    """A run with one completed subtask, which its answer cites."""
    run = state(plan(subtask("a")))
    run.board.start("a", "w")
    run.board.complete("a", FINDING)
    run.answer = Answer("Yes.", confidence=confidence, citations=[Citation(claim="c", subtask_ids=["a"])])
    return run


@pytest.mark.parametrize("own", [None, 0.0, 0.2, 0.95])
def test_an_answer_without_fault_is_as_sure_as_it_says(own: float | None) -> None:
    assert answered(own).result().confidence == own


def test_an_answer_with_a_fault_is_no_surer_than_its_basis_allows() -> None:
    run = answered(0.95)
    run.open_point("a", "no unit")
    bounded = run.result().confidence
    assert bounded is not None
    assert 0 < bounded < 0.95


def test_what_the_plan_lacks_bounds_the_confidence() -> None:
    run = answered(0.95)
    run.plan_lacks(["the weight of the basket"])
    assert run.result().confidence != 0.95


def test_that_an_answer_was_not_written_well_says_nothing_of_its_basis() -> None:
    run = answered(0.95)
    run.open_point(ANSWER, "it is not the JSON asked for")
    assert run.result().confidence == 0.95


# --- What is shown --------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "following"), [(99, None), (100, None), (101, 100)])
def test_a_page_that_holds_all_subtasks_is_the_last(count: int, following: int | None) -> None:
    assert state(plan(*[subtask(f"t{n}") for n in range(count)])).status().next_cursor == following


def test_waits_for_a_person_have_pages_too() -> None:
    run = state(plan(subtask("a")))
    waits = [
        Wait(id=f"t{n}/1", kind="resume", workflow_id=f"r/t{n}/1", since="") for n in range(limits.STATUS_PAGE + 1)
    ]
    run.nested.begin("a")
    run.nested.report("a", NestedRun(), WaitChanges(begun=waits, anew=True))
    first = run.status()
    assert (len(first.waiting), first.next_cursor) == (limits.STATUS_PAGE, limits.STATUS_PAGE)
    assert [item.id for item in run.status(limits.STATUS_PAGE).waiting] == ["a/t100/1"]


def test_a_plan_with_subtasks_has_its_revision() -> None:
    run = state(plan(subtask("a")).model_copy(update={"revision": 3}))
    assert (run.status().revision, run.result().plan_revisions) == (3, 3)


@pytest.mark.parametrize(("revision", "told"), [(1, False), (2, True)])
def test_a_later_revision_is_worth_a_note(revision: int, told: bool) -> None:
    run = state(plan(subtask("a")).model_copy(update={"revision": revision}))
    assert (f"plan revision {revision}" in run.details()) == told


def test_the_details_show_the_latest_event() -> None:
    run = state(plan(subtask("a")))
    assert "last event" not in run.details()
    run.trace.note("subtask_started", "a", attempt=2, role="digger")
    assert "last event: a digger starts (attempt 2)" in run.details()


@pytest.mark.parametrize(("rounds", "words"), [(0, "off"), (2, "2")])
def test_the_status_says_how_often_findings_are_reviewed(rounds: int, words: str) -> None:
    assert words in state(max_reviews=rounds).status().review


def test_a_role_has_one_breaker_which_the_status_shows() -> None:
    run = state()
    ticket = run.breaker("digger").admit()
    assert ticket
    run.breaker("digger").failed(ticket)
    (card,) = run.status().breakers
    assert isinstance(card, dict)
    assert (card["role"], card["failures"]) == ("digger", 1)


def test_a_run_that_has_just_begun_took_no_time() -> None:
    assert state().result().timing == Timing()


def test_a_run_takes_the_time_from_when_it_began() -> None:
    run = state()
    run.finished_at = START + timedelta(seconds=3)
    assert run.result().timing.wall_seconds == 3


def test_a_run_that_was_reset_has_its_whole_deadline_again() -> None:
    clock = Clock()
    run = RunState(RunRequest.model_validate({"goal": "g", "deadline": "PT60S"}), clock, START)
    clock.tick(50)
    run.restart()
    assert (run.time_and_budget.deadline_at - clock.at).total_seconds() == 60
