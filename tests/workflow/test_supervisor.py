"""Runs on the real server, with the real sandbox, the real model client and a scripted model."""

import asyncio
import functools
import re
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from supervision.contract.result import RunResult
from tests.scripted_model import (
    ScriptedModel,
    Step,
    answer,
    as_json,
    plan,
    script,
    status,
    stop,
    text,
    tools,
    when,
)
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import failure, search_attribute, status_of
from workflows.supervisor import SupervisorWorkflow

start = functools.partial(runs.start, team="lab")

pytestmark = pytest.mark.usefixtures("worker")


async def test_a_goal_becomes_a_plan_findings_and_an_answer(client: Client, model: ScriptedModel, run_id: str) -> None:
    def turns(step: Step) -> Any:
        return tools(("lookup", {"query": "swans"})) if step.number == 1 else text("swans are white\n\nConfidence: 0.7")

    model.play(
        run_id, script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]}), {"t1": turns}, answer("white", ["t1"]))
    )
    handle = await start(client, run_id, metadata={"owner": "pear\n desk", "cost_centre": "7"})
    result = await handle.result()
    assert result.status == "completed"
    assert await search_attribute(handle, "SupervisorStatus") == "completed"
    assert await search_attribute(handle, "SupervisorOwner") == "pear desk"
    assert result.answer == "white About t1 [t1]."
    assert [s.state for s in result.subtasks] == ["completed", "completed"]
    first = result.subtasks[0].finding
    assert first is not None
    assert (first.summary, first.confidence, first.sources) == ("swans are white", 0.7, ["catalogue"])
    assert [c.subtask_ids for c in result.citations] == [["t1"]]
    assert result.usage.model_calls == 5
    systems = [str(call.step.body["system"]) for call in model.of(run_id)]
    assert all(re.search(r"Today is \d{4}-\d\d-\d\d\.", system) for system in systems)
    assert result.usage.tool_calls == 1
    assert model.steps(run_id) == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "t2/1/turn.1", "synthesis.1"]


async def test_a_tool_that_always_failed_is_a_warning_of_the_run(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    def turns(step: Step) -> Any:
        call = {"query": "swans"} if step.number == 2 else {"size": "many"}  # one of two succeeds
        return tools(("lookup", call)) if step.number < 3 else text("done")

    def other(step: Step) -> Any:
        return tools(("note", {})) if step.number < 3 else text("done")

    shape = plan({"id": "t1"}, {"id": "t2", "role": "scribe"})
    model.play(run_id, script(shape, {"t1": turns, "t2": other}))
    result = await (await start(client, run_id)).result()
    assert result.status == "completed"
    (warning,) = [warning for warning in result.warnings if warning.startswith("tool ")]
    assert warning.startswith("tool note failed 2 of 2 calls: Wrong arguments: text: Field required")


async def test_a_subtask_starts_the_moment_its_own_dependencies_ended(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    hold = asyncio.Event()
    shape = plan(
        {"id": "t1"},
        {"id": "t2"},
        {"id": "t3", "after": ["t1"]},
        {"id": "t4", "after": ["t2"]},
        {"id": "t5", "after": ["t3", "t4"]},
    )
    model.play(run_id, script(shape, {"t2": lambda step: when(hold, text("late"))}))
    handle = await start(client, run_id)
    await until(lambda: "t3/1/turn.1" in model.steps(run_id))
    states = {s.id: s.state for s in (await handle.query(SupervisorWorkflow.status)).subtasks}
    assert states["t1"] == "completed"
    assert states["t2"] == "running"
    assert states["t5"] == "waiting"
    hold.set()
    assert (await handle.result()).status == "completed"


@pytest.mark.usefixtures("short_rest")
async def test_a_failed_subtask_is_tried_three_times_and_named_as_a_gap(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    def endless(step: Step) -> Any:
        return tools(("lookup", {"query": f"again {step.number}"}))

    shape = plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]}, {"id": "t4", "after": ["t1", "t2"]})
    model.play(run_id, script(shape, {"t1": endless}, answer("half", ["t1", "t2"])))
    result = await (await start(client, run_id, max_turns=2)).result()
    states = {s.id: (s.state, s.attempts) for s in result.subtasks}
    assert states == {"t1": ("failed", 3), "t2": ("completed", 1), "t3": ("skipped", 0), "t4": ("completed", 1)}
    assert result.status == "partial"
    assert [gap.subtask_id for gap in result.gaps] == ["t1", "t3"]
    assert "`t1`" in result.answer
    assert [c.subtask_ids for c in result.citations] == [["t2"]]
    assert "missing" in next(c.step.prompt for c in model.of(run_id) if c.step.subtask_id == "t4")


