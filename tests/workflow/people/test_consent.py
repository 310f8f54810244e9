"""A person's word holds for what they saw alone: not for the next model, attempt, nested run or plan."""

from typing import Any

import pytest
from temporalio.client import Client

import temporal_supervisor
from temporal_supervisor.console.base.command import Access, CommandFailed
from temporal_supervisor.console.commands.doctor import server_rows
from temporal_supervisor.console.commands.people_commands import approve as approve_many
from temporal_supervisor.console.commands.people_commands import deny
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.status import Wait
from tests.scripted_model import Reply, Step, answer, as_json, plan, script, status, text, tools
from tests.workflow.plan.test_approval import asked
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Handle, Lab, found, refusal, status_of
from tests.workflow.scripts import FOUND, IMPOSSIBLE, item, plans, subtasks, verdicts
from workflows import outbox

PAY = ("send", {"to": "bank", "words": "pay 100"})
CHAIN = ["claude-opus-5-5", "claude-haiku-5-5"]
NO_MORE = as_json({"finished": True, "subtasks": []})


def body_of(wait: Wait, **decision: Any) -> dict[str, Any]:
    """Returns a decision about what a wait shows."""
    return {"id": wait.id, "sha256": wait.sha256, **decision}


async def approve(handle: Handle, wait: Wait, **more: Any) -> Any:
    """Approves a tool call, in the run in which it waits."""
    return await handle.execute_update("decide_tool_call", body_of(wait, decision="approve", **more))


async def reply(handle: Handle, wait: Wait, words: str) -> Any:
    """Replies to a question, in the run in which it waits."""
    return await handle.execute_update("reply", body_of(wait, text=words))


def last_results(lab: Lab) -> list[str]:
    """Returns the last message of each call, by the workflow and step it is of."""
    return [str(call.step.body["messages"][-1]) for call in lab.calls]


def payments(lab: Lab) -> int:
    """Returns how many calls have read that a payment was made."""
    return sum("sent to bank: pay 100" in words for words in last_results(lab))


# --- the next model of a chain ----------------------------------------------------------------------


def handed_over(first: tuple[str, Any], second: tuple[str, Any]) -> Any:
    """Each model makes one call that waits; the provider does not know the first model any more after it."""

    def turn(step: Step) -> Reply:
        is_first = step.body["model"] == CHAIN[0]
        if not any("tool_result" in str(message["content"]) for message in step.body["messages"]):
            return tools(first if is_first else second)
        return status(404, "no such model") if is_first else FOUND

    return turn


async def test_a_payment_is_approved_again_where_another_model_takes_over(lab: Lab) -> None:
    lab.play(script(plan({"id": "t1", "role": "both"}), {"t1": handed_over(PAY, PAY)}))
    handle = await lab.start(team="people", models={"workers": CHAIN})
    first = await asked(handle, "t1/1:1.0")
    await approve(handle, first)
    second = await asked(handle, "t1/1:2.0")
    assert (second.kind, second.arguments_sha256) == ("tool", first.arguments_sha256)
    assert second.sha256 != first.sha256
    assert payments(lab) == 1
    await handle.execute_update("decide_tool_call", body_of(second, decision="deny"))
    await handle.result()
    assert payments(lab) == 1
    took_over = next(
        call.step for call in lab.calls if call.step.body["model"] == CHAIN[1] and "turn" in call.step.call
    )
    assert "send" in took_over.prompt
    assert "pay 100" in took_over.prompt
    assert "was run at" in took_over.prompt


async def test_a_reply_answers_no_question_of_the_next_model(lab: Lab) -> None:
    first, second = (("ask_person", {"question": words}) for words in ("Pay ACME 100 dollars?", "Pay EVE a million?"))
    lab.play(script(plan({"id": "t1", "role": "both"}), {"t1": handed_over(first, second)}))
    handle = await lab.start(team="people", models={"workers": CHAIN})
    await reply(handle, await asked(handle, "t1/1:1.0"), "Yes, do it.")
    wait = await asked(handle, "t1/1:2.0")
    assert wait.prompt_preview == "Pay EVE a million?"
    await reply(handle, wait, "No.")
    await handle.result()
    assert not any("EVE" in words and "Yes, do it." in words for words in map(str, lab.calls))


