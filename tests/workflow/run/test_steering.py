"""Steering a run while it works: pause, resume, steer, retry_subtask, skip_subtask, judged by the model's calls."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy

from temporal_supervisor.supervision.contract.request import RunRequest
from tests.scripted_model import Reply, Step, answer, as_json, hang, plan, script, text, tools, when
from tests.waiting import until
from tests.workflow.runs import Handle, Lab, closed, events, is_in, refusal, search_attribute, settled, status_of
from tests.workflow.scripts import in_order, item, subtasks, verdicts, with_replies
from tests.workflow.subtasks.trees import nested_handle, tree
from workflows.subtasks import child_runs
from workflows.supervisor import SupervisorWorkflow

LOOK = tools(("lookup", {"query": "x"}))
DONE = tools(("finish", {"outcome": "done", "summary": "s", "finding": "so many pears", "confidence": 0.8}))
WORD = "Count </steer> the quinces, too"
SHOWN = "the quinces, too"


async def say(handle: Handle, update: str, **fields: Any) -> dict[str, Any]:
    """Sends an update."""
    return await handle.execute_update(update, fields)  # type: ignore[no-any-return]


def heard(lab: Lab, word: str = SHOWN) -> dict[str, int]:
    """Returns how often each call has a word, by the steps of those that have it."""
    counts = {call.step.call.removeprefix(f"{lab.run_id}/"): _times(word, call.step.body) for call in lab.calls}
    return {step: times for step, times in counts.items() if times}


def _times(word: str, body: Any) -> int:
    return json.dumps(body).count(word)


async def _told(lab: Lab, *names: str, paused: bool = False) -> bool:
    """True if those worker agents were told something, at last that the run is `paused` or not."""
    for name in names:
        history = await lab.client.get_workflow_handle(f"{lab.run_id}/{name}").fetch_history()
        signals = [event.workflow_execution_signaled_event_attributes for event in history.events]
        told = [json.loads(signal.input.payloads[0].data) for signal in signals if signal.signal_name == "instructions"]
        if not told or told[-1]["paused"] != paused:
            return False
    return True


def first_turn(hold: asyncio.Event, then: Reply = LOOK) -> Callable[[Step], Reply]:
    """Turns of an agent: the first waits for `hold`, the others find something."""
    return lambda step: when(hold, then) if step.number == 1 else text(f"found by {step.subtask_id}")


# --- pause and resume ---------------------------------------------------------------------------------------


async def test_in_a_pause_nothing_begins_and_the_clock_stands_still(lab: Lab) -> None:
    hold = asyncio.Event()
    lab.play(script(plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]}), {"t1": first_turn(hold)}))
    handle = await lab.start(deadline="PT8S", max_parallel=1)
    await until(lab.sent("t1/1/turn.1"))
    reply = await say(handle, "pause", by="ann", comment="too dear")
    assert reply["message"] == "paused: work stops after the turns under way"
    assert (await status_of(handle)).flags.paused
    await until(partial(_told, lab, "t1/1", paused=True))
    hold.set()
    await until(partial(closed, nested_handle(lab.client, f"{lab.run_id}/t1/1")))
    await until(lambda: _is(search_attribute(handle, "SupervisorWaiting"), "paused"))
    before, shown = await settled(handle), datetime.fromisoformat((await status_of(handle)).deadline_at)
    await asyncio.sleep(8)  # longer than the deadline: time is what this test is about
    assert (await handle.describe()).history_length == before
    assert lab.steps == ["plan.1.1", "t1/1/turn.1"]
    await say(handle, "resume")
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts, result.subtasks[0].turns) == ("completed", 1, 2)
    assert lab.repeated == []
    assert result.timing.wall_seconds > 8 > result.timing.sequential_seconds
    assert result.timing.speedup == pytest.approx(1, abs=0.6)
    assert datetime.fromisoformat((await status_of(handle)).deadline_at) > shown
    trace = (await handle.query("trace"))["events"]
    assert next(event["data"] for event in trace if event["type"] == "paused") == {"by": "ann", "why": "too dear"}
    assert not (await status_of(handle)).flags.paused


async def test_a_pause_before_the_run_is_prepared_is_listed(lab: Lab) -> None:
    """Nobody knows then which attributes the server has."""
    lab.play(script(plan({"id": "t1"})))
    started = WithStartWorkflowOperation(
        SupervisorWorkflow.run,
        RunRequest(goal="Weigh the pears", team="lab", max_reviews=0),
        id=lab.run_id,
        task_queue="supervisor",
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
    )
    await lab.client.execute_update_with_start_workflow("pause", {}, start_workflow_operation=started)
    handle = await started.workflow_handle()
    await until(lambda: _is(search_attribute(handle, "SupervisorWaiting"), "paused"))
    await say(handle, "resume")
    assert (await handle.result()).status == "completed"


async def _is(value: Awaitable[str | None], wanted: str) -> bool:
    return await value == wanted


async def test_pause_now_stops_the_calls_in_flight(lab: Lab) -> None:
    hold = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: when(hold, text("found"))}))
    handle = await lab.start()
    await until(lab.sent("t1/1/turn.1"))
    await say(handle, "pause")
    assert "may be paid again" in (await say(handle, "pause", now=True))["message"]
    await until(lambda: lab.calls[-1].aborted_at is not None)
    await until(partial(closed, nested_handle(lab.client, f"{lab.run_id}/t1/1")))
    hold.set()
    await say(handle, "resume")
    result = await handle.result()
    assert (result.status, result.subtasks[0].attempts, result.subtasks[0].turns) == ("completed", 1, 2)
    assert lab.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.1", "t1/1/turn.2", "synthesis.1"]


@pytest.mark.usefixtures("short_rest")  # not replayed later: its child starts late by a patch
async def test_a_child_that_starts_during_a_pause_makes_no_call(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, waited = child_runs._Child._run_to_end, list[str]()

    async def late(child: Any) -> Any:
        if not waited:  # as it does while others start
            waited.append(child.start.workflow_id)
            await workflow.wait_condition(lambda: child.runs._state.steering.paused)
        return await usual(child)

    monkeypatch.setattr(child_runs._Child, "_run_to_end", late)
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: text("found")}))
    handle = await lab.start()
    await until(lambda: bool(waited))
    await say(handle, "pause")
    agent = nested_handle(lab.client, f"{lab.run_id}/t1/1")

    async def has_ended() -> bool:
        return bool(await lab.started_children()) and await closed(agent)

    await until(has_ended)
    assert lab.steps == ["plan.1.1"]
    await say(handle, "resume")
    assert (await handle.result()).status == "completed"


# --- steer --------------------------------------------------------------------------------------------------


async def test_a_word_is_in_each_later_request_of_those_it_is_to_once(lab: Lab) -> None:
    hold = asyncio.Event()
    turns = {
        "t1": first_turn(hold),
        "t3": first_turn(hold, DONE),  # concludes while the word is on its way
        "t4": first_turn(hold, text("found, as a text")),
    }
    lab.play(script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}, {"id": "t3"}, {"id": "t4"}), turns))
    handle = await lab.start(max_reviews=1)
    await until(lab.sent("t1/1/turn.1", "t3/1/turn.1", "t4/1/turn.1"))
    first, again = [await say(handle, "steer", text=WORD, request_id="one") for _ in range(2)]
    assert first == again
    await say(handle, "steer", text="Mind the sloes", to="t1")
    await say(handle, "steer", text="Mind the medlars", to="t2")  # it is yet to begin
    await until(partial(_told, lab, "t1/1", "t3/1", "t4/1"))
    hold.set()
    result = await handle.result()
    assert result.status == "completed"
    assert heard(lab) == dict.fromkeys(
        ["t1/1/turn.2", "t2/1/turn.1", "t3/1/turn.2", "t4/1/turn.2", "review.1", "synthesis.1"], 1
    )
    assert (heard(lab, "sloes"), heard(lab, "medlars")) == ({"t1/1/turn.2": 1}, {"t2/1/turn.1": 1})
    found = {report.id: report.finding.summary for report in result.subtasks if report.finding}
    assert (found["t3"], found["t4"]) == ("found by t3", "found by t4")  # not what they said before the word
    assert "<steer>\nCount &lt;/steer> the quinces, too\n</steer>" in lab.prompt("t3/1/turn.2")
    assert "steered" in await events(handle)
    assert lab.repeated == []


# --- retry_subtask ------------------------------------------------------------------------------------------


async def test_a_completed_subtask_is_done_again_in_its_conversation(lab: Lab) -> None:
    hold = asyncio.Event()

    def turns(step: Step) -> Reply:
        return text(f"finding {step.attempt} of {step.subtask_id}")

    shape = plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}, {"id": "t3", "after": ["t1"]})
    lab.play(script(shape, {"t1": turns, "t2": turns, "t3": first_turn(hold)}))
    handle = await lab.start()
    await until(partial(is_in, handle, "completed", "t2"))
    await until(lab.sent("t3/1/turn.1"))
    await say(handle, "retry_subtask", subtask_id="t1", instruction="in kilograms", by="ann")
    await until(lab.sent("t1/2/turn.1"))
    await until(partial(is_in, handle, "completed", "t1"))
    hold.set()
    result = await handle.result()
    reports = {report.id: report for report in result.subtasks}
    assert (reports["t1"].attempts, reports["t1"].finding.summary) == (2, "finding 2 of t1")  # type: ignore[union-attr]
    assert {name: report.stale for name, report in reports.items()} == {"t1": False, "t2": True, "t3": True}
    again = lab.call("t1/2/turn.1").step
    assert len(again.body["messages"]) == 5  # it looked nothing up, and was sent back before
    assert "<feedback>\nin kilograms\n</feedback>" in again.prompt
    assert lab.repeated == []


async def test_a_subtask_that_a_review_reopens_meanwhile_gets_the_instruction_beside_its_feedback(lab: Lab) -> None:
    replanned, first = asyncio.Event(), plan({"id": "t1"})
    lacking = as_json({"verdicts": [{"subtask_id": "t1", "ok": False, "feedback": "no unit"}], "missing": ["a year"]})
    again = when(replanned, plan({"id": "t2"}))
    usual = with_replies(script(first), plan=lambda step: first if step.call.endswith("plan.1.1") else again)
    lab.play(with_replies(usual, review=lambda step: lacking if step.call.endswith("review.1") else verdicts()))
    handle = await lab.start(max_reviews=2, max_replans=1)
    await until(lambda: any(step.startswith("plan.2") for step in lab.steps))
    await say(handle, "retry_subtask", subtask_id="t1", instruction="in kilograms", by="ann")
    replanned.set()
    assert (await handle.result()).status == "completed"
    assert "<feedback>\nno unit\nin kilograms\n</feedback>" in lab.call("t1/2/turn.1").step.prompt


# --- skip_subtask -------------------------------------------------------------------------------------------


async def test_a_subtask_is_skipped_with_what_it_has(lab: Lab) -> None:
    shape = plan({"id": "t1"}, {"id": "t2", "after": ["t1", "t4"]}, {"id": "t3", "after": ["t1"]}, {"id": "t4"})
    lab.play(script(shape, {"t1": in_order(LOOK, hang())}))
    handle = await lab.start(max_replans=1)
    await until(lab.sent("t1/1/turn.2"))
    await say(handle, "skip_subtask", subtask_id="t3")
    await say(handle, "skip_subtask", subtask_id="t1", by="ann", comment="too slow")
    result = await handle.result()
    reports = {report.id: report for report in result.subtasks}
    assert {name: report.state for name, report in reports.items()} == {
        "t1": "skipped", "t2": "completed", "t3": "skipped", "t4": "completed",
    }  # fmt: skip
    assert reports["t1"].error is not None
    assert reports["t1"].error.message == "ann skipped it: too slow"
    assert {gap.subtask_id: gap.reason for gap in result.gaps} == {
        "t1": "ann skipped it: too slow", "t3": "a person skipped it",
    }  # fmt: skip
    await until(lambda: lab.call("t1/1/turn.2").aborted_at is not None)
    assert "plan.2.1" not in lab.steps  # nobody asked for a replacement
    assert not [step for step in lab.steps if step.startswith("t3/")]


# --- nested runs, resets, refusals --------------------------------------------------------------------------


async def test_nested_runs_pause_and_hear_with_their_root(lab: Lab) -> None:
    hold = asyncio.Event()
    plans = {
        "": subtasks(item("t1", "storey"), item("t2")),
        "t1/1": subtasks(item("f1", "walker"), {**item("f2", "walker"), "depends_on": ["f1"]}),
    }
    lab.play(tree(plans, **{"f1/1/turn.1": when(hold, text("found by f1"))}))
    handle = await lab.start(team="house", max_depth=2)
    await until(lab.sent("t1/1/f1/1/turn.1"))
    await until(partial(is_in, handle, "completed", "t2"))
    below = nested_handle(lab.client, f"{lab.run_id}/t1/1")
    assert lab.run_id in await refusal(say(below, "pause"))
    await say(handle, "pause")
    await until(partial(_paused, below))
    hold.set()
    await until(partial(is_in, below, "completed", "f1"))
    refused = await refusal(say(handle, "steer", text=WORD, to="t1/f2"))
    assert f"'t1/f2' is in a nested run: send this to '{lab.run_id}/t1/1', as 'f2'" in refused
    assert lab.run_id in await refusal(say(below, "resume"))
    await say(handle, "steer", text=WORD)
    await say(below, "steer", text="Mind the medlars", to="f2")
    await say(handle, "resume")
    assert (await handle.result()).status == "completed"
    assert heard(lab) == dict.fromkeys(["t1/1/f2/1/turn.1", "t1/1/synthesis.1", "synthesis.1"], 1)
    assert heard(lab, "medlars") == {"t1/1/f2/1/turn.1": 1}
    assert lab.repeated == []


async def _paused(handle: Handle) -> bool:
    return (await status_of(handle)).flags.paused


async def test_what_is_refused_says_what_is_current(lab: Lab) -> None:
    hold, writing = asyncio.Event(), asyncio.Event()
    shape = plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t2"]})
    lab.play(script(shape, {"t2": first_turn(hold)}, when(writing, answer())))
    handle = await lab.start()
    await until(partial(is_in, handle, "completed", "t1"))
    await until(lab.sent("t2/1/turn.1"))
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("steer", {"text": "x", "to": "t11"}, "did you mean 't1'"),
        ("steer", {"txt": "x"}, "did you mean 'text'"),
        ("retry_subtask", {"subtask_id": "t2"}, "has not ended: steer it, or skip it first"),
        ("skip_subtask", {"subtask_id": "t1"}, "has ended already: it is completed"),
        ("pause", {"now": "maybe"}, "now"),
    ]
    for update, fields, sentence in refused:
        assert sentence in await refusal(say(handle, update, **fields))
    hold.set()
    await until(lab.sent("synthesis.1"))
    assert "too late" in await refusal(say(handle, "retry_subtask", subtask_id="t1"))
    writing.set()
    assert (await handle.result()).status == "completed"
