"""Questions to people, tool calls that they approve, people as roles: in a run and in nested ones."""

import asyncio
from functools import partial
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.run import run_activities
from tests.scripted_model import Reply as ModelReply
from tests.scripted_model import Step, hang, plan, script, text, tools, when
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Handle, Lab, end_soon, failure, found, is_in, refusal, status_of
from tests.workflow.scripts import IMPOSSIBLE, Turns, in_order

HASH = "0" * 64


async def reply(handle: Handle, wait_id: str, words: str, **more: Any) -> Any:
    """Replies to a question."""
    return await handle.execute_update("reply", {"id": wait_id, "text": words, **more})


async def decide(handle: Handle, wait_id: str, decision: str, **more: Any) -> Any:
    """Decides about a tool call, by the hash that the status shows."""
    wait = await asked(handle, wait_id)
    body = {"id": wait_id, "decision": decision, "arguments_sha256": wait.arguments_sha256, **more}
    return await handle.execute_update("decide_tool_call", body)


def asking(step: Step) -> ModelReply:
    """Asks in its first turn, with text beside the call and every optional field filled, as real models do."""
    if step.number == 1:
        return tools(("ask_person", {"question": "Which year is meant?", "choices": ["2025", "2026"]}))
    return text(f"The year is meant to be as said: {step.prompt[:200]}\n\nConfidence: 0.8\nLimitations: none")


async def test_answers_in_any_order_are_tool_results_and_evidence(lab: Lab) -> None:
    two = tools(
        ("ask_person", {"question": "Which year is meant?", "choices": ["2025", "2026"]}),
        ("seek", {"name": "garden 1"}),
        ("ask_person", {"question": "Second?"}),
    )
    concludes = text("The year is 2026, as 4711 said.\n\nConfidence: 0.8\nLimitations: none")
    lab.play(script(plan({"id": "t1", "role": "asker"}), {"t1": in_order(two, concludes)}))
    handle = await lab.start(team="people")
    wait = await asked(handle, "t1/1:1.0")
    assert (wait.kind, wait.choices, wait.subtask_id) == ("question", ["2025", "2026"], "t1")
    assert wait.prompt_preview == "Which year is meant?"
    shown = await status_of(handle)
    assert (shown.flags.waiting_person, shown.counts.running) == (True, 1)
    await reply(handle, "t1/1:1.2", "the second answer")
    assert (await reply(handle, "t1/1:1.0", "2026, as 4711 said", by="ann"))["accepted"]
    result = await handle.result()
    assert (result.status, found(result).unsupported, lab.steps.count("t1/1/turn.1")) == ("completed", [], 1)
    assert "person ann" in found(result).sources
    contents = {b["tool_use_id"]: b["content"] for b in lab.call("t1/1/turn.2").step.body["messages"][-1]["content"]}
    assert contents["toolu_0_ask_person"] == "2026, as 4711 said"
    assert contents["toolu_2_ask_person"] == "the second answer"
    assert "garden 1" in contents["toolu_1_seek"]


@pytest.mark.usefixtures("short_deadlines")
async def test_the_clock_runs_again_while_the_work_after_a_reply_does(lab: Lab) -> None:
    """It stood still for the question alone: a model that is silent after it is ended by the deadline."""
    turns = {"t1": lambda step: asking(step) if step.number == 1 else hang()}
    lab.play(script(plan({"id": "t1", "role": "asker"}), turns))
    handle = await lab.start(team="people", deadline="PT4S", max_reviews=0, max_replans=0)
    await asked(handle, "t1/1:1.0")
    await reply(handle, "t1/1:1.0", "2026")
    error = await failure(handle)
    assert (error.type, lab.steps.count("t1/1/turn.2")) == ("DeadlineExceeded", 1)


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_tool_call_waits_for_approval(lab: Lab, decision: str) -> None:
    def sending(step: Step) -> ModelReply:
        if step.number == 1:
            return tools(("send", {"to": "board", "words": "Sell"}))
        return text(f"It says: {step.prompt}")

    lab.play(script(plan({"id": "t1", "role": "sender"}), {"t1": sending}))
    handle = await lab.start(team="people")
    wait = await asked(handle, "t1/1:1.0")
    assert wait.kind == "tool"
    assert wait.prompt_preview.startswith("send ")
    whole = await handle.query("waiting", "t1/1:1.0")
    assert '"words": "Sell"' in whole["content"]
    wrong = {"id": "t1/1:1.0", "decision": "approve", "arguments_sha256": HASH}
    assert "other arguments" in await refusal(handle.execute_update("decide_tool_call", wrong))
    assert "something else" in await refusal(reply(handle, "t1/1:1.0", "yes"))
    await decide(handle, "t1/1:1.0", decision, comment="not to the board")
    await handle.result()
    said = lab.prompt("t1/1/turn.2")
    assert said == "sent to board: Sell" if decision == "approve" else "denied this call" in said
    assert ("<feedback>\nnot to the board\n</feedback>\nDo not make the same call again." in said) == (
        decision == "deny"
    )