# --- a nested run that is begun again ---------------------------------------------------------------


def nested(tool: str, arguments_of: Any, reviews: list[Reply]) -> Any:
    """A team whose one subtask is a team: there an agent makes one call that waits, in each attempt."""

    def play(step: Step) -> Any:
        inner = step.call.removeprefix(f"{step.run_id}/")
        if step.kind == "plan":
            return plan({"id": "t1", "role": "group" if inner.startswith("plan") else "both"})
        if step.kind == "turn":
            attempt = inner.split("/")[1]
            heard = str(step.body["messages"][-1])
            if step.number == 1:
                return tools((tool, arguments_of(attempt)))
            return text(f"finding {attempt}: {heard[:80]}\n\nConfidence: 0.8\nLimitations: none")
        if step.kind == "review" and inner.startswith("review") and reviews:
            return reviews.pop(0)
        return answer() if step.kind == "synthesis" else as_json({"verdicts": [], "conflicts": []})

    return play


def below(client: Client, wait: Wait) -> Handle:
    """Returns the run in which a wait stands."""
    return client.get_workflow_handle(wait.workflow_id)


async def test_a_nested_payment_is_approved_again_after_a_review(lab: Lab) -> None:
    lab.play(nested(*PAY[:1], lambda attempt: PAY[1], [verdicts(t1="say it better")]))
    handle = await lab.start(team="people", max_depth=2, max_reviews=1)
    first = await asked(handle, "t1/1/t1/1:1.0")
    await approve(below(lab.client, first), first)
    second = await asked(handle, "t1/2/t1/1:1.0")
    assert payments(lab) == 1
    await below(lab.client, second).execute_update("decide_tool_call", body_of(second, decision="deny"))
    await handle.result()
    assert payments(lab) == 1


async def test_what_a_person_denied_in_a_nested_run_is_given_to_no_other_role_above(lab: Lab) -> None:
    def play(step: Step) -> Any:
        inner = step.call.removeprefix(f"{step.run_id}/")
        if step.kind == "plan":
            return plan({"id": "t1", "role": "squad" if inner.startswith("plan") else "both"}, {"id": "t2"})
        if step.kind == "turn" and inner.startswith("t1/"):
            pays = inner.startswith("t1/1/t1/1/") and step.number == 1
            return tools(PAY) if pays else IMPOSSIBLE
        return usual(step)

    usual = script(plan())
    lab.play(play)
    handle = await lab.start(team="people", max_depth=2, max_reviews=0, max_replans=0)
    wait = await asked(handle, "t1/1/t1/1:1.0")
    await below(lab.client, wait).execute_update("decide_tool_call", body_of(wait, decision="deny"))
    first = (await handle.result()).subtasks[0]
    assert (first.state, first.role) == ("failed", "squad"), "the fallback would ask for the same in other words"


async def test_a_reply_answers_no_question_of_the_next_nested_run(lab: Lab) -> None:
    asks = lambda attempt: {"question": f"question of attempt {attempt}"}  # noqa: E731
    lab.play(nested("ask_person", asks, [verdicts(t1="once more")]))
    handle = await lab.start(team="people", max_depth=2, max_reviews=1)
    first = await asked(handle, "t1/1/t1/1:1.0")
    await reply(below(lab.client, first), first, "REPLY-TO-FIRST")
    second = await asked(handle, "t1/2/t1/1:1.0")
    assert second.prompt_preview == "question of attempt 2"
    await reply(below(lab.client, second), second, "REPLY-TO-SECOND")
    await handle.result()
    later = [str(call.step.body["messages"][-1]) for call in lab.calls if "/t1/2/t1/1/turn.2" in call.step.call]
    assert len(later) == 1
    assert "REPLY-TO-SECOND" in later[0]


# --- plans ------------------------------------------------------------------------------------------