async def test_when_no_subtask_succeeds_the_run_fails(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, script(plan({"id": "t1"}), {"t1": lambda step: stop("refusal", details={"category": "cyber"})}))
    error = await failure(await start(client, run_id))
    assert error.type == "AllSubtasksFailed"
    partial = RunResult.model_validate(error.details[0])
    assert partial.subtasks[0].error is not None
    assert partial.subtasks[0].error.type == "Refused"
    assert partial.subtasks[0].attempts == 2
    refined = [step for step in model.steps(run_id) if step.startswith("refine")]
    assert refined == ["refine.t1.2"]


async def test_a_simple_goal_is_answered_directly(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, script(plan(answer="four")))
    result = await (await start(client, run_id)).result()
    assert (result.answer, result.status, result.subtasks) == ("four", "completed", [])
    assert model.steps(run_id) == ["plan.1.1"]


@pytest.mark.parametrize(
    ("bad", "error_type", "word"),
    [
        (plan(), "NoSubtasks", "no subtasks"),
        (plan({"id": "a", "after": ["b"]}, {"id": "b", "after": ["a"]}), "InvalidPlan", "circle"),
        (plan({"id": "a", "after": ["zzz"]}), "InvalidPlan", "zzz"),
        (plan({"id": "a"}, {"id": "a"}), "InvalidPlan", "twice"),
        (plan(*[{"id": f"t{i}"} for i in range(500)]), "InvalidPlan", "500"),
        (plan({"id": "a", "description": "do"}), "InvalidPlan", "concrete"),
        (text("I would rather not say"), "InvalidPlan", "JSON"),
        (as_json([1]), "InvalidPlan", "JSON"),
    ],
    ids=["empty", "cycle", "dangling", "duplicate", "huge", "vague", "prose", "list"],
)
async def test_a_bad_plan_is_sent_back_twice_then_the_run_fails(
    client: Client, model: ScriptedModel, run_id: str, bad: Any, error_type: str, word: str
) -> None:
    model.play(run_id, script(bad))
    error = await failure(await start(client, run_id))
    assert error.type == error_type
    assert word in error.message
    assert model.steps(run_id) == ["plan.1.1", "plan.1.2", "plan.1.3"]
    assert word in model.of(run_id)[-1].step.prompt


async def test_a_mended_plan_is_used(client: Client, model: ScriptedModel, run_id: str) -> None:
    good = script(plan({"id": "a", "role": "finder"}))
    model.play(run_id, lambda step: plan() if step.call.endswith("plan.1.1") else good(step))
    assert (await (await start(client, run_id)).result()).status == "completed"


async def test_a_wrong_key_fails_the_run_with_one_request(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, lambda step: status(401, "authentication_error", "invalid x-api-key"))
    error = await failure(await start(client, run_id))
    assert error.type == "ProviderAuthentication"
    assert "ANTHROPIC_API_KEY" in error.message
    assert len(model.of(run_id)) == 1


async def test_a_key_revoked_before_the_first_finding_fails_the_run(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    refused = status(401, "authentication_error")
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {k: lambda step: refused for k in ("t1", "t2")}))
    error = await failure(await start(client, run_id))
    assert error.type == "ProviderAuthentication"


