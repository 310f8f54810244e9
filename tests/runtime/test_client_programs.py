"""What a program that imports `temporal_supervisor` meets: decisions that are what they say, errors of one kind."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from temporal_supervisor import Item, RunFailed, decide, wait
from temporal_supervisor.supervision.contract.base import Undecodable
from temporal_supervisor.supervision.contract.plan import Plan, Subtask
from temporal_supervisor.supervision.contract.status import Wait

PLAN = Plan(goal="Weigh the pears", subtasks=[Subtask(id="t1", description="Weigh them", role="counter")])


@pytest.mark.parametrize("word", ["deny", "reply"])
async def test_a_plan_is_approved_by_no_other_word(word: str) -> None:
    waits = Wait(id="plan.1", kind="plan", workflow_id="w", since="2026-01-01T00:00:00Z")
    nobody: Any = None
    with pytest.raises(ValueError, match=f"'{word}' does not fit"):
        await decide(nobody, Item("w", "Weigh the pears", waits), word, "no", plan=PLAN)


async def test_a_failed_run_that_can_not_be_decrypted_is_a_failed_run() -> None:
    kept = Undecodable("it is encrypted, and this process has no keys")
    failed = WorkflowFailureError(cause=ApplicationError("Encoded failure", kept, type="UnknownTeam"))
    handle = SimpleNamespace(result=AsyncMock(side_effect=failed))
    client: Any = SimpleNamespace(get_workflow_handle=lambda *_, **__: handle)
    with pytest.raises(RunFailed, match="UnknownTeam: it is encrypted") as caught:
        await wait(client, "w")
    assert (caught.value.type, caught.value.result) == ("UnknownTeam", None)
