"""What follows an attempt: it goes on, is tried again, counts against its role; which model of a chain is next."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ACCOUNT, FATAL, RESUMABLE, STORE, ErrorKind
from temporal_supervisor.supervision.run.attempt_rules import (
    DECLINED,
    OF_THE_REQUEST,
    AfterAgent,
    after_agent,
    back_off,
    child_id,
    is_child_id,
    is_retried,
    is_tried_again,
    subtask_path,
)
from temporal_supervisor.supervision.run.serving_models import ServingModels
from temporal_supervisor.supervision.run.waits import RoleBreaker
from tests.unit.shapes import Clock

kinds = st.sampled_from(list(ErrorKind))


ALWAYS = [(last, finding) for last in (False, True) for finding in (False, True)]


@pytest.mark.parametrize(
    ("kinds", "cases", "step"),
    [
        ({ErrorKind.CIRCUIT_OPEN}, ALWAYS, AfterAgent.WAIT_PROVIDER),
        ({ErrorKind.PAUSED}, ALWAYS, AfterAgent.RESUME),
        ({ErrorKind.NEEDS_PERSON}, ALWAYS, AfterAgent.WAIT_PERSON),
        ({ErrorKind.BUDGET_EXHAUSTED}, ALWAYS[:2], AfterAgent.RESUME),
        ({ErrorKind.BUDGET_EXHAUSTED}, ALWAYS[2:], AfterAgent.END),  # it had the last grant
        (ACCOUNT, ALWAYS[::2], AfterAgent.END),  # the run fails
        (ACCOUNT, ALWAYS[1::2], AfterAgent.WAIT_RESUME),  # the run has a finding to lose
        ({None}, ALWAYS, AfterAgent.RESUME),  # it went first after an outage
        ({*ErrorKind} - RESUMABLE, ALWAYS, AfterAgent.END),
    ],
)
def test_an_attempt_waits_is_paid_again_or_ends(
    kinds: set[ErrorKind], cases: list[tuple[bool, bool]], step: AfterAgent
) -> None:
    for kind in kinds:
        for last, finding in cases:
            known = {"had_last_grant": last, "has_finding": finding}
            assert after_agent(kind, can_resume=True, **known) is step
            assert after_agent(kind, can_resume=False, **known) is AfterAgent.END


@given(kinds, st.integers(1, 10), st.integers(0, 3))
def test_a_subtask_is_tried_thrice_by_its_role_and_a_declined_one_is_described_better_once(
    kind: ErrorKind, failures: int, declined: int
) -> None:
    again = failures < limits.SUBTASK_ATTEMPTS and (kind not in DECLINED or declined < 2)
    again = again and kind not in OF_THE_REQUEST
    assert is_tried_again(kind, failures, declined) == again


def test_only_the_works_own_failures_are_tried_again_and_each_doubles_the_pause() -> None:
    assert [back_off(failures) / limits.ATTEMPT_PAUSE for failures in (1, 2, 3)] == [1, 2, 4]
    others = {ErrorKind.BUDGET_EXHAUSTED, ErrorKind.CANCELLED, *STORE} - {ErrorKind.ARTIFACT_TOO_LARGE}
    assert {kind for kind in ErrorKind if not is_retried(kind)} == FATAL | others


def test_the_path_of_a_subtask_is_read_from_the_id_of_its_workflow() -> None:
    nested = child_id(child_id("a/run", "t3", 1), "t1.2", 4, 2)
    assert nested == "a/run/t3/1/t1.2/4.2"
    assert [subtask_path(of, "a/run") for of in (nested, "a/run")] == ["t3/t1.2", ""]
    assert [is_child_id(nested, parent) for parent in ("a/run/t3/1", "a/run", None)] == [True, False, False]
    assert not is_child_id("a/run/t3/x", "a/run")
    assert subtask_path(child_id("a/run", "t3", 12), "a/run") == "t3"


# --- the breaker of a role ---------------------------------------------------------------------------


COOLDOWN = limits.ROLE_BREAKER_COOLDOWN


def _state(breaker: RoleBreaker) -> str:
    return breaker.state


COURSE = st.tuples(st.sampled_from(["admit", "wait", "succeeded", "failed", "released"]), st.integers(0, 400))


@given(st.lists(COURSE, min_size=30, max_size=60))
@example([("admit", 0)] * 5 + [("failed", 0)] * 3 + [("wait", 400), ("admit", 0), ("failed", 0), ("released", 1)])
@example(
    [("admit", 0)] * 7 + [("failed", 0)] * 3 + [("wait", 400), ("admit", 0), ("succeeded", 4)] + [("failed", 0)] * 4
)
def test_one_probe_at_a_time_closes_it_and_late_outcomes_change_nothing(course: list[tuple[str, int]]) -> None:
    clock = Clock()
    breaker, running = RoleBreaker("finder", clock), list[object]()
    probe: object | None = None
    older: list[object] = []  # those that began before it last opened or closed
    for step, number in course:
        before, was_until = _state(breaker), breaker.retry_at
        if step == "admit" and breaker.admits():
            running.append(object())
            breaker.admit(running[-1])
            probe = running[-1] if before == "half_open" else probe
        elif step == "wait":
            clock.tick(number)
        elif step != "admit" and running:
            attempt = running.pop(number % len(running))
            breaker.settle(attempt, {"succeeded": True, "failed": False}.get(step))
            if attempt in older or (before != "closed" and attempt is not probe):
                assert (_state(breaker), breaker.retry_at) == (before, was_until), "it comes late"
            elif before != "closed":
                assert _state(breaker) == {"succeeded": "closed", "failed": "open"}.get(step, "half_open")
            if before == "closed" and _state(breaker) != "closed":
                assert step == "failed"
            older = [*running] if (before == "closed") != (_state(breaker) == "closed") else older
        match _state(breaker):
            case "half_open":
                assert (probe in running) == (not breaker.admits())
            case "open":
                assert not breaker.admits()
                assert breaker.retry_at is not None
                assert breaker.retry_at - clock.at <= COOLDOWN


def test_a_role_rests_after_failures_in_a_row_and_a_probe_that_succeeds_begins_the_count_anew() -> None:
    clock, attempt = Clock(), object()
    breaker = RoleBreaker("finder", clock)

    def fails(times: int) -> None:
        for _ in range(times):
            assert breaker.admits()
            breaker.admit(attempt)
            breaker.settle(attempt, False)

    fails(limits.ROLE_BREAKER_FAILURES)
    assert (_state(breaker), breaker.admits()) == ("open", False)
    clock.tick(int(COOLDOWN.total_seconds()))
    assert _state(breaker) == "half_open"
    breaker.admit(attempt)
    breaker.settle(attempt, True)
    fails(limits.ROLE_BREAKER_FAILURES - 1)
    assert _state(breaker) == "closed"


# --- fallback chains ---------------------------------------------------------------------------------


CHAIN = ["large", "middle", "small"]


def test_the_first_model_that_serves_is_chosen() -> None:
    models = ServingModels(Clock())
    assert models.failed("large", CHAIN, ErrorKind.TIMEOUT, 0) == models.choose(CHAIN) == "large"
    assert models.failed("large", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    assert models.choose(CHAIN) == "middle"


def test_a_model_comes_back_after_its_outage_and_an_unserved_one_by_a_person() -> None:
    clock = Clock()
    models = ServingModels(clock)
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    models.failed("middle", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.choose(CHAIN) == "small"
    clock.tick(60)
    assert models.choose(CHAIN) == "large"
    assert models.failed("large", [*CHAIN], ErrorKind.REFUSED, 0) == "small"
    models.retry_all()
    assert models.failed("large", [*CHAIN], ErrorKind.REFUSED, 0) == "middle"


def test_without_any_other_model_the_one_that_comes_back_first_is_awaited() -> None:
    models = ServingModels(Clock())
    models.failed("large", CHAIN, ErrorKind.CIRCUIT_OPEN, 90)
    models.failed("middle", CHAIN, ErrorKind.CIRCUIT_OPEN, 60)
    assert models.failed("small", CHAIN, ErrorKind.MODEL_NOT_SERVED, 0) == "middle"
    gone = ["first", "second"]
    models.failed("first", gone, ErrorKind.MODEL_NOT_SERVED, 0)
    assert models.failed("second", gone, ErrorKind.MODEL_NOT_SERVED, 0) == "second"
    assert models.choose(gone) == "first"


@pytest.mark.parametrize("why", [ErrorKind.CONTEXT_OVERFLOW, ErrorKind.REFUSED])
def test_a_prompt_that_one_model_cannot_or_will_not_take_goes_to_the_next_and_leaves_none_out(why: ErrorKind) -> None:
    models, chain = ServingModels(Clock()), [*CHAIN]
    assert models.failed("large", chain, why, 0) == "middle"
    assert models.failed("middle", chain, ErrorKind.CIRCUIT_OPEN, 60) == "small", "not the one that would do the same"
    assert models.failed("small", chain, why, 0) == "small", "the last one's failure stands"
    assert chain == ["middle", "small"]
    assert models.choose(CHAIN) == "large"


# --- outages ------------------------------------------------------------------------------------------


class _Work:
    """A piece of work that calls a model."""


def _waits(models: ServingModels, model: str, work: _Work) -> bool:
    """Has work wait for a model as runs do: first, or with the others. False if the model is not known to be away."""
    outage = models.outage(model)
    if outage is None:
        return False
    if outage.first is None:
        outage.first = work
    elif outage.first is not work:
        outage.waiting.add(work)
    return True


def test_an_answer_brings_a_model_back_before_its_time() -> None:
    models, work, ended = ServingModels(Clock()), _Work(), list[str]()
    models.outage_ended = lambda: ended.append("outage")
    models.failed("large", ["large"], ErrorKind.CIRCUIT_OPEN, 600)
    models.went_away("large", work, "busy").first = work
    assert models.choose(["large", "small"]) == "small"
    models.answered("large", work)
    models.leave(work)
    assert (models.choose(["large", "small"]), ended) == ("large", ["outage"])


@given(st.lists(st.tuples(st.sampled_from(["fails", "answered", "leaves", "waits"]), st.integers(0, 3))))
def test_one_goes_first_until_it_is_answered_fails_or_leaves(steps: list[tuple[str, int]]) -> None:
    models, works = ServingModels(Clock()), [_Work() for _ in range(4)]
    rounds = 0
    for step, index in steps:
        work, before = works[index], models.outage("large")
        first = before.first if before else None
        others = before.waiting - {work} if before else set()
        match step:
            case "fails":
                outage = models.went_away("large", work, "busy")
                assert before in (None, outage)
                rounds = rounds + (first is work) if before else 0
                assert outage.rounds == rounds
                assert outage.first is (None if first is work else first)
            case "answered":
                models.answered("small", work)
                models.answered("large", work)  # a late answer to other work ends nothing
                assert models.outage("large") is (None if first is work else before)
            case "leaves":
                left = others or first not in (None, work)
                models.leave(work)
                assert models.outage("large") is (before if left else None)
                assert before is None or (before.waiting, before.first) == (others, None if first is work else first)
            case "waits":
                assert _waits(models, "large", work) == (before is not None)
                assert before is None or before.first is (first or work)
        assert models.is_away(["large"]) == (models.outage("large") is not None)
