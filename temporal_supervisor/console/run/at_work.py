"""The state of a call in flight, from its last heartbeat: queued, reading, writing."""

from collections.abc import Mapping
from typing import Any

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import WorkflowExecutionDescription

from temporal_supervisor.console.run.found_runs import last_beat
from temporal_supervisor.runs import Run

_STAGES = {"turn": "waits for its turn", "reading": "reading the prompt"}


async def tail_of(run: Run, described: WorkflowExecutionDescription) -> str:
    """Returns the end of the longest text being written by a workflow's calls.

    Without one, it is a phrase on what a call does.
    """
    pending = described.raw_description.pending_activities
    beats = [(activity, await last_beat(run, activity)) for activity in pending]
    tail = max((str(beat.get("tail") or "") for _, beat in beats), key=len, default="")
    if tail:
        return tail
    phrases = [_stage_words(activity, beat) for activity, beat in beats]
    return next(filter(None, phrases), "")


def is_at_work(activity: PendingActivityInfo) -> bool:
    """True if the present attempt has sent a heartbeat, although an earlier one failed."""
    if activity.state != PendingActivityState.PENDING_ACTIVITY_STATE_STARTED:
        return False
    started, beat = activity.last_started_time, activity.last_heartbeat_time
    return beat.ToNanoseconds() > started.ToNanoseconds()


def _stage_words(activity: PendingActivityInfo, beat: Mapping[str, Any]) -> str:
    """Returns a phrase on what a call does; empty if that is unknown."""
    words = _STAGES.get(str(beat.get("stage")), "")
    if not words or not is_at_work(activity):
        return ""
    if activity.attempt > 1:
        return f"attempt {activity.attempt}, at work again: {words}"
    return words
