"""Today's workflow code replays every history that was ever recorded."""

from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from runtime.payloads import data_converter
from runtime.workers import workflow_runner
from tests.replay.changed import Changed
from tests.replay.scenarios import play, scenarios
from tests.scripted_model import ScriptedModel
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

HISTORIES = sorted((Path(__file__).parent / "histories").rglob("*.json"))


def replayer(*workflows: type) -> Replayer:
    return Replayer(workflows=list(workflows), data_converter=data_converter, workflow_runner=workflow_runner())


def recorded(path: Path) -> WorkflowHistory:
    """With the id of the run that it was recorded from: children's ids begin with it."""
    return WorkflowHistory.from_json(f"recorded-{path.stem.split('.')[0]}", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", HISTORIES, ids=lambda p: f"{p.parent.name}/{p.stem}")
async def test_a_recorded_history_replays(path: Path) -> None:
    await replayer(SupervisorWorkflow, WorkerAgentWorkflow).replay_workflow(recorded(path))


def test_every_scenario_is_recorded() -> None:
    assert {path.stem.split(".")[0] for path in HISTORIES} == set(scenarios())


async def test_a_changed_workflow_does_not_replay() -> None:
    path = next(path for path in HISTORIES if path.name == "diamond_with_tools.0.json")
    with pytest.raises(workflow.NondeterminismError):
        await replayer(Changed, WorkerAgentWorkflow).replay_workflow(recorded(path))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("name", list(scenarios()))
async def test_a_fresh_history_replays(client: Client, model: ScriptedModel, run_id: str, name: str) -> None:
    for workflow_id in await play(client, model, name, run_id):
        history = await client.get_workflow_handle(workflow_id).fetch_history()
        await replayer(SupervisorWorkflow, WorkerAgentWorkflow).replay_workflow(history)
