"""The parts of `Run` that need no server: files, endings, and decisions that can't be."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from temporal_supervisor import Run
from temporal_supervisor.console.run.run_outcome import exit_code
from temporal_supervisor.outcomes import WAS_CANCELLED, Ending, RunOutcome, failed_outcome
from temporal_supervisor.supervision.contract import RunResult, Wait

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


def test_a_failed_run_keeps_what_was_done() -> None:
    done = RunResult(status="partial", answer="Four.").model_dump(mode="json")
    outcome = failed_outcome(ApplicationError("too late", done, type="DeadlineExceeded"))
    assert (str(outcome.error), outcome.said) == (
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
