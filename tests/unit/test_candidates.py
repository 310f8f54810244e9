"""What several candidates of an attempt hand in when the run stops."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from supervision.base.errors import ErrorKind
from supervision.contract.finding import Finding
from supervision.contract.result import Problem
from supervision.contract.team import RoleCard
from supervision.run.serving_models import ServingModels
from supervision.run.slots import Slot
from tests.unit.shapes import Clock
from workflows.children.child_contracts import WorkerAgentResult
from workflows.run_context import RunContext
from workflows.subtasks.assignment import Assignment
from workflows.subtasks.attempt import _Attempt

ROLE = RoleCard(name="finder", model="m")
HALF = Finding(summary="so far", text_ref="run/outputs/half")
FOUND = WorkerAgentResult(finding=Finding(summary="found", text_ref="run/outputs/found"))
STOPPED = WorkerAgentResult(finding=HALF, stopped=True)
TOO_LATE = WorkerAgentResult(finding=HALF, problem=Problem(type=ErrorKind.TIMEOUT, message="it is over"))
NOTHING = WorkerAgentResult(stopped=True)


async def handed_in(
    monkeypatch: pytest.MonkeyPatch, outcomes: tuple[WorkerAgentResult, ...]
) -> tuple[WorkerAgentResult, Assignment]:
    """Returns the outcome of candidates that end in the very step of the event loop in which the attempt is stopped."""
    end = asyncio.get_running_loop().create_future()

    async def run_agent(_: _Attempt, candidate: int, *others: Any) -> WorkerAgentResult:
        await asyncio.shield(end)
        return outcomes[candidate - 1]

    async def at_once(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(last=False)

    monkeypatch.setattr(_Attempt, "_run_agent", run_agent)
    monkeypatch.setattr(_Attempt, "_fund", at_once)
    monkeypatch.setattr(_Attempt, "_book", lambda self, account, result: self.assignment.results.append(result))
    monkeypatch.setattr(_Attempt, "_following", lambda *_: None)
    models = ServingModels(Clock())
    state = SimpleNamespace(has_finding=False, models=models)
    context = SimpleNamespace(
        state=state, hold=at_once, free=lambda slot: None, leave=models.leave, model_answered=models.answered
    )
    assignment = Assignment(cast(RunContext, context), "t1", ROLE)
    attempt = _Attempt(assignment, 1)
    async with asyncio.TaskGroup() as group:
        stopped = group.create_task(attempt.run_candidates([Slot(ROLE) for _ in outcomes]))
        for _ in range(3):
            await asyncio.sleep(0)
        end.set_result(None)
        await asyncio.sleep(0)
        stopped.cancel()
    return stopped.result(), assignment


@pytest.mark.parametrize("outcomes", [(FOUND, STOPPED), (STOPPED, FOUND), (TOO_LATE, FOUND), (NOTHING, FOUND)])
async def test_the_finding_of_one_that_succeeded_counts(
    monkeypatch: pytest.MonkeyPatch, outcomes: tuple[WorkerAgentResult, ...]
) -> None:
    outcome, _ = await handed_in(monkeypatch, outcomes)
    assert outcome.finding == FOUND.finding


@pytest.mark.parametrize("outcomes", [(NOTHING, STOPPED), (STOPPED, NOTHING), (TOO_LATE, NOTHING)])
async def test_else_what_one_had_is_kept(
    monkeypatch: pytest.MonkeyPatch, outcomes: tuple[WorkerAgentResult, ...]
) -> None:
    outcome, assignment = await handed_in(monkeypatch, outcomes)
    assert (outcome.problem, outcome.stopped) == (None, True)
    assert assignment.so_far == HALF
