"""What a supervisor knows of those nested in it: sums and waits, as their reports say."""

from supervision.contract.plan import Plan, Subtask
from supervision.contract.progress import Counts, NestedRun
from supervision.contract.status import Wait
from supervision.contract.usage import Usage
from supervision.run.board import Board
from supervision.run.nested_runs import NESTED_STEPS, NestedRuns, WaitChanges, milestone
from tests.unit.shapes import Clock


def wait(name: str, why: str = "no credit") -> Wait:
    return Wait(id=name, kind="resume", workflow_id="r/t1/1", prompt_preview=why, since="")


def runs(*subtask_ids: str) -> NestedRuns:
    """Nested supervisors at work."""
    plan = Plan(subtasks=[Subtask(id=name, description="d", role="r") for name in subtask_ids])
    nested = NestedRuns(Board(plan, Clock()))
    for subtask_id in subtask_ids:
        nested.begin(subtask_id)
    return nested


def test_sums_are_over_all_levels_and_what_has_ended_is_booked_elsewhere() -> None:
    nested = runs("t1", "t2")
    for subtask_id in ("t1", "t2"):
        run = NestedRun(counts=Counts(total=3, completed=2, running=1), usage=Usage(model_calls=4))
        nested.report(subtask_id, run, WaitChanges())
    assert nested.counts == Counts(total=6, completed=4, running=2)
    assert nested.usage.model_calls == 8
    assert nested.has_finding
    last = NestedRun(phase="done", counts=Counts(total=3, completed=3), usage=Usage(model_calls=5))
    nested.end("t1", last)
    assert nested.usage.model_calls == 4
    assert nested.counts.completed == 5
    assert nested._board["t1"].nested == last


def test_without_a_finding_below_there_is_none() -> None:
    nested = runs("t1")
    nested.report("t1", NestedRun(counts=Counts(total=2, running=2)), WaitChanges())
    assert not nested.has_finding
    nested.end("t1")
    left = nested._board["t1"].nested
    assert left is not None
    assert (left.phase, left.status, left.counts.total) == ("failed", "partial", 2)


def test_waits_change_by_what_has_begun_and_ended() -> None:
    nested = runs("t1")

    def report(**changes: object) -> list[Wait]:
        nested.report("t1", NestedRun(), WaitChanges.model_validate(changes))
        return nested.waits()

    def below(*waits: Wait) -> list[Wait]:
        return [one.below("t1") for one in waits]

    assert report(begun=[wait("a"), wait("b")]) == below(wait("a"), wait("b"))
    assert report(begun=[wait("b", "still no credit")], ended=["a", "unknown"]) == below(wait("b", "still no credit"))
    nested.end("t1")
    assert nested.waits() == []


def test_milestones_are_as_many_for_a_large_run_as_for_a_small_one() -> None:
    for total in (20, 400, 1000):
        seen = {milestone("executing", Counts(total=total, completed=done, running=1)) for done in range(total + 1)}
        assert NESTED_STEPS <= len(seen) <= NESTED_STEPS + 2


def test_that_work_begins_or_rests_is_a_milestone_and_how_much_of_it_is_not() -> None:
    resting, one, many = (milestone("executing", Counts(total=400, running=n)) for n in (0, 1, 8))
    assert resting != one
    assert one == many
