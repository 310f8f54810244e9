"""Runs under an operator's ceilings: lowered, refused, and not raised later."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError

from runtime.settings import Settings
from tests.scripted_model import plan, script, text, when
from tests.serving import own_server
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab
from worker_main import serving


async def test_no_request_and_no_update_passes_the_operators_ceilings(lab: Lab, settings: Settings) -> None:
    low = settings.model_copy(update={"max_budget_tokens": 400_000, "max_budget_usd": 2.0, "max_parallel": 1})
    hold = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: when(hold, text("pears"))}))
    async with own_server() as client, serving(client, low):
        handle = await lab.on(client).start()
        await until(lab.sent("t1/1/turn.1"))
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
