"""The parts of `Run` that need no server: files, endings, and decisions that can't be."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from temporal_supervisor import Run
from temporal_supervisor.console.run.run_outcome import exit_code
from temporal_supervisor.outcomes import WAS_CANCELLED, Ending, RunOutcome, failed_outcome
from temporal_supervisor.starting import check_plan
from temporal_supervisor.supervision.contract import RunRequest, RunResult, Wait

NOBODY: Any = None


class Shelf:
    """A store with one object."""

    async def get(self, key: str) -> bytes:
        return {"a/b": b"pears"}[key]


async def test_files_are_read_from_the_store_that_it_was_given() -> None:
    assert await Run(NOBODY, "r", Shelf()).read_file("a/b") == b"pears"
    with pytest.raises(ValueError, match="without a store"):
        await Run(NOBODY, "r").read_file("a/b")


async def test_a_word_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    waits = Wait(id="t1/1:1.0", kind="question", workflow_id="r", since="2026-01-01T00:00:00Z")
    with pytest.raises(ValueError, match="'approve' does not fit, reply does"):
        await Run(NOBODY, "r").decide(waits, "approve")
    with pytest.raises(ValueError, match="'approve' does not fit"):
        await Run(NOBODY, "r").decide_all([waits], "approve")


CANNOT_RUN = [
    ([{"id": "t1", "depends_on": ["t2"]}, {"id": "t2", "depends_on": ["t1"]}], {}, "in a circle"),
    ([{"id": "t1", "depends_on": ["t9"]}], {}, "depends on 't9', which is not in the plan"),
    ([{"id": "t1"}, {"id": "t2"}], {"max_subtasks": 1}, "has 2 subtasks, at most 1"),
]


@pytest.mark.parametrize(("subtasks", "bounds", "problem"), CANNOT_RUN)
async def test_a_plan_that_cannot_run_is_refused_before_anything_is_started(
    subtasks: list[dict[str, Any]],
    bounds: dict[str, Any],
    problem: str,
) -> None:
    words = {"description": "Weigh the pears of 1990", "role": "anyone"}
    plan = {"subtasks": [{**words, **subtask} for subtask in subtasks]}
    with pytest.raises(ValueError, match=f"the plan cannot run: .*{problem}"):
        await Run.start(NOBODY, {"goal": "Pears", "plan": plan, **bounds})


def test_what_only_the_run_knows_is_no_reason_to_refuse_a_plan() -> None:
    subtasks: list[dict[str, Any]] = [
        {"id": "t1", "for_each": "rows:sales"},
        {"id": "t2", "depends_on": ["t1", "r1/t2"], "attachments": ["notes.md"]},
        {"id": "t3", "taken_from": "r1/t3"},
    ]
    words = {"description": "Weigh the pears of 1990", "role": "anyone"}
    plan = {"subtasks": [{**words, **subtask} for subtask in subtasks]}
    check_plan(RunRequest.model_validate({"goal": "Pears", "plan": plan, "max_subtasks": 2}))


def test_a_failed_run_keeps_what_was_done() -> None:
    done = RunResult(status="partial", answer="Four.").model_dump(mode="json")
    outcome = failed_outcome(ApplicationError("too late", done, type="DeadlineExceeded"))
    assert (str(outcome.error), outcome.sentence) == (
        "DeadlineExceeded: too late",
        "failed: DeadlineExceeded: too late",
    )
    assert outcome.result is not None
    assert outcome.result.answer == "Four."


def test_each_end_has_its_exit_code() -> None:
    ends = {
        "completed": RunOutcome("completed", RunResult(status="partial")),
        "cancelled": RunOutcome("cancelled", None, WAS_CANCELLED),
        "terminated": RunOutcome("terminated", None, Ending("Terminated", "by ann")),
        "running": RunOutcome("running", RunResult(status="running")),
    }
    assert {state: exit_code(end) for state, end in ends.items()} == {
        "completed": 0,
        "cancelled": 4,
        "terminated": 1,
        "running": 0,
    }
