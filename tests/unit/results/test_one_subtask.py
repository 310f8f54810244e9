"""The note on a run whose plan had one subtask: how much of it was the supervisor's own work."""

from temporal_supervisor.console.view.one_subtask import one_subtask_notes
from temporal_supervisor.supervision.contract.result import RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage


def notes(calls: int, *of_subtasks: int, answer: str = "42") -> list[str]:
    reports = [SubtaskReport(id=f"t{at}", usage=Usage(model_calls=own)) for at, own in enumerate(of_subtasks)]
    return one_subtask_notes(RunResult(answer=answer, usage=Usage(model_calls=calls), subtasks=reports))


def test_a_run_of_one_subtask_says_how_many_calls_were_the_supervisors() -> None:
    (note,) = notes(5, 2)
    assert note.startswith("one subtask did all the work, and 3 of 5 model calls were the supervisor's own: ")
    assert "--strategy route" in note


def test_routes_direct_answers_plans_of_several_and_failures_have_no_such_note() -> None:
    routed, direct, several, failed = notes(3, 2), notes(1), notes(8, 2, 3), notes(5, 2, answer="")
    assert routed == direct == several == failed == one_subtask_notes(None) == []
