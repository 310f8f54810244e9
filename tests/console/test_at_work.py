"""What screens say of a call in flight, by its last heartbeat."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import DataConverter

from temporal_supervisor.console.run.at_work import is_at_work, tail_of
from temporal_supervisor.runs import Run

STARTED = PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
WAITING = PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)


def pending(attempt: int = 1, beat_after: float = 1.0, state: Any = STARTED) -> PendingActivityInfo:
    activity = PendingActivityInfo(attempt=attempt, state=state)
    activity.last_started_time.FromDatetime(NOW)
    activity.last_heartbeat_time.FromDatetime(NOW + timedelta(seconds=beat_after))
    return activity


async def said(*calls: tuple[PendingActivityInfo, dict[str, Any]]) -> str:
    for call, beat in calls:
        call.heartbeat_details.payloads.extend(await DataConverter.default.encode([beat]))
    pending_activities = [call for call, _ in calls]
    described: Any = SimpleNamespace(raw_description=SimpleNamespace(pending_activities=pending_activities))
    client: Any = SimpleNamespace(data_converter=DataConverter.default)
    return await tail_of(Run(client, "a-run"), described)


@pytest.mark.parametrize(
    ("stage", "attempt", "words"),
    [
        ("turn", 1, "waits for its turn"),
        ("reading", 1, "reading the prompt"),
        ("reading", 3, "attempt 3, at work again: reading the prompt"),
        ("writing", 1, ""),
        ("unheard of", 1, ""),
    ],
)
async def test_before_its_first_word_a_call_says_where_it_stands(stage: str, attempt: int, words: str) -> None:
    assert await said((pending(attempt), {"stage": stage, "tail": ""})) == words


async def test_what_is_being_written_is_shown_before_what_others_do() -> None:
    reading, writing = {"stage": "reading"}, {"stage": "writing", "tail": "Rwanda had"}
    assert await said((pending(), reading), (pending(), writing), (pending(), {})) == "Rwanda had"


async def test_the_heartbeat_of_an_attempt_that_was_lost_says_nothing_of_the_next_one() -> None:
    lost = pending(attempt=2, beat_after=-5)
    assert not is_at_work(lost)
    assert not is_at_work(pending(attempt=2, state=WAITING))
    assert await said((lost, {"stage": "reading"})) == ""
    assert is_at_work(pending(attempt=2))
