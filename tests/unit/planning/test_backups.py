"""When new work of a role goes to its backup: by the age of its pool's work, and by what its last subtasks took."""

from datetime import timedelta

import pytest

from temporal_supervisor.supervision.contract.result import SubtaskReport
from temporal_supervisor.supervision.contract.team import RoleCard
from temporal_supervisor.supervision.planning.backups import median_seconds, too_far_behind, too_slow
from tests.unit.shapes import START


def took(*seconds: float, role: str = "fetcher", held: float = 0.0) -> list[SubtaskReport]:
    reports = []
    for at, each in enumerate(seconds):
        began = START + timedelta(hours=at)
        ended = began + timedelta(seconds=each)
        times = {"started_at": began.isoformat(), "finished_at": ended.isoformat(), "held_seconds": held}
        reports.append(SubtaskReport(id=f"t{at}", role=role, description="d", state="completed", **times))
    return reports


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([], None),
        (took(5, 5), None),
        (took(9, 1, 5), 5),
        (took(90, 90, 1, 2, 3), 2),
        (took(9, 9, 9, held=4), 5),
        (took(9, 9, 9, role="other"), None),
    ],
)
def test_a_roles_latency_is_the_median_of_its_last_three_subtasks(
    reports: list[SubtaskReport], expected: float | None
) -> None:
    assert median_seconds(reports, "fetcher") == expected


def test_a_role_is_slow_or_behind_by_its_own_limits() -> None:
    role = RoleCard(name="fetcher", model="m", pool="far", latency_seconds=4, backlog_seconds=10)
    assert too_slow(role, took(5, 5, 5)) == "its last subtasks took 5.0 s"
    assert too_slow(role, took(4, 4, 4)) == ""
    assert too_slow(role.model_copy(update={"latency_seconds": None}), took(5, 5, 5)) == ""
    assert (too_far_behind(role, 10.5), too_far_behind(role, 10)) == ("pool far is 10.5 s behind", "")
