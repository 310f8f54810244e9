"""What becomes of a subtask whose attempt failed: better described, tried again, given to the fallback role."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from supervision.base import limits
from tests.scripted_model import Reply, Script, as_json, plan, script, stop, tools, when
from tests.waiting import until
from tests.workflow.runs import Lab, details, events, partial_result, status_of
from tests.workflow.scripts import FOUND, GIVES_UP

USUAL = {"team": "relay"}


REFUSAL = stop("refusal", details={"category": "cyber"})
JUNIOR = plan({"id": "t1", "role": "junior"}, {"id": "t2", "role": "scribe"})


def attempts(*replies: Reply) -> Any:
    """The replies to a subtask's attempts of one turn, the last one again and again."""
    return lambda step: replies[min(step.attempt, len(replies)) - 1]


def with_refine(played: Script, refine: Reply) -> Script:
    """The same script, but descriptions are rewritten like that."""
    return lambda step: refine if step.kind == "refine" else played(step)


async def test_a_failed_attempt_is_repeated_with_a_description_rewritten_from_its_error(lab: Lab) -> None:
    hold = asyncio.Event()
    turns = {"t1": attempts(GIVES_UP, when(hold, FOUND))}
    lab.play(script(plan({"id": "t1", "role": "lone", "description": "Count the swans"}), turns))
    handle = await lab.start(max_turns=1)
    await until(lab.sent("t1/2/turn.1"))
    shown = (await status_of(handle)).subtasks[0]
    assert (shown.state, shown.attempts, shown.workflow_id) == ("running", 2, f"{lab.run_id}/t1/2")
    assert "| t1 | lone | ▶ running (attempt 2) |" in await details(handle)
    hold.set()
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts, result.subtasks[0].turns) == ("completed", 2, 3)
    first = ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2"]  # a last turn without a word is insisted on
    assert lab.steps == [*first, "refine.t1.2", "t1/2/turn.1", "synthesis.1"]
    assert "TurnLimit" in lab.prompt("refine.t1.2")
    assert "Count the swans" in lab.prompt("refine.t1.2")
    assert "Find it out in another way (attempt 2)" in lab.prompt("t1/2/turn.1")
    assert "Count the swans" not in lab.prompt("t1/2/turn.1")
    assert "t1 after a failure" in await lab.labels("activity")
    assert [e for e in await events(handle) if e.startswith("subtask")] == [
        "subtask_started",
        "subtask_retried",
        "subtask_started",
        "subtask_completed",
    ]
    assert result.usage.model_calls == 6


@pytest.mark.parametrize("refine", [as_json({"description": ""}), REFUSAL])
async def test_a_refused_subtask_without_other_words_fails_at_once(lab: Lab, refine: Reply) -> None:
    lab.play(with_refine(script(JUNIOR, {"t1": attempts(REFUSAL)}), refine))
    result = await lab.run()
    first = result.subtasks[0]
    assert (first.state, first.attempts, first.role) == ("failed", 1, "junior")
    assert first.error is not None
    assert first.error.type == "Refused"


IMPOSSIBLE = tools(("finish", {"outcome": "impossible", "summary": "the pond has no swans", "finding": ""}))


async def test_an_impossible_subtask_is_rewritten_once_then_the_fallback_has_it_then_it_is_a_gap(lab: Lab) -> None:
    turns = {"t1": lambda step: tools(("look", {"where": "pond"})) if step.number == 1 else IMPOSSIBLE}
    lab.play(script(JUNIOR, turns))
    handle = await lab.start()
    result = await handle.result()
    first = result.subtasks[0]
    assert (first.state, first.attempts, first.role) == ("failed", 3, "senior")
    assert [step for step in lab.steps if "refine" in step] == ["refine.t1.2"]
    asked = lab.prompt("refine.t1.2")
    assert "CannotDo: the pond has no swans" in asked
    assert 'look({"where": "pond"}): error: ' in asked
    assert "Its last words: the pond has no swans" in asked
    assert (result.status, [gap.subtask_id for gap in result.gaps]) == ("partial", ["t1"])
    assert "the pond has no swans" in result.gaps[0].reason
    assert (await status_of(handle)).breakers == []


async def test_a_run_stands_still_for_a_failing_role_only_so_long(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROLE_REST_TOTAL", timedelta(seconds=1))
    shape = plan(*[{"id": f"t{n}", "role": "lone"} for n in (1, 2)])
    lab.play(script(shape, {f"t{n}": attempts(GIVES_UP) for n in (1, 2)}))
    error = await lab.failure(max_turns=1, max_parallel=1)
    assert error.type == "AllSubtasksFailed"
    reasons = {report.id: report.error and report.error.type for report in partial_result(error).subtasks}
    assert "NoCapableWorker" in reasons.values()
