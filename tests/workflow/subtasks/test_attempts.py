"""Attempts: what ends one, its last turn and its time, and what becomes of a subtask whose attempt failed."""

import asyncio
import functools
from typing import Any

import pytest

from temporal_supervisor.standin.server.api_reply import text_block, tool_block
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.contract.updates import Resume
from tests.scripted_model import Reply, Step, answer, hang, message, plan, script, status, stop, text, tools, when
from tests.waiting import until
from tests.workflow.runs import Lab, details, events, found, is_in, scheduled, status_of, waits_for_provider
from tests.workflow.scripts import FOUND, GIVES_UP, in_order, with_replies
from workflows.supervisor import SupervisorWorkflow

LOOK = tools(("lookup", {"query": "pears"}))


async def outcome(lab: Lab, turns: list[Reply], max_turns: int, **fields: object) -> RunResult:
    """A run of one subtask whose worker agent replies so, its last reply again and again."""
    lab.play(script(plan({"id": "t1"}), {"t1": in_order(*turns)}, answer(cites=["t1"])))
    return await lab.run(team="lab", max_turns=max_turns, **fields)


def choices(lab: Lab) -> list[str]:
    """What each turn said about tools."""
    bodies = [call.step.body for call in lab.calls if call.step.kind == "turn"]
    return [body.get("tool_choice", {}).get("type", "auto") for body in bodies]


async def test_the_end_is_announced_two_turns_ahead_and_a_silent_last_turn_is_asked_once_more(lab: Lab) -> None:
    result = await outcome(lab, [*[LOOK] * 5, FOUND], 5)
    said = {number: lab.call(f"t1/1/turn.{number}").step.body["messages"][-1] for number in range(1, 7)}
    assert [number for number, last in said.items() if "left after this" in str(last)] == [3]
    assert "last turn" in str(said[5])
    assert (result.status, choices(lab)) == ("completed", ["auto"] * 4 + ["none"] * 2)
    assert "not run" in str(lab.call("t1/1/turn.6").step.body["messages"])
    assert result.usage.tool_calls == 4


async def test_without_a_last_word_the_last_text_before_it_is_the_finding(lab: Lab) -> None:
    told = message([text_block("I know of 5 pears"), tool_block("lookup", {"query": "pears"})], "tool_use")
    result = await outcome(lab, [told, LOOK], 2)
    finding = found(result)
    assert finding.summary == "I know of 5 pears"
    assert "had not concluded" in " ".join(finding.limitations)
    assert choices(lab) == ["auto", "none", "none"]


# --- a subtask's own time ----------------------------------------------------------------------------


async def test_the_clock_goes_on_where_it_stood_after_a_wait_for_a_person(lab: Lab) -> None:
    first, refused = asyncio.Event(), {"on": True}

    def turns(step: Step) -> Reply:
        if step.attempt > 1:
            return text("found at last")
        if step.number == 1:
            return when(first, LOOK)
        return status(401, "authentication_error") if refused["on"] else hang()

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
    handle = await lab.start(team="lab", subtask_timeout="PT4S")

    await until(functools.partial(is_in, handle, "completed", "t2"))
    first.set()
    await until(functools.partial(waits_for_provider, handle))
    before = (await scheduled(lab.client, f"{lab.run_id}/t1/1", "timer"))[0]
    refused_call, refused["on"] = lab.call("t1/1/turn.2"), False
    await handle.execute_update(SupervisorWorkflow.resume, Resume())
    await until(lambda: lab.steps.count("t1/1/turn.2") == 2)
    after = (await scheduled(lab.client, f"{lab.run_id}/t1/1", "timer"))[0]
    lengths = [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds()
        for event in (before, after)
    ]
    assert 3.9 < lengths[0] <= 4 > lengths[1] > 0
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert "Timeout" in lab.prompt("refine.t1.2")
    paid = [call for call in lab.calls if call.answered_at and call is not refused_call]
    assert result.usage.model_calls == len(paid)


# --- retries -----------------------------------------------------------------------------------------


USUAL = {"team": "relay"}


REFUSAL = stop("refusal", details={"category": "cyber"})
JUNIOR = plan({"id": "t1", "role": "junior"}, {"id": "t2", "role": "scribe"})


def attempts(*replies: Reply) -> Any:
    """The replies to a subtask's attempts of one turn, the last one again and again."""
    return lambda step: replies[min(step.attempt, len(replies)) - 1]


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


async def test_a_refused_subtask_without_other_words_fails_at_once_where_no_other_role_takes_it(lab: Lab) -> None:
    alone = plan({"id": "t1", "role": "lone"}, {"id": "t2", "role": "scribe"})
    lab.play(with_replies(script(alone, {"t1": attempts(REFUSAL)}), refine=lambda step: REFUSAL))
    first = (await lab.run()).subtasks[0]
    assert (first.state, first.attempts, first.role) == ("failed", 1, "lone")
    assert first.error is not None
    assert first.error.type == "Refused"


REJECTED = status(400, "invalid_request_error", "no such thing")


@pytest.mark.parametrize("failed", [REJECTED, REFUSAL], ids=["a rejected request", "a refusal without other words"])
async def test_the_fallback_takes_over_whatever_an_attempt_failed_of(lab: Lab, failed: Reply) -> None:
    lab.play(with_replies(script(JUNIOR, {"t1": attempts(failed, FOUND)}), refine=lambda step: REFUSAL))
    handle = await lab.start()
    result = await handle.result()
    first = result.subtasks[0]
    assert (result.status, first.state, first.attempts, first.role) == ("completed", "completed", 2, "senior")
    assert "You are the senior." in lab.system("t1/2/turn.1")
    assert (await status_of(handle)).breakers == [], "it says nothing about the role"


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
