"""What follows when a worker agent has ended: the attempt goes on, or the subtask is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.base.errors import ACCOUNT, FATAL, RESUMABLE, STORE, ErrorKind
from supervision.run.attempt_rules import (
    DECLINED,
    AfterAgent,
    NextTry,
    after_agent,
    child_id,
    counts_against_role,
    is_retried,
    next_try,
    subtask_path,
)

kinds = st.sampled_from(list(ErrorKind))


def after(
    kind: ErrorKind | None, *, can_resume: bool = True, had_last_grant: bool = False, has_finding: bool = False
) -> AfterAgent:
    return after_agent(kind, can_resume=can_resume, had_last_grant=had_last_grant, has_finding=has_finding)


@given(kinds, st.booleans(), st.booleans(), st.booleans())
def test_an_attempt_goes_on_only_from_where_it_stood(kind: ErrorKind, go_on: bool, last: bool, finding: bool) -> None:
    step = after(kind, can_resume=go_on, had_last_grant=last, has_finding=finding)
    if kind not in RESUMABLE or not go_on:
        assert step is AfterAgent.END


@pytest.mark.parametrize(("last", "step"), [(False, AfterAgent.RETRY_FUNDED), (True, AfterAgent.END)])
def test_a_used_up_grant_is_followed_by_another_one_while_there_is_any(last: bool, step: AfterAgent) -> None:
    assert after(ErrorKind.BUDGET_EXHAUSTED, had_last_grant=last) is step


@given(st.booleans(), st.booleans())
def test_an_open_breaker_of_the_provider_is_waited_out(last: bool, finding: bool) -> None:
    assert after(ErrorKind.CIRCUIT_OPEN, had_last_grant=last, has_finding=finding) is AfterAgent.WAIT_PROVIDER


@given(st.booleans(), st.booleans())
def test_a_paused_agent_is_continued_with_the_run(last: bool, finding: bool) -> None:
    assert after(ErrorKind.PAUSED, had_last_grant=last, has_finding=finding) is AfterAgent.WAIT_RESUMED


@pytest.mark.parametrize("kind", sorted(ACCOUNT))
def test_an_account_problem_fails_a_run_that_has_nothing_to_lose_and_else_waits(kind: ErrorKind) -> None:
    assert after(kind) is AfterAgent.FAIL_RUN
    assert after(kind, has_finding=True) is AfterAgent.WAIT_RESUME


@given(kinds, st.integers(1, 10), st.booleans())
def test_a_subtask_is_tried_thrice_then_once_by_its_fallback(kind: ErrorKind, failures: int, spare: bool) -> None:
    step = next_try(kind, failures, has_fallback=spare)
    if not is_retried(kind):
        assert step is NextTry.GIVE_UP
    elif failures < limits.SUBTASK_ATTEMPTS:
        assert step is NextTry.SAME_ROLE
    else:
        assert step is (NextTry.FALLBACK_ROLE if spare else NextTry.GIVE_UP)


def test_only_the_works_own_failures_count_against_a_role() -> None:
    elsewhere = {kind for kind in ErrorKind if not counts_against_role(kind)}
    others = {ErrorKind.BUDGET_EXHAUSTED, ErrorKind.CANCELLED, ErrorKind.PROVIDER_REJECTED}
    assert elsewhere == FATAL | STORE | others | DECLINED


@pytest.mark.parametrize("kind", sorted(DECLINED))
def test_a_declined_subtask_is_described_better_once_and_counts_against_nobody(kind: ErrorKind) -> None:
    assert next_try(kind, 1, 1, has_fallback=True) is NextTry.SAME_ROLE
    assert next_try(kind, 2, 2, has_fallback=True) is NextTry.FALLBACK_ROLE
    assert next_try(kind, 2, 2, has_fallback=False) is NextTry.GIVE_UP
    assert next_try(kind, 2, 1, has_fallback=True) is NextTry.SAME_ROLE
    assert not counts_against_role(kind)


@pytest.mark.parametrize("subtask_id", ["t1", "a.b/c", "2"])
@pytest.mark.parametrize("candidate", [0, 2])
def test_the_id_of_a_child_names_subtask_attempt_and_candidate(subtask_id: str, candidate: int) -> None:
    child = child_id("run/nested/1", subtask_id, 9, candidate)
    assert child == f"run/nested/1/{subtask_id}/9" + (".2" if candidate else "")


def test_the_path_of_a_subtask_is_read_from_the_id_of_its_workflow() -> None:
    nested = child_id(child_id("a/run", "t3", 1), "t1.2", 4, 2)
    assert subtask_path(nested, "a/run") == "t3/t1.2"
    assert subtask_path(child_id("a/run", "t3", 12), "a/run") == "t3"
