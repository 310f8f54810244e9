"""Who waits for budget holds no slot: those that have budget may need it, to end and give back what they do not use."""

import functools
import json

from supervision.base import limits
from tests.waiting import until
from tests.workflow.runs import Lab, is_in
from tests.workflow.subtasks.trees import STOREY_BESIDE_STOREY, STOREY_BESIDE_T2, ScarceBudget

USUAL = {"team": "house"}


async def test_a_worker_agent_leaves_the_slot_to_a_nested_run_that_has_budget(lab: Lab) -> None:
    """One slot in all: t1 has all that is left and waits for its account; t2 waits for budget meanwhile."""
    scarce = ScarceBudget(STOREY_BESIDE_T2)
    lab.play(scarce.reply)
    handle = await lab.start(max_parallel=1)
    await scarce.make_scarce(handle, lab.model, 0)
    await until(functools.partial(is_in, handle, "running", "t2"))
    await scarce.pay(handle)
    result = await handle.result()
    assert (result.status, result.gaps) == ("completed", [])


async def test_a_nested_run_leaves_its_slot_to_one_that_has_budget(lab: Lab) -> None:
    """One slot in all: t1 waits for its account, t2 has too little for its plan and asks the root for more."""
    scarce = ScarceBudget(STOREY_BESIDE_STOREY)
    lab.play(scarce.reply)
    handle = await lab.start(max_parallel=1)
    await scarce.make_scarce(handle, lab.model, limits.LEAST_GRANT_TOKENS)
    await until(functools.partial(has_asked_for_budget, lab, "t2/1"))
    await scarce.pay(handle)
    result = await handle.result()
    assert (result.status, result.gaps) == ("completed", [])


async def has_asked_for_budget(lab: Lab, nested: str) -> bool:
    """True if a nested run has asked its root for budget."""
    events = (await lab.client.get_workflow_handle(lab.run_id).fetch_history()).events
    signals = [event.workflow_execution_signaled_event_attributes for event in events]
    return any(
        signal.external_workflow_execution.workflow_id == f"{lab.run_id}/{nested}"
        and json.loads(signal.input.payloads[0].data)["asked"]
        for signal in signals
        if signal.signal_name == "nested_report"
    )
