"""What several candidates of an attempt hand in when the run stops."""

import asyncio
from typing import cast

import pytest

from supervision.contract.finding import Finding
from supervision.contract.result import Problem
from supervision.contract.team import RoleCard
from supervision.errors import ErrorKind
from supervision.run.slots import Slot
from workflows.child_contracts import WorkerAgentResult
from workflows.run_context import RunContext
from workflows.subtasks import attempt
from workflows.subtasks.assignment import Assignment
from workflows.subtasks.child_runs import AttemptOutcome

ROLE = RoleCard(name="finder", model="m")
FOUND = AttemptOutcome(WorkerAgentResult(finding=Finding(summary="found", text_ref="run/outputs/found")))
STOPPED = AttemptOutcome(WorkerAgentResult(finding=Finding(summary="so far", text_ref="run/outputs/so"), stopped=True))
TOO_LATE = AttemptOutcome(
    WorkerAgentResult(finding=STOPPED.result.finding), Problem(type=ErrorKind.TIMEOUT, message="its time is over")
)
NOTHING = AttemptOutcome(WorkerAgentResult(stopped=True))


async def handed_in(monkeypatch: pytest.MonkeyPatch, *outcomes: AttemptOutcome) -> tuple[AttemptOutcome, Assignment]:
    """Returns the outcome of candidates that end in the very step of the event loop in which the attempt is stopped."""
    end = asyncio.get_running_loop().create_future()

    async def ends(_: object, number: int, slot: Slot) -> AttemptOutcome:
        await asyncio.shield(end)
        return outcomes[number - 1]

    monkeypatch.setattr(attempt._Attempt, "run_candidate", ends)
    assignment = Assignment(ROLE)
    candidates = attempt._Attempt(cast(RunContext, None), "t1", assignment, 1)
    running = asyncio.create_task(candidates.run_candidates([Slot(ROLE) for _ in outcomes]))
    for _ in range(3):
        await asyncio.sleep(0)
    end.set_result(None)
    await asyncio.sleep(0)
    running.cancel()
    return await running, assignment


@pytest.mark.parametrize("outcomes", [(FOUND, STOPPED), (STOPPED, FOUND), (TOO_LATE, FOUND), (NOTHING, FOUND)])
async def test_the_finding_of_one_that_succeeded_counts(
    monkeypatch: pytest.MonkeyPatch, outcomes: tuple[AttemptOutcome, ...]
) -> None:
    outcome, _ = await handed_in(monkeypatch, *outcomes)
    assert outcome == FOUND


@pytest.mark.parametrize("outcomes", [(NOTHING, STOPPED), (STOPPED, NOTHING), (TOO_LATE, NOTHING)])
async def test_else_what_one_had_is_kept(
    monkeypatch: pytest.MonkeyPatch, outcomes: tuple[AttemptOutcome, ...]
) -> None:
    outcome, assignment = await handed_in(monkeypatch, *outcomes)
    assert outcome == NOTHING
    assert assignment.in_hand.partial == STOPPED.result.finding
