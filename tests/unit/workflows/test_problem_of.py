"""The problem behind a failed activity, in the forms in which the server reports it."""

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutType
from temporalio.exceptions import TimeoutError as TemporalTimeout

from temporal_supervisor.supervision.base.errors import ErrorKind
from workflows.calls.activity_calls import problem_of

AWAY = "the artifact store is not mounted"


def failed_activity(state: RetryState, *causes: BaseException) -> ActivityError:
    """Returns the error of an activity, with its causes from the outermost to the innermost."""
    error = ActivityError(
        "Activity task failed",
        scheduled_event_id=11,
        started_event_id=19,
        identity="worker",
        activity_type="plan",
        activity_id="2",
        retry_state=state,
    )
    outer: BaseException = error
    for cause in causes:
        outer.__cause__ = cause
        outer = cause
    return error


def timed_out(kind: TimeoutType) -> TemporalTimeout:
    return TemporalTimeout("activity timeout", type=kind, last_heartbeat_details=[])


def store_is_away() -> ApplicationError:
    return ApplicationError(AWAY, type=ErrorKind.ARTIFACT_UNAVAILABLE)


def test_the_last_failure_is_the_problem_while_there_is_time() -> None:
    problem = problem_of(failed_activity(RetryState.NON_RETRYABLE_FAILURE, store_is_away()))
    assert (problem.type, problem.message) == (ErrorKind.ARTIFACT_UNAVAILABLE, AWAY)


def test_a_pause_beyond_the_time_for_all_attempts_is_a_timeout() -> None:
    problem = problem_of(failed_activity(RetryState.TIMEOUT, store_is_away()))
    assert (problem.type, problem.message) == (ErrorKind.TIMEOUT, f"ArtifactUnavailable: {AWAY}")


def test_an_attempt_beyond_the_time_for_all_is_a_timeout_whatever_failed_before() -> None:
    late = timed_out(TimeoutType.SCHEDULE_TO_CLOSE)
    problem = problem_of(failed_activity(RetryState.NON_RETRYABLE_FAILURE, late, store_is_away()))
    assert (problem.type, problem.message) == (ErrorKind.TIMEOUT, f"ArtifactUnavailable: {AWAY}")


@pytest.mark.parametrize("kind", [TimeoutType.HEARTBEAT, TimeoutType.SCHEDULE_TO_CLOSE])
def test_a_timeout_alone_is_one(kind: TimeoutType) -> None:
    problem = problem_of(failed_activity(RetryState.TIMEOUT, timed_out(kind)))
    assert (problem.type, problem.message) == (ErrorKind.TIMEOUT, "activity timeout")
