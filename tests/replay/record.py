"""Records the histories of a release: `python -m tests.replay.record 0.2.0`. Recorded ones are never changed.

With a folder as second argument they are written there instead, to look at or to replay.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.replay.numbers import record_numbers
from tests.replay.scenarios import SMALL_HISTORIES, play, scenarios
from tests.scripted_model import scripted_model
from tests.serving import own_server, settings_for
from worker_main import serving

HISTORIES = Path(__file__).parent / "histories"


# what a replay does not read: what commands carried, how runs and updates ended, words for people, ids of the server
_UNREAD = {
    "activityTaskScheduledEventAttributes": "input",
    "signalExternalWorkflowExecutionInitiatedEventAttributes": "input",
    "startChildWorkflowExecutionInitiatedEventAttributes": "input",
    "workflowExecutionCompletedEventAttributes": "result",
    "workflowExecutionContinuedAsNewEventAttributes": "input",
    "workflowExecutionUpdateCompletedEventAttributes": "outcome",
}
_UNREAD_ANYWHERE = ("identity", "requestId", "stackTrace", "taskId", "userMetadata", "workerVersion")
_NAMED = ("activityType", "workflowType", "signalName")


async def record(release: str, histories: Path = HISTORIES) -> None:
    """Plays every scenario on a fresh server and writes down what happened, and the numbers that were read.

    Of executions that went the same way one is written, besides each scenario's own run.
    """
    folder = histories / release
    folder.mkdir(parents=True)
    ways: set[tuple[tuple[str, ...], ...]] = set()
    async with (
        own_server(SMALL_HISTORIES) as client,
        scripted_model() as model,
        serving(client, settings_for(model.url, tempfile.mkdtemp())),
    ):
        for name in scenarios():
            for index, history in enumerate(await play(client, model, name, f"recorded-{name}")):
                if index == 0 or way(history) not in ways:
                    (folder / f"{name}.{index}.json").write_text(lean(history), encoding="utf-8")
                ways.add(way(history))
    record_numbers(folder)


def way(history: WorkflowHistory) -> tuple[tuple[str, ...], ...]:
    """Returns the way an execution went: its events, with the names of workflow, activities, children and signals."""
    return tuple((event["eventType"], *_names(event)) for event in history.to_json_dict()["events"])


def lean(history: WorkflowHistory) -> str:
    """Returns a history as JSON, an event a line, without what a replay does not read."""
    events = (json.dumps(_lean(event)) for event in history.to_json_dict()["events"])
    return '{"events": [\n' + ",\n".join(events) + "\n]}\n"


def _names(event: JsonObject) -> list[str]:
    attributes = [value for key, value in event.items() if key.endswith("EventAttributes")]
    return [str(part[name]) for part in attributes for name in _NAMED if name in part]


def _lean(value: Any, unread: str = "") -> Any:
    if isinstance(value, list):
        return [_lean(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if key != unread and key not in _UNREAD_ANYWHERE}
    return {key: _lean(item, _UNREAD.get(key, "")) for key, item in kept.items()}


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1], *map(Path, sys.argv[2:])))
