"""Runs under an operator's ceilings: lowered, refused, and not raised later."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError

from runtime.settings import Settings
from tests.scripted_model import ScriptedModel, plan, script, text, when
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from worker_main import serving


async def test_no_request_and_no_update_passes_the_operators_ceilings(
    model: ScriptedModel, settings: Settings, run_id: str
) -> None:
    low = settings.model_copy(update={"max_budget_tokens": 400_000, "max_budget_usd": 2.0, "max_parallel": 1})
    hold = asyncio.Event()
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: when(hold, text("pears"))}))
    async with own_server() as client, serving(client, low):
        handle = await runs.start(client, run_id, "lab")
        await until(lambda: "t1/1/turn.1" in model.steps(run_id))
        status = await runs.status_of(handle)
        assert status.limits.model_dump(include={"budget_tokens", "budget_usd", "max_parallel"}) == {
            "budget_tokens": 400_000,
            "budget_usd": 2.0,
            "max_parallel": 1,
        }
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("extend_limits", {"budget": {"tokens": 400_001}})
        assert "SUPERVISOR_MAX_BUDGET_TOKENS" in str(refused.value.cause)
        hold.set()
        result = await handle.result()
        assert result.status == "completed"
        assert len([warning for warning in result.warnings if "operator's ceiling" in warning]) == 3

        greedy = await runs.start(client, f"{run_id}-greedy", "lab", budget={"tokens": 400_001})
        error = await runs.failure(greedy)
        assert error.type == "InvalidRequest"
        assert "SUPERVISOR_MAX_BUDGET_TOKENS" in error.message