async def test_rate_limits_and_outages_are_waited_out(client: Client, model: ScriptedModel, run_id: str) -> None:
    good = script(plan({"id": "t1"}))
    faults = {1: status(429, "rate_limit_error", retry_after_ms="50"), 2: status(529, "overloaded_error")}
    model.play(run_id, lambda step: faults.get(len(model.of(run_id))) or good(step))
    own = {"supervisor": f"{run_id}-supervisor"}  # what a gate learns of a model outlives the run
    result = await (await start(client, run_id, models=own)).result()
    assert result.status == "completed"
    assert result.usage.model_calls == 3


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({}, "goal"),
        ({"goal": 5}, "goal"),
        ({"goal": "  "}, "empty"),
        ({"goal": "x" * 60_000}, "49152"),
        ([1, 2], "list"),
        ("text", "string"),
        (7, "number"),
        (None, "no input"),
        ({"goal": "x", "colour": 1}, "colour"),
        ({"goal": "x", "approve_plan": True}, "approve_plan"),
        ({"goal": "x", "on_approval_timeout": "approve"}, "on_approval_timeout"),
        ({"goal": "x", "max_depth": 4}, "max_depth"),
        ({"goal": "x", "success": "3/2"}, "fraction"),
    ],
)
async def test_bad_input_fails_the_run_at_once_and_says_why(client: Client, run_id: str, value: Any, word: str) -> None:
    handle = await client.start_workflow("SupervisorWorkflow", value, id=run_id, task_queue="supervisor")
    error = await failure(handle)
    assert error.type == "InvalidRequest"
    assert word in error.message


@pytest.mark.parametrize("inputs", [[], [{"goal": "a"}, {"goal": "b"}]], ids=["none", "two"])
async def test_no_input_and_two_inputs_fail_at_once(client: Client, run_id: str, inputs: list[Any]) -> None:
    handle = await client.start_workflow("SupervisorWorkflow", args=inputs, id=run_id, task_queue="supervisor")
    assert (await failure(handle)).type == "InvalidRequest"


async def test_zero_revisions_and_an_unknown_team(client: Client, model: ScriptedModel, run_id: str) -> None:
    error = await failure(await start(client, run_id, team="nobody", max_reviews=0))
    assert error.type == "UnknownTeam"
    assert "lab" in error.message
    assert model.of(run_id) == []


async def test_the_deadline_stops_workers_and_answers_from_what_exists(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    never = asyncio.Event()
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t2": lambda step: when(never, text("no"))}))
    handle = await start(client, run_id, deadline="PT6S")
    result = await handle.result()
    assert result.status == "partial"
    states = {s.id: s.state for s in result.subtasks}
    assert states == {"t1": "completed", "t2": "cancelled"}
    assert "DeadlineExceeded" in result.gaps[0].reason


async def test_a_cancelled_run_stops_calling_and_keeps_what_it_had(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    never = asyncio.Event()
    model.play(run_id, script(plan({"id": "t1"}, {"id": "t2"}), {"t2": lambda step: when(never, text("no"))}))
    handle = await start(client, run_id)

    async def one_completed() -> bool:
        return (await status_of(handle)).counts.completed == 1

    await until(one_completed)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    described = await handle.describe()
    assert described.status is WorkflowExecutionStatus.CANCELED
    calls = len(model.of(run_id))
    open_call = next(call for call in model.of(run_id) if call.step.subtask_id == "t2")
    await until(lambda: open_call.aborted_at is not None)
    partial = await handle.query(SupervisorWorkflow.result)
    assert {s.id: s.state for s in partial.subtasks} == {"t1": "completed", "t2": "cancelled"}
    assert "/outputs/" in (await described.memo())["partial"]["ref"]
    assert len(model.of(run_id)) == calls


async def test_queries_show_the_run(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, script(plan({"id": "t1"})))
    handle = await start(client, run_id)
    await handle.result()
    shown = await handle.query(SupervisorWorkflow.status)
    assert (shown.phase, shown.counts.completed, shown.review) == ("done", 1, "off")
    assert (await handle.query(SupervisorWorkflow.plan)).subtasks[0].id == "t1"
    events = (await handle.query(SupervisorWorkflow.trace)).events
    assert [e.type for e in events if e.subtask_id] == ["subtask_started", "subtask_completed"]
    later = await handle.query(SupervisorWorkflow.trace, events[-1].seq)
    assert later.events == []
