"""What a run has still to do: by the subtasks that ended, along the longest chain, within the places that it has."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from temporal_supervisor.supervision.contract.progress import Counts
from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.planning.to_go import RestOfPlan, rest_of_plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
State = Literal["waiting", "running", "completed"]


def report(
    name: str,
    state: State,
    *after: str,
    begun: float = 0,
    took: float = 60,
    usd: float | None = 0.1,
) -> SubtaskReport:
    start = NOW - timedelta(seconds=begun)
    return SubtaskReport(
        id=name,
        state=state,
        depends_on=list(after),
        started_at=None if state == "waiting" else start.isoformat(),
        finished_at=(start + timedelta(seconds=took)).isoformat() if state == "completed" else None,
        usage=Usage(usd=usd),
    )


def test_before_a_subtask_has_ended_nothing_is_guessed() -> None:
    assert rest_of_plan([report("t1", "running"), report("t2", "waiting")], NOW, 8) is None
    assert rest_of_plan([report("t1", "completed", begun=60)], NOW, 8) is None


def test_subtasks_that_wait_for_each_other_take_their_times_in_a_row() -> None:
    chain = [
        report("t1", "completed", begun=90),
        report("t2", "running", "t1", begun=30),
        report("t3", "waiting", "t2"),
    ]
    assert rest_of_plan(chain, NOW, 8) == RestOfPlan(90.0, 0.1 * 1.5)


def test_no_more_subtasks_are_done_at_once_than_a_run_may() -> None:
    wide = [
        report("t1", "completed", begun=60),
        *(report(f"t{number}", "waiting") for number in range(2, 8)),
    ]
    guess = rest_of_plan(wide, NOW, 2)
    assert guess
    assert (guess.seconds, round(guess.usd or 0, 6)) == (180.0, 0.6)


def test_a_subtask_behind_a_template_waits_for_its_items() -> None:
    template = report("t2", "running").model_copy(update={"counts": Counts(total=2)})
    items = [report("t2.1", "completed", begun=60), report("t2.2", "waiting")]
    guess = rest_of_plan([template, *items, report("t3", "waiting", "t2")], NOW, 8)
    assert guess
    assert guess.seconds == 120.0


def test_a_subtask_that_takes_longer_than_usual_still_takes_a_little() -> None:
    guess = rest_of_plan([report("t1", "completed", begun=600), report("t2", "running", begun=500, usd=None)], NOW, 8)
    assert guess
    assert guess.seconds == 6.0


def test_without_prices_there_is_no_cost() -> None:
    guess = rest_of_plan([report("t1", "completed", begun=60, usd=None), report("t2", "waiting")], NOW, 8)
    assert guess == RestOfPlan(60.0, None)
