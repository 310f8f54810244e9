"""The end of an attempt: the last turn concludes, and a subtask's own time is over."""

import asyncio
import functools

from standin.server.api_reply import text_block
from supervision.contract.result import RunResult
from supervision.contract.updates import Resume
from tests.scripted_model import Reply, Step, answer, message, plan, script, status, text, tools, when
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, scheduled, waits_for_provider
from tests.workflow.scripts import FOUND
from workflows.supervisor import SupervisorWorkflow


def looks(number: int, words: str = "") -> Reply:
    """A turn that calls a tool, with words beside the call or without."""
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "lookup", "input": {"query": "pears"}}
    return message([*([text_block(words)] if words else []), use], "tool_use")


async def outcome(lab: Lab, turns: list[Reply], max_turns: int, **fields: object) -> RunResult:
    """A run of one subtask whose worker agent replies so, its last reply again and again."""

    def reply(step: Step) -> Reply:
        return turns[min(step.number, len(turns)) - 1]

    lab.play(script(plan({"id": "t1"}), {"t1": reply}, answer(cites=["t1"])))
    return await lab.run(max_turns=max_turns, **fields)


def choices(lab: Lab) -> list[str]:
    """What each turn said about tools."""
    bodies = [call.step.body for call in lab.calls if call.step.kind == "turn"]
    return [body.get("tool_choice", {}).get("type", "auto") for body in bodies]


async def test_the_end_is_announced_two_turns_ahead(lab: Lab) -> None:
    turns = [*(looks(number) for number in range(1, 5)), FOUND]
    await outcome(lab, turns, 5)
    said = {number: lab.call(f"t1/1/turn.{number}").step.body["messages"][-1] for number in range(1, 6)}
    assert [number for number, last in said.items() if "left after this" in str(last)] == [3]
    assert "last turn" in str(said[5])


async def test_a_silent_last_turn_is_asked_once_more_without_running_its_tools(lab: Lab) -> None:
    result = await outcome(lab, [looks(1), looks(2), FOUND], 2)
    assert (result.status, choices(lab)) == ("completed", ["auto", "none", "none"])
    again = lab.call("t1/1/turn.3").step.body["messages"]
    assert "not run" in str(again)
    assert result.usage.tool_calls == 1


async def test_without_a_last_word_the_last_text_before_it_is_the_finding(lab: Lab) -> None:
    result = await outcome(lab, [looks(1, "I know of 5 pears"), looks(2)], 2)
    finding = result.subtasks[0].finding
    assert finding is not None
    assert finding.summary == "I know of 5 pears"
    assert "turns were over" in " ".join(finding.limitations)
    assert choices(lab) == ["auto", "none", "none"]


# --- a subtask's own time ----------------------------------------------------------------------------


NEVER = when(asyncio.Event(), text("never"))
"""A reply that is cut: the worker agent has a text, and asks for a longer one."""


async def test_an_attempt_whose_time_is_over_fails_with_timeout_and_is_tried_again(lab: Lab) -> None:
    def turns(step: Step) -> Reply:
        if step.attempt == 1:
            return tools(("lookup", {"query": "x"})) if step.number == 1 else NEVER
        return text("found at last")

    lab.play(script(plan({"id": "t1"}), {"t1": turns}))
    result = await lab.run(subtask_timeout="PT2S")
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert "Timeout" in lab.prompt("refine.t1.2")
    calls = [call for call in lab.calls if call.answered_at]
    assert result.usage.model_calls == len(calls)


async def test_the_clock_goes_on_where_it_stood_after_a_wait_for_a_person(lab: Lab) -> None:
    first, refused = asyncio.Event(), {"on": True}

    def turns(step: Step) -> Reply:
        if step.attempt > 1:
            return text("found at last")
        if step.number == 1:
            return when(first, tools(("lookup", {"query": "x"})))
        return status(401, "authentication_error") if refused["on"] else NEVER

    lab.play(script(plan({"id": "t1"}, {"id": "t2"}), {"t1": turns}))
    handle = await lab.start(subtask_timeout="PT4S")

    async def other_is_done() -> bool:
        return (await runs.status_of(handle)).counts.completed == 1

    await until(other_is_done)
    first.set()
    await until(functools.partial(waits_for_provider, handle))
    before = (await scheduled(lab.client, f"{lab.run_id}/t1/1", "timer"))[0]
    refused["on"] = False
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