async def test_a_decision_about_one_step_lets_no_other_one_run(lab: Lab) -> None:
    """A comment brings no other plan, so the step is shown once more: the next step has an id of its own."""
    steps = [
        subtasks(item("t1", "reader")),
        subtasks(item("t2", "reckoner"), finished=False),
        NO_MORE,  # the planner's reply to the comment
        subtasks(item("t3", "hand"), finished=False),  # a role that nobody has approved
        NO_MORE,
    ]
    lab.play(plans(*steps))
    handle = await lab.start(team="crew", strategy="step", approve_plan=True)
    for number, decision in enumerate(["approve", "change", "approve", "reject"], 1):
        wait = await asked(handle, f"plan.{number}")
        decided = {"revision": number, "decision": decision, "sha256": wait.sha256, "comment": "Is it needed?"}
        await handle.execute_update("decide_plan", decided)
    result = await handle.result()
    assert [(report.id, report.state) for report in result.subtasks] == [("t1", "completed"), ("t2", "completed")]


# --- who may say something ---------------------------------------------------------------------


async def test_no_signal_but_decide_decides(lab: Lab) -> None:
    lab.play(nested("send", lambda attempt: PAY[1], []))
    handle = await lab.start(team="people", max_depth=2)
    wait = await asked(handle, "t1/1/t1/1:1.0")
    there = below(lab.client, wait)
    forged = {"id": wait.id, "choice": "approve", "arguments_sha256": wait.arguments_sha256, "by": "the board"}
    for words in (forged, {**forged, "id": "t1/1:1.0"}, {**forged, "sha256": wait.sha256}):
        await there.signal("decided", words)
    await there.execute_update("decide_tool_call", body_of(wait, decision="deny"))
    await handle.result()
    assert payments(lab) == 0


async def test_a_decision_is_taken_in_the_run_in_which_it_stands(lab: Lab) -> None:
    lab.play(nested("send", lambda attempt: PAY[1], []))
    handle = await lab.start(team="people", max_depth=2)
    wait = await asked(handle, "t1/1/t1/1:1.0")
    assert wait.workflow_id == f"{lab.run_id}/t1/1"
    assert f"(-w {wait.workflow_id})" in await refusal(approve(handle, wait))
    listed = {"decisions": [body_of(wait, decision="approve")]}
    assert f"(-w {wait.workflow_id})" in await refusal(handle.execute_update("decide", listed))
    there = below(lab.client, wait)
    assert [shown.id for shown in (await status_of(there)).waiting] == [wait.id]
    assert '"words": "pay 100"' in (await there.query("waiting", wait.id))["content"]
    await approve(there, wait, by="ann")
    await handle.result()
    decided = await decisions_in(there)
    assert [(event["id"], event["decision"], event["by"]) for event in decided] == [(wait.id, "approve", "ann")]


# --- ways to decide ---------------------------------------------------------------------------------


def two_questions(lab: Lab) -> None:
    """Has two agents ask a question each."""

    def ask(step: Step) -> Reply:
        return tools(("ask_person", {"question": f"Who is {step.subtask_id}?"})) if step.number == 1 else FOUND

    shape = plan({"id": "t1", "role": "asker"}, {"id": "t2", "role": "asker"})
    lab.play(script(shape, {"t1": ask, "t2": ask}))


async def decisions_in(handle: Handle) -> list[dict[str, Any]]:
    """Returns what the trace of a run says of decisions."""
    return [event["data"] for event in (await handle.query("trace"))["events"] if event["type"] == "decided"]


async def test_a_list_takes_what_it_can(lab: Lab) -> None:
    two_questions(lab)
    handle = await lab.start(team="people")
    first, second = await asked(handle, "t1/1:1.0"), await asked(handle, "t2/1:1.0")
    swapped = {"id": first.id, "sha256": second.sha256, "text": "no"}
    refused = await refusal(handle.execute_update("decide", {"decisions": [swapped, {"id": "t9/1", "text": "no"}]}))
    assert "shows something else" in refused
    assert "nothing with the id 't9/1' waits" in refused
    listed = {"decisions": [body_of(first, text="ann", by="ann"), swapped, body_of(second, text="bob")]}
    said = await handle.execute_update("decide", {**listed, "request_id": "once"})
    assert [(each["id"], each["accepted"]) for each in said["results"]] == [
        ("t1/1:1.0", True),
        ("t1/1:1.0", False),
        ("t2/1:1.0", True),
    ]
    assert said["message"] == "2 of 3 decisions taken"
    assert (await handle.execute_update("decide", {**listed, "request_id": "once"}))["message"] == said["message"]
    await handle.result()
    assert (lab.prompt("t1/1/turn.2"), lab.prompt("t2/1/turn.2")) == ("ann", "bob")


