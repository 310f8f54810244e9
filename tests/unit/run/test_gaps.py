"""What is missing from an answer, named once: not what was replaced well, and many below one run as their number."""

import pytest

from supervision.base import limits
from supervision.contract.result import Gap, Problem, SubtaskReport, SubtaskState
from supervision.run.board import gap_of, gaps_of


def report(subtask_id: str, state: SubtaskState = "completed", **fields: object) -> SubtaskReport:
    return SubtaskReport.model_validate({"id": subtask_id, "state": state, **fields})


def missing(*reports: SubtaskReport) -> list[str]:
    return [gap.subtask_id for gap in gaps_of({r.id: r for r in reports})]


@pytest.mark.parametrize("state", ["failed", "skipped", "cancelled", "running", "waiting"])
def test_every_subtask_that_did_not_complete_is_a_gap(state: SubtaskState) -> None:
    assert missing(report("t1", state), report("t2"), report("t3", state)) == ["t1", "t3"]


# --- replacements ---------------------------------------------------------------------------------


def test_what_a_completed_subtask_replaced_is_not_missing() -> None:
    assert missing(report("t1", "failed", replaced_by="t2"), report("t2")) == []


def test_a_chain_of_replacements_counts_by_its_end() -> None:
    first, second = report("t1", "failed", replaced_by="t2"), report("t2", "skipped", replaced_by="t3")
    assert missing(first, second, report("t3")) == []
    assert missing(first, second, report("t3", "failed")) == ["t1", "t2", "t3"]


# --- nested runs ----------------------------------------------------------------------------------


def nested(subtask_id: str, gaps: int) -> SubtaskReport:
    """A completed subtask whose team's answer has so many gaps."""
    made = report(subtask_id)
    made.gaps = [Gap(subtask_id=f"s{n}", reason="why", description="what") for n in range(gaps)]
    return made


def test_a_gap_below_is_named_by_its_path_and_keeps_its_words() -> None:
    assert gaps_of({"t1": nested("t1", 1)}) == [Gap(subtask_id="t1/s0", reason="why", description="what")]


def test_own_gaps_come_before_those_of_nested_runs() -> None:
    assert missing(nested("t1", 2), report("t2", "failed")) == ["t2", "t1/s0", "t1/s1"]


def test_gaps_below_a_subtask_that_failed_are_that_one_gap() -> None:
    failed = nested("t1", 3)
    failed.state = "failed"
    assert missing(failed) == ["t1"]


def test_as_many_gaps_of_nested_runs_as_the_limit_are_listed() -> None:
    both = missing(nested("t1", limits.GAPS_SHOWN - 2), nested("t2", 2))
    assert len(both) == limits.GAPS_SHOWN
    assert both[-1] == "t2/s1"


def test_beyond_the_limit_a_nested_runs_gaps_are_one_with_their_number() -> None:
    reports = [nested("t1", limits.GAPS_SHOWN - 2), nested("t2", 3)]
    last = gaps_of({r.id: r for r in reports})[-1]
    assert last.subtask_id == "t2"
    assert "3 gaps" in last.reason


def test_a_nested_run_without_gaps_is_none_however_many_others_have() -> None:
    assert missing(nested("t1", limits.GAPS_SHOWN + 1), nested("t2", 0)) == ["t1"]


# --- the words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "error", "reason"),
    [
        ("failed", Problem(type="TurnLimit", message="no finding"), "failed: TurnLimit: no finding"),
        ("cancelled", Problem(type="Cancelled", message="by its owner"), "cancelled: by its owner"),
        ("cancelled", Problem(type="DeadlineExceeded", message="late"), "cancelled: DeadlineExceeded: late"),
        ("waiting", None, "it is waiting"),
    ],
)
def test_a_gap_says_how_its_subtask_ended_and_why(state: SubtaskState, error: Problem | None, reason: str) -> None:
    assert gap_of(report("t1", state, error=error)).reason == reason


def test_a_gap_says_what_its_subtask_was_for() -> None:
    gap = gap_of(report("t1", "failed", description="Sum\n the sales"))
    assert (gap.subtask_id, gap.description) == ("t1", "Sum the sales")
