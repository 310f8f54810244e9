"""Who waits for budget holds no slot: those that have budget may need it, to end and give back what they do not use."""

import functools
import json

import pytest
from temporalio.client import Client

from supervision.base import limits
from tests.scripted_model import ScriptedModel
from tests.waiting import until
from tests.workflow.runs import is_in, start
from tests.workflow.subtasks.trees import STOREY_BESIDE_STOREY, STOREY_BESIDE_T2, ScarceBudget

pytestmark = pytest.mark.usefixtures("worker")


async def test_a_worker_agent_leaves_the_slot_to_a_nested_run_that_has_budget(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    """One slot in all: t1 has all that is left and waits for its account; t2 waits for budget meanwhile."""
    scarce = ScarceBudget(STOREY_BESIDE_T2)
    model.play(run_id, scarce.reply)
    handle = await start(client, run_id, "house", max_parallel=1)
    await scarce.make_scarce(handle, model, 0)
    await until(functools.partial(is_in, handle, "running", "t2"))
    await scarce.pay(handle)
    result = await handle.result()
    assert (result.status, result.gaps) == ("completed", [])


async def test_a_nested_run_leaves_its_slot_to_one_that_has_budget(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    """One slot in all: t1 waits for its account, t2 has too little for its plan and asks the root for more."""
    scarce = ScarceBudget(STOREY_BESIDE_STOREY)
    model.play(run_id, scarce.reply)
    handle = await start(client, run_id, "house", max_parallel=1)
    await scarce.make_scarce(handle, model, limits.LEAST_GRANT_TOKENS)
    await until(functools.partial(has_asked_for_budget, client, run_id, "t2/1"))
    await scarce.pay(handle)
    result = await handle.result()
    assert (result.status, result.gaps) == ("completed", [])


async def has_asked_for_budget(client: Client, run_id: str, nested: str) -> bool:
    """True if a nested run has asked its root for budget."""
    events = (await client.get_workflow_handle(run_id).fetch_history()).events
    signals = [event.workflow_execution_signaled_event_attributes for event in events]
    return any(
        signal.external_workflow_execution.workflow_id == f"{run_id}/{nested}"
        and json.loads(signal.input.payloads[0].data)["asked"]
        for signal in signals
        if signal.signal_name == "nested_report"
    )
