"""What passes between supervisors while they work: findings, waits, limits and budget on every level of a tree."""

import asyncio
from datetime import datetime, timedelta

import pytest
from temporalio.client import WorkflowUpdateFailedError

from supervision.contract.finding import Finding
from supervision.contract.updates import ExtendLimits, NewBudget
from tests.scripted_model import status, text, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Lab
from tests.workflow.scripts import item, subtasks
from tests.workflow.subtasks.trees import DEEP, PLANS, leaves, nested_handle, nested_status, tree
from workflows.supervisor import SupervisorWorkflow

USUAL = {"team": "house", "max_depth": 3}


def partial_finding(finding: Finding | None) -> Finding:
    """Returns a finding that there is, and that says it is partial."""
    assert finding is not None
    assert finding.outcome == "partial"
    assert finding.text_ref
    return finding


# --- findings are not lost upward -----------------------------------------------------------------------


async def test_the_findings_of_a_nested_run_without_an_answer_go_upward(lab: Lab) -> None:
    refused = status(400, "invalid_request_error", "no such thing")
    lab.play(tree(PLANS, **{"t1/1/f1/1/synthesis.1": refused, "t1/1/synthesis.1": refused}))
    result = await lab.run()
    assert (result.status, result.answer.partition("\n")[0]) == ("partial", "answer of the root")
    finding = partial_finding(result.subtasks[0].finding)
    assert "finding of t1/1/f2/1" in finding.summary
    assert any("no answer could be written" in limitation for limitation in finding.limitations)
    shown = lab.prompt("synthesis.1")
    assert "finding of t1/1/f1/1/l1/1" in shown
    assert "finding of t1/1/f2/1" in shown
    assert result.subtasks[0].attempts == 1


# --- waits ----------------------------------------------------------------------------------------------


async def test_a_cancel_after_a_reset_brings_what_nested_runs_had_found(lab: Lab) -> None:
    lab.play(tree(PLANS, **{"l1/1/turn.1": when(asyncio.Event(), text(""))}))
    base = await lab.start()

    async def others_done() -> bool:
        states = await leaves(lab.client, lab.run_id)
        return states.get("t1/f1/l2") == states.get("t1/f2") == states.get("t2") == "completed"

    await until(others_done)
    hung = "t1/1/f1/1/l1/1/turn.1"
    handle = await reset(lab.client, base, (await workflow_tasks(base))[0])
    await until(lambda: lab.steps.count(hung) == 2)
    await until(others_done)
    await handle.cancel()
    await until(lambda: runs.closed(handle))
    result = await handle.query(SupervisorWorkflow.result)
    assert "finding of t1/1/f2/1" in partial_finding(result.subtasks[0].finding).summary
    assert {step for step in lab.steps if lab.steps.count(step) > 1} == {hung}
    assert result.usage.model_calls == len(lab.calls) - 2  # without the call that hung, twice


# --- limits ---------------------------------------------------------------------------------------------


async def test_limits_that_a_person_changes_at_the_root_reach_every_level(lab: Lab) -> None:
    hold = asyncio.Event()
    lab.play(tree(PLANS, **{"l1/1/turn.1": when(hold, text("pears"))}))
    handle = await lab.start(deadline="PT40S")
    await until(lab.sent("t1/1/f1/1/l1/1/turn.1"))
    before = (await nested_status(lab.client, f"{lab.run_id}/t1/1")).limits.budget_tokens
    for where in DEEP:  # they are given at the root only
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await nested_handle(lab.client, f"{lab.run_id}/{where}").execute_update(
                SupervisorWorkflow.extend_limits, ExtendLimits(budget=NewBudget(tokens=50_000_000))
            )
        assert f"those of '{lab.run_id}'" in str(refused.value.cause)
    assert (await nested_status(lab.client, f"{lab.run_id}/t1/1")).limits.budget_tokens == before
    reply = await handle.execute_update(
        SupervisorWorkflow.extend_limits, ExtendLimits(deadline=timedelta(hours=2), budget=NewBudget(tokens=2_000_000))
    )
    assert reply.accepted

    async def extended() -> bool:
        ends = [
            datetime.fromisoformat((await nested_status(lab.client, f"{lab.run_id}/{where}")).deadline_at)
            for where in DEEP
        ]
        began = (await handle.describe()).start_time
        return all(timedelta(hours=1) < end - began < timedelta(hours=2) for end in ends) and ends[0] > ends[1]

    await until(extended)
    hold.set()
    assert (await handle.result()).status == "completed"


async def test_a_nested_run_without_room_for_a_plan_gets_more_from_the_root(lab: Lab) -> None:
    """The first slice of level three is a tenth of a tenth: too little for its plan beside what is held back."""
    plans = {
        "": subtasks(item("t1", "storey"), *[item(f"t{n}") for n in range(2, 9)]),
        "t1/1": subtasks(item("f1", "bench"), *[item(f"f{n}", "walker") for n in range(2, 9)]),
        "t1/1/f1/1": PLANS["t1/1/f1/1"],
    }
    lab.play(tree(plans))
    result = await lab.run(budget={"tokens": 300_000})
    assert (result.status, result.gaps) == ("completed", [])
    deepest = (await nested_status(lab.client, f"{lab.run_id}/t1/1/f1/1")).limits.budget_tokens or 0
    assert deepest > 9_000


# --- size -----------------------------------------------------------------------------------------------
