"""Counts of subtasks by state."""

from supervision.contract.progress import Counts


def test_ended_are_those_in_a_final_state() -> None:
    counts = Counts(total=77_777, waiting=70_000, running=7_000, completed=1, failed=20, skipped=300, cancelled=4_000)
    assert counts.ended == 4321


def test_counts_add_up_state_by_state() -> None:
    assert Counts(total=2, completed=1, failed=1) + Counts(total=3, failed=2) == Counts(total=5, completed=1, failed=3)
