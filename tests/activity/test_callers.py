"""Whom the guard knows without a question, and whom it asks the server for."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from activities.rights.callers import Caller, Callers

NOBODY: Any = None  # a question to this client fails the test


def began(run_id: str, parent: str | None = None) -> Any:
    """A workflow as it sees itself."""
    return SimpleNamespace(
        workflow_id=f"of {run_id}",
        run_id=run_id,
        first_execution_run_id=f"first of {run_id}",
        workflow_type="WorkerAgentWorkflow",
        parent=SimpleNamespace(run_id=parent) if parent else None,
    )


def calls(run_id: str) -> Any:
    """An activity of that workflow."""
    return SimpleNamespace(workflow_id=f"of {run_id}", workflow_run_id=run_id)


async def test_who_began_in_this_process_is_known() -> None:
    callers = Callers(NOBODY)
    callers.notice(began("root"))
    callers.notice(began("child", "root"))
    assert await callers.of(calls("root")) == Caller("of root", "first of root", "WorkerAgentWorkflow", None)
    child = Caller("of child", "first of child", "WorkerAgentWorkflow", "first of root")
    assert await callers.of(calls("child")) == child


@pytest.mark.parametrize("noticed", [[], [began("child", "elsewhere")]], ids=["nobody", "a child alone"])
async def test_others_are_looked_up(noticed: list[Any]) -> None:
    class Asked(Exception):
        pass

    class Service:
        async def describe_workflow_execution(self, request: Any, timeout: Any) -> None:
            raise Asked(request.execution.run_id)

    callers = Callers(cast("Any", SimpleNamespace(namespace="default", workflow_service=Service())))
    for info in noticed:
        callers.notice(info)
    with pytest.raises(Asked, match="child"):
        await callers.of(calls("child"))
