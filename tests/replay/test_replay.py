"""Today's workflow code replays every history that was ever recorded."""

import json
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from tests.replay.changed import Changed
from tests.replay.numbers import ADVICE, NUMBERS, changes
from tests.replay.record import HISTORIES, lean
from tests.replay.replaying import OURS, recorded, replayer
from tests.replay.scenarios import play, scenarios
from tests.scripted_model import ScriptedModel
from workflows.worker_agent import WorkerAgentWorkflow

ROOT = Path(__file__).parents[2]
RECORDED = sorted(HISTORIES.rglob("*.*.json"))
# what the workflow tests, whose runs are replayed at their end, do not play, or not on the server that they share
FRESH = (*("continued_as_new", "file_tool", "model_chain", "read_again", "unsupported_figure"),)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_a_recorded_history_replays(path: Path) -> None:
    await replayer().replay_workflow(recorded(path))


def unlabelled(history: WorkflowHistory) -> list[str]:
    """The timers, activities and children that the Web UI would show without words of ours."""
    begun = {
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
    }
    started = history.events[0].workflow_execution_started_event_attributes
    if started.workflow_type.name == "SupervisorWorkflow":  # a worker agent's is that of `asyncio.timeout`
        begun.add(EventType.EVENT_TYPE_TIMER_STARTED)
    bare = [event for event in history.events if event.event_type in begun and not event.user_metadata.summary.data]
    return [f"{history.workflow_id}: event {event.event_id}, {EventType.Name(event.event_type)}" for event in bare]


def test_every_scenario_is_recorded() -> None:
    assert {path.stem.split(".")[0] for path in RECORDED} == set(scenarios())


async def test_what_is_recorded_of_a_history_is_all_that_its_replay_reads(tmp_path: Path) -> None:
    path, written = next(path for path in RECORDED if path.name == "diamond_with_tools.0.json"), tmp_path / "lean.json"
    written.write_text(lean(recorded(path)), encoding="utf-8")
    await replayer().replay_workflow(recorded(written))
    with pytest.raises(workflow.NondeterminismError):
        await replayer(Changed, WorkerAgentWorkflow).replay_workflow(recorded(written))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("name", FRESH)
async def test_a_fresh_history_replays(client: Client, model: ScriptedModel, run_id: str, name: str) -> None:
    histories = await play(client, model, name, run_id)
    for history in histories:
        await replayer(*OURS).replay_workflow(history)
    assert [event for history in histories for event in unlabelled(history)] == []


def test_no_number_that_workflow_code_reads_has_changed_since_the_last_release() -> None:
    release = max(HISTORIES.iterdir(), key=lambda folder: [int(part) for part in folder.name.split(".")])
    changed = changes(json.loads((release / NUMBERS).read_text(encoding="utf-8")))
    assert not changed, ADVICE.format(release=release.name, changes="\n".join(changed))


def test_there_are_no_local_activities() -> None:
    """See docs/decisions/0004: together with queries they make histories that do not replay."""
    sources = [path for folder in ("workflows", "activities") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in sources if "local_activity" in path.read_text()] == []
    markers = [path.name for path in RECORDED if "markerRecordedEventAttributes" in path.read_text()]
    assert markers == []
