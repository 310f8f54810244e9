"""Replaying histories with today's workflow code."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from temporal_supervisor.runtime import workers
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

OURS = (SupervisorWorkflow, WorkerAgentWorkflow)


def replayer(*workflows: type, strict: bool = True) -> Replayer:
    """Returns what replays histories of those workflows, by default of the project's; see `workflow_runner`."""
    return workers.replayer(workflows or OURS, strict=strict)


def recorded(path: Path) -> WorkflowHistory:
    """Returns a recorded history with the id of its workflow: the ids of children begin with it."""
    history = WorkflowHistory.from_json("", path.read_text(encoding="utf-8"))
    started = history.events[0].workflow_execution_started_event_attributes
    return WorkflowHistory(started.workflow_id, history.events)


async def refused(histories: AsyncIterator[WorkflowHistory]) -> AsyncIterator[tuple[WorkflowHistory, Exception]]:
    """Gives those histories that do not replay, and why."""
    async with replayer(strict=False).workflow_replay_iterator(histories) as results:
        async for result in results:
            if result.replay_failure is not None:
                yield result.history, result.replay_failure


def kept(history: WorkflowHistory) -> Path:
    """Writes down a history that was refused, which may never come again; returns its file."""
    file = Path(tempfile.mkdtemp(prefix="refused-")) / "history.json"
    file.write_text(history.to_json(), encoding="utf-8")
    return file