async def test_what_a_person_denied_is_given_to_no_other_role(lab: Lab) -> None:
    sends = tools(("send", {"to": "board", "words": "Sell"}))
    turns: Turns = {"t1": lambda step: sends if step.number == step.attempt == 1 else IMPOSSIBLE}
    lab.play(script(plan({"id": "t1", "role": "courier"}, {"id": "t2"}), turns))
    handle = await lab.start(team="people")
    await decide(handle, "t1/1:1.0", "deny")
    first = (await handle.result()).subtasks[0]
    assert (first.state, first.role) == ("failed", "courier"), "the fallback would ask for the same in other words"


async def test_a_person_is_a_role(lab: Lab) -> None:
    lab.play(
        script(plan({"id": "t1"}, {"id": "t2", "role": "counsel", "after": ["t1"]}, {"id": "t3", "after": ["t2"]}))
    )
    handle = await lab.start(team="people")
    wait = await asked(handle, "t2/1")
    assert wait.kind == "finding"
    assert "counsel (legal@acme.example)" in wait.prompt_preview
    assert "finding of t1" in (await handle.query("waiting", "t2/1"))["content"]
    await reply(handle, "t2/1", "The clause of 4711 EUR is void.", by="bob")
    result = await handle.result()
    assert result.status == "completed"
    assert "The clause of 4711 EUR is void." in lab.prompt("t3/1/turn.1")
    assert not [step for step in lab.steps if step.startswith("t2")]


async def test_a_person_who_does_not_answer_has_a_fallback(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1", "role": "hasty"})))
    result = await lab.run(team="people")
    assert (result.subtasks[0].role, result.subtasks[0].state) == ("finder", "completed")


@pytest.mark.parametrize("retried", [False, True], ids=["a person's finding", "tried again with a word"])
async def test_a_failed_subtask_asks_for_help(lab: Lab, retried: bool) -> None:
    def play(step: Step) -> ModelReply:
        return IMPOSSIBLE if step.attempt < 3 else text("It lies under the tree.")

    lab.play(script(plan({"id": "t1", "role": "asker"}), {"t1": play}))
    handle = await lab.start(team="people", on_subtask_failure="ask")
    wait = await asked(handle, "t1/2")
    assert "CannotDo" in wait.prompt_preview
    if retried:
        await handle.execute_update("retry_subtask", {"subtask_id": "t1", "instruction": "Look under the tree"})
    else:
        await reply(handle, "t1/2", "It is 40.")
    result = await handle.result()
    said = "It lies under the tree." if retried else "It is 40."
    assert (result.status, found(result).summary) == ("completed", said)
    if retried:
        assert result.subtasks[0].attempts == 3
        assert "Look under the tree" in lab.prompt("t1/3/turn.1")


async def test_help_that_cannot_be_stored_is_a_gap_and_costs_no_other_work(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**fields: Any) -> None:
        raise ApplicationError("the store refused it", type="ArtifactUnavailable", non_retryable=True)

    helped, shape = asyncio.Event(), plan({"id": "t1", "role": "asker"}, {"id": "t2", "role": "asker"})
    turns: Turns = {"t1": lambda step: IMPOSSIBLE, "t2": lambda step: when(helped, text("It lies under the tree."))}
    lab.play(script(shape, turns))
    handle = await lab.start(team="people", on_subtask_failure="ask")
    await asked(handle, "t1/2")
    monkeypatch.setattr(run_activities, "FindingRecord", refused)
    await reply(handle, "t1/2", "It is 40.")
    await until(partial(is_in, handle, "failed", "t1"))
    helped.set()
    result = await handle.result()
    assert [(report.id, report.state) for report in result.subtasks] == [("t1", "failed"), ("t2", "completed")]
    assert "the store refused it" in result.gaps[0].reason


@pytest.mark.usefixtures("time_to_answer")
async def test_a_run_whose_time_is_over_while_a_failed_subtask_waits_for_help_answers_from_the_others(lab: Lab) -> None:
    turns: Turns = {
        "t1": lambda step: IMPOSSIBLE,
        "t2": lambda step: text("It lies under the tree."),
        "t3": lambda step: hang(),
    }
    lab.play(script(plan(*[{"id": each, "role": "asker"} for each in turns]), turns))
    handle = await lab.start(team="people", on_subtask_failure="ask")
    await asked(handle, "t1/2")
    await end_soon(handle, 1)
    result = await handle.result()
    states = {report.id: report.state for report in result.subtasks}
    assert (result.status, states) == ("partial", {"t1": "cancelled", "t2": "completed", "t3": "cancelled"})
    assert {gap.subtask_id for gap in result.gaps if "DeadlineExceeded" in gap.reason} == {"t1", "t3"}
