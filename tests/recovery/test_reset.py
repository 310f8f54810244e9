"""`temporal activity reset` of a model call: its attempts count anew, and a stored answer is still never paid twice."""

import asyncio
import subprocess

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from activities.contracts.turn_contracts import TurnInput
from activities.model.conversation import ConversationStore, Entry, Opening
from activities.model.journalled_call import CallName
from activities.model.port import ModelMessage, ModelUsage, user_message
from runtime.server.temporal_binary import find_temporal
from supervision.contract.request import RunRequest
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, ScriptedModel, Step, answer, plan, script, status
from tests.serving import WorkerProcesses, address_of, store_of
from tests.waiting import until
from workflows.supervisor import SupervisorWorkflow


async def test_a_reset_call_with_a_stored_answer_is_not_sent_again(
    lone_client: Client, lone_model: ScriptedModel, workers: WorkerProcesses, run_id: str
) -> None:
    def busy(step: Step) -> Reply:
        return status(429, "rate_limit_error", retry_after="600")

    lone_model.play(run_id, script(plan({"id": "t1"}), {"t1": busy}, answer(cites=["t1"])))
    await workers.start()
    request = RunRequest(goal="survive", team="lab", max_reviews=0)
    handle = await lone_client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    agent = f"{run_id}/t1/1"
    await until(lambda: "t1/1/turn.1" in lone_model.steps(run_id), 30)
    activity_id = await _waiting(lone_client, agent)
    await _store_answer(lone_client, workers, run_id, agent)
    address = address_of(lone_client)
    command = [str(find_temporal()), "activity", "reset", "--address", address]
    command += ["--workflow-id", agent, "--activity-id", activity_id]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    result: RunResult = await handle.result()
    assert result.subtasks[0].finding is not None
    assert result.subtasks[0].finding.summary == "12 pears"
    assert lone_model.steps(run_id).count("t1/1/turn.1") == 1


async def _waiting(client: Client, workflow_id: str) -> str:
    """Returns the id of the workflow's one activity, once its attempt has failed."""
    handle = client.get_workflow_handle(workflow_id)
    while True:
        pending = (await handle.describe()).raw_description.pending_activities
        if pending and pending[0].attempt > 1:
            return str(pending[0].activity_id)


async def _store_answer(client: Client, workers: WorkerProcesses, run_id: str, agent: str) -> None:
    """Stores the answer to a call, as the attempt would have whose process died right after."""
    run = await client.get_workflow_handle(run_id).describe()
    content = [{"type": "text", "text": "12 pears\n\nConfidence: 0.8\nLimitations: none"}]
    reply = ModelMessage(
        content=content, stop_reason="end_turn", usage=ModelUsage(input_tokens=9), model="m", message_id="msg_1"
    )
    opening = Opening(system="You look things up.", model="m")
    name = CallName.of(await _asked(client, agent), "turn.1")
    assert name.run.first_run_id == run.run_id
    store = ConversationStore(await store_of(client, workers.artifacts))
    await store.save(name.key(agent), Entry(opening=opening, input=[user_message("Go.")], reply=reply))


async def _asked(client: Client, agent: str) -> TurnInput:
    """Returns the input of a worker agent's first activity."""
    async for event in client.get_workflow_handle(agent).fetch_history_events():
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            payloads = event.activity_task_scheduled_event_attributes.input.payloads
            (asked,) = await client.data_converter.decode(payloads, [TurnInput])
            assert isinstance(asked, TurnInput)
            return asked
    raise LookupError(agent)
