"""Rules of the workflows that need no server: candidates, nested results, timers."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import workflow

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.contract.progress import Phase
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.results.answer import Answer
from temporal_supervisor.supervision.run.run_state import RunState
from temporal_supervisor.supervision.run.status_and_result import result_of
from tests.unit.shapes import START, Clock
from workflows.children.child_contracts import WorkerAgentResult
from workflows.children.links import nested_result
from workflows.subtasks import dispatch

ANSWER = Answer(text="The pears weigh 3 kg.", ref="run/outputs/answer")
FINDINGS = Answer(text="t1 found 3 kg.", ref="run/outputs/answer", is_findings=True)


def handed_up(phase: Phase, answer: Answer) -> WorkerAgentResult:
    state = RunState(RunRequest(goal="g"), Clock(), START)
    state.answer.replace(answer)
    state.phase, state.finished_at = phase, START + timedelta(seconds=1)
    state.warn("w" * 1_000)
    return WorkerAgentResult.model_validate(nested_result(state, result_of(state), result_of(state), "").model_dump())


def test_an_answer_is_a_finding_with_the_warnings_as_its_limitations() -> None:
    finding = handed_up("done", ANSWER).finding
    assert finding is not None
    assert (finding.summary, finding.text_ref, finding.outcome) == (ANSWER.text, ANSWER.ref, "done")
    assert finding.text_bytes == size(ANSWER.text)
    (limitation,) = finding.limitations
    assert size(limitation) <= limits.SENTENCE_BYTES


@pytest.mark.parametrize("phase", ["done", "cancelled"])
def test_findings_in_place_of_an_answer_are_a_part_of_one(phase: Phase) -> None:
    result = handed_up(phase, FINDINGS)
    assert result.finding is not None
    assert (result.finding.outcome, result.stopped) == ("partial", phase == "cancelled")


@pytest.mark.parametrize(
    ("phase", "answer"), [("failed", ANSWER), ("failed", FINDINGS), ("done", Answer(text="no store"))]
)
def test_the_words_for_a_failure_and_an_answer_that_was_not_stored_are_no_finding(phase: Phase, answer: Answer) -> None:
    assert handed_up(phase, answer).finding is None


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths of the timers, each over at once, under a clock that stands still."""
    lengths: list[float] = []

    async def sleep(seconds: float, summary: str) -> None:
        lengths.append(seconds)

    monkeypatch.setattr(workflow, "now", lambda: NOW)
    monkeypatch.setattr(workflow, "sleep", sleep)
    return lengths


async def test_a_timer_that_is_over_before_its_time_is_set_again(sleeps: list[float]) -> None:
    alarm, when = dispatch._Alarm(), NOW + timedelta(seconds=30)
    first = alarm.task_at(when, "breaker probe")
    assert alarm.task_at(when, "breaker probe") is first
    await first
    second = alarm.task_at(when, "breaker probe")
    assert not second.done()
    await second
    assert sleeps == [30, 30]


async def test_a_time_that_has_come_is_no_wait_without_an_end(sleeps: list[float]) -> None:
    alarm = dispatch._Alarm()
    for _ in range(2):
        await asyncio.wait([alarm.task_at(NOW, "breaker probe")])
    assert sleeps == [1, 1]
