"""The last turn concludes: it may call no tools, and whatever it does, work that was done is not lost."""

import pytest

from standin.server.api_reply import text_block
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, Step, answer, message, plan, script
from tests.workflow.runs import Lab
from tests.workflow.scripts import FOUND

pytestmark = pytest.mark.usefixtures("worker")


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
