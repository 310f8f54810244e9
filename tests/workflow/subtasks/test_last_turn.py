"""The last turn concludes: it may call no tools, and whatever it does, work that was done is not lost."""

import pytest
from temporalio.client import Client

from standin.server.api_reply import text_block
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, ScriptedModel, Step, answer, message, plan, script, text
from tests.workflow.runs import call, run
from tests.workflow.scripts import FOUND

pytestmark = pytest.mark.usefixtures("worker")
OPUS = {"workers": "claude-opus-5-5"}


def looks(number: int, words: str = "") -> Reply:
    """A turn that calls a tool, with words beside the call or without."""
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "lookup", "input": {"query": "pears"}}
    return message([*([text_block(words)] if words else []), use], "tool_use")


async def outcome(
    client: Client, model: ScriptedModel, run_id: str, turns: list[Reply], max_turns: int, **fields: object
) -> RunResult:
    """A run of one subtask whose worker agent replies so, its last reply again and again."""

    def reply(step: Step) -> Reply:
        return turns[min(step.number, len(turns)) - 1]

    model.play(run_id, script(plan({"id": "t1"}), {"t1": reply}, answer(cites=["t1"])))
    return await run(client, run_id, "lab", max_turns=max_turns, **fields)


def choices(model: ScriptedModel, run_id: str) -> list[str]:
    """What each turn said about tools."""
    bodies = [call.step.body for call in model.of(run_id) if call.step.kind == "turn"]
    return [body.get("tool_choice", {}).get("type", "auto") for body in bodies]


async def test_one_turn_is_enough_for_a_role_with_tools(client: Client, model: ScriptedModel, run_id: str) -> None:
    result = await outcome(client, model, run_id, [FOUND], 1)
    assert (result.status, choices(model, run_id)) == ("completed", ["none"])
    assert "last turn" in str(call(model, run_id, "t1/1/turn.1").step.body["messages"])


async def test_only_the_last_turn_forbids_tools(client: Client, model: ScriptedModel, run_id: str) -> None:
    result = await outcome(client, model, run_id, [looks(1), looks(2), FOUND], 3)
    assert (result.status, choices(model, run_id)) == ("completed", ["auto", "auto", "none"])


@pytest.mark.parametrize(("models", "role"), [(OPUS, "system"), ({}, "user")], ids=["opus", "haiku"])
async def test_the_end_is_announced_two_turns_ahead(
    client: Client, model: ScriptedModel, run_id: str, models: dict[str, str], role: str
) -> None:
    turns = [*(looks(number) for number in range(1, 5)), FOUND]
    await outcome(client, model, run_id, turns, 5, models=models)
    said = {number: call(model, run_id, f"t1/1/turn.{number}").step.body["messages"][-1] for number in range(1, 6)}
    notes = {number: last["role"] for number, last in said.items() if "left after this" in str(last)}
    assert notes == {3: role}
    assert (said[5]["role"], "last turn" in str(said[5])) == (role, True)


async def test_words_beside_a_tool_call_of_the_last_turn_are_the_finding(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    result = await outcome(client, model, run_id, [looks(1), looks(2, "So far: 7 pears")], 2)
    finding = result.subtasks[0].finding
    assert finding is not None
    assert finding.summary == "So far: 7 pears"
    assert "turns were over" in " ".join(finding.limitations)
    assert choices(model, run_id) == ["auto", "none"]


async def test_a_silent_last_turn_is_asked_once_more_without_running_its_tools(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    result = await outcome(client, model, run_id, [looks(1), looks(2), FOUND], 2)
    assert (result.status, choices(model, run_id)) == ("completed", ["auto", "none", "none"])
    again = call(model, run_id, "t1/1/turn.3").step.body["messages"]
    assert "not run" in str(again)
    assert result.usage.tool_calls == 1


async def test_without_a_last_word_the_last_text_before_it_is_the_finding(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    result = await outcome(client, model, run_id, [looks(1, "I know of 5 pears"), looks(2)], 2)
    finding = result.subtasks[0].finding
    assert finding is not None
    assert finding.summary == "I know of 5 pears"
    assert "turns were over" in " ".join(finding.limitations)
    assert choices(model, run_id) == ["auto", "none", "none"]


async def test_an_attempt_that_never_said_a_word_is_at_its_turn_limit(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    def reply(step: Step) -> Reply:
        return looks(step.number) if step.attempt == 1 else text("found at last")

    model.play(run_id, script(plan({"id": "t1"}), {"t1": reply}, answer(cites=["t1"])))
    result = await run(client, run_id, "lab", max_turns=2)
    assert (result.status, result.subtasks[0].attempts) == ("completed", 2)
    assert "TurnLimit" in str(call(model, run_id, "refine.t1.2").step.body)


@pytest.mark.parametrize(
    ("first", "asks"),
    [(text("The garden yields 4711 pears."), "4711"), (text(""), "had no text")],
    ids=["unsupported", "silent"],
)
async def test_what_a_turn_was_sent_back_for_is_said_in_the_last_one_too(
    client: Client, model: ScriptedModel, run_id: str, first: Reply, asks: str
) -> None:
    await outcome(client, model, run_id, [first, FOUND], 2)
    note = str(call(model, run_id, "t1/1/turn.2").step.body["messages"][-1])
    assert asks in note
    assert "last turn" in note


async def test_what_a_turn_was_sent_back_for_is_said_beside_the_turns_left(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    await outcome(client, model, run_id, [text("The garden yields 4711 pears."), FOUND], 4)
    note = str(call(model, run_id, "t1/1/turn.2").step.body["messages"][-1])
    assert "4711" in note
    assert "left after this" in note