async def test_the_signal_decides_as_the_update_does(lab: Lab) -> None:
    two_questions(lab)
    handle = await lab.start(team="people")
    first, second = await asked(handle, "t1/1:1.0"), await asked(handle, "t2/1:1.0")
    useless: Any
    for useless in (
        None,
        {"decisions": []},
        {"decisions": [{"id": first.id, "sha256": second.sha256, "text": "no"}]},
        {"decisions": [{"id": "t9/1", "text": "no"}, body_of(first, text="ann", by="ann")]},
    ):
        await handle.signal("decide", useless)
    await reply(handle, second, "bob")
    await handle.result()
    assert (lab.prompt("t1/1/turn.2"), lab.prompt("t2/1/turn.2")) == ("ann", "bob")
    assert {(event["id"], event.get("by"), event["text"]) for event in await decisions_in(handle)} == {
        ("t1/1:1.0", "ann", "ann"),
        ("t2/1:1.0", None, "bob"),
    }
    events = (await handle.query("trace"))["events"]
    refused = [event["data"]["why"] for event in events if event["type"] == "decision_refused"]
    assert len(refused) == 4
    assert "shows something else" in refused[2]
    assert "'t9/1'" in refused[3]


async def test_a_run_that_has_had_its_updates_is_still_heard(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UPDATES_FOR_DECISIONS", 1)
    monkeypatch.setattr(limits, "UPDATES_WARNED", 1)
    two_questions(lab)
    handle = await lab.start(team="people")
    first, second = await asked(handle, "t1/1:1.0"), await asked(handle, "t2/1:1.0")
    await reply(handle, first, "ann")
    assert "send this as the signal `decide`" in await refusal(reply(handle, second, "bob"))
    await handle.execute_update("resume", {})
    assert (await status_of(handle)).updates == 2
    said = await temporal_supervisor.reply(lab.client, lab.run_id, second.id, "bob", sha256=second.sha256)
    assert "as a signal" in said.message
    await handle.result()
    assert lab.prompt("t2/1/turn.2") == "bob"


async def test_a_decision_without_a_hash_holds_for_what_waits_when_it_arrives(lab: Lab) -> None:
    two_questions(lab)
    handle = await lab.start(team="people")
    await asked(handle, "t1/1:1.0")
    await asked(handle, "t2/1:1.0")
    await handle.execute_update("reply", {"id": "t1/1:1.0", "text": "ann"})
    assert "what does: t2/1:1.0" in await refusal(handle.execute_update("reply", {"id": "t1/1:2.0", "text": "later"}))
    await handle.execute_update("reply", {"id": "t2/1:1.0", "text": "bob"})
    await handle.result()
    assert lab.prompt("t1/1/turn.2") == "ann"


# --- resets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_hash", [True, False])
async def test_a_finding_given_for_one_plan_is_not_handed_in_for_another_one(lab: Lab, with_hash: bool) -> None:
    """The run is reset to its beginning, and plans otherwise: the same subtask of the same person is another one."""

    def play(step: Step) -> Any:
        what = f"Judge the {'lease' if 'LEASE' in str(step.body) else 'will'} of garden 1, in your own words"
        if step.kind == "plan":
            return plan({"id": "t1", "role": "counsel", "description": what})
        return answer() if step.kind == "synthesis" else as_json({"verdicts": [], "conflicts": []})

    lab.play(play)
    handle = await lab.start(team="people")
    wait = await asked(handle, "t1/1")
    await handle.execute_update("steer", {"text": "LEASE"})
    body = {"id": wait.id, "text": "The will is void.", **({"sha256": wait.sha256} if with_hash else {})}
    await handle.execute_update("reply", body)
    await handle.result()
    again = await reset(lab.client, handle, (await workflow_tasks(handle))[0])
    other = await asked(again, "t1/1")
    assert "Judge the lease" in other.prompt_preview
    assert other.sha256 != wait.sha256
    await reply(again, other, "The lease holds.")
    assert found(await again.result()).summary == "The lease holds."


async def test_a_decision_about_the_same_content_stands_after_a_reset(lab: Lab) -> None:
    two_questions(lab)
    handle = await lab.start(team="people")
    waits = [await asked(handle, wait_id) for wait_id in ("t1/1:1.0", "t2/1:1.0")]
    for wait in waits:
        await reply(handle, wait, f"reply to {wait.id}")
    await handle.result()
    again = await reset(lab.client, handle, (await workflow_tasks(handle))[1])
    assert (await again.result()).status == "completed"
    assert lab.repeated == []


# --- the commands -----------------------------------------------------------------------------------


async def test_commands_decide_about_many_things_and_about_what_was_seen_only(lab: Lab) -> None:
    def pay(step: Step) -> Reply:
        return tools(PAY) if step.number == 1 else FOUND

    ids = ["t1", "t2", "t3"]
    shape = plan(*({"id": subtask_id, "role": "sender"} for subtask_id in ids))
    lab.play(script(shape, dict.fromkeys(ids, pay)))
    handle = await lab.start(team="people")
    waits = [await asked(handle, f"{subtask_id}/1:1.0") for subtask_id in ids]
    access = Access(_client=lab.client)
    with pytest.raises(CommandFailed, match="shows something else now"):
        await deny(access, [lab.run_id, waits[0].id], "ann", sha256=waits[1].sha256[:8])
    with pytest.raises(CommandFailed, match="nothing with the id 't9/1:1.0'"):
        await approve_many(access, [lab.run_id, waits[1].id, "t9/1:1.0"], "ann")
    await deny(access, [lab.run_id, waits[0].id], "ann", sha256=waits[0].sha256[:8])
    report = await approve_many(access, [lab.run_id, *(wait.id for wait in waits[1:])], "ann")
    assert report.code == 0
    await handle.result()
    assert payments(lab) == 2
    assert {(event["id"], event["decision"]) for event in await decisions_in(handle)} == {
        ("t1/1:1.0", "deny"),
        ("t2/1:1.0", "approve"),
        ("t3/1:1.0", "approve"),
    }


async def test_the_client_finds_the_run_in_which_a_wait_stands(lab: Lab) -> None:
    lab.play(nested("ask_person", lambda attempt: {"question": "Which year?"}, []))
    handle = await lab.start(team="people", max_depth=2)
    wait = await asked(handle, "t1/1/t1/1:1.0")
    whole = await temporal_supervisor.asked(lab.client, lab.run_id, wait.id)
    assert (whole.content, whole.wait.sha256) == ("Which year?", wait.sha256)
    (item,) = await temporal_supervisor.waiting(lab.client, lab.run_id)
    await temporal_supervisor.decide(lab.client, item, "reply", "2026")
    await handle.result()
    assert [event["text"] for event in await decisions_in(below(lab.client, wait))] == ["2026"]


async def test_the_doctor_warns_of_a_run_with_many_updates(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UPDATES_WARNED", 1)
    monkeypatch.setattr(outbox, "UPDATES_SHOWN_EACH", 2)
    two_questions(lab)
    handle = await lab.start(team="people")
    waits = [await asked(handle, wait_id) for wait_id in ("t1/1:1.0", "t2/1:1.0")]
    for _ in range(2):
        await handle.execute_update("resume", {})
    rows = [row.text async for row in server_rows(lab.client, None)]
    assert f"'{lab.run_id}' has taken 2 updates: the server allows 2,000" in rows
    for wait in waits:
        await reply(handle, wait, "ann")
    await handle.result()
