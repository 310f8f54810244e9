"""The runs whose histories are kept: together they pass through every branch of the two workflows."""

import asyncio
import contextlib
import functools
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory

from temporal_supervisor.supervision.base.prompt_marks import FINISH_TOOL
from temporal_supervisor.supervision.contract.updates import ExtendLimits, NewBudget, Resume
from tests.scripted_model import (
    Reply,
    Script,
    ScriptedModel,
    Step,
    answer,
    as_json,
    hang,
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
from tests.workflow.resets import reset, workflow_tasks
from tests.workflow.runs import Handle, is_in, waits_for_provider
from tests.workflow.scripts import GIVES_UP, Turns, in_order, item, plans, reviewed, subtasks, verdicts, with_replies
from tests.workflow.subtasks.trees import PLANS, one_waits, tree
from workflows.supervisor import SupervisorWorkflow

SMALL_HISTORIES = {"limit.historyCount.suggestContinueAsNew": 60}
"""Of the server that scenarios are played on: a worker agent of 30 turns continues as new."""

Meanwhile = Callable[[Client, Handle, ScriptedModel], Awaitable[Handle | None]]


@dataclass(frozen=True)
class Scenario:
    """A run: what is asked of which team, how the model answers, what happens to it meanwhile.

    What happens may leave another execution of the run to wait for: `meanwhile` returns its handle then.
    """

    script: Script
    fields: dict[str, Any] = field(default_factory=dict)
    meanwhile: Meanwhile | None = None
    team: str | dict[str, Any] = "lab"


async def play(client: Client, model: ScriptedModel, name: str, run_id: str) -> list[WorkflowHistory]:
    """Plays a scenario to its end; returns the histories of all its executions, the run's first."""
    scenario = scenarios()[name]
    model.play(run_id, scenario.script)
    fields = {"goal": f"scenario {name}", "max_reviews": 2, **scenario.fields}
    handle = await runs.start(client, run_id, scenario.team, **fields)
    if scenario.meanwhile:
        handle = await scenario.meanwhile(client, handle, model) or handle
    with contextlib.suppress(WorkflowFailureError):
        await handle.result()
    return await _histories(client, run_id)


async def _histories(client: Client, workflow_id: str, execution: str | None = None) -> list[WorkflowHistory]:
    """Returns the histories of an execution, by default the last one, of those it continues, and of its children."""
    history = await client.get_workflow_handle(workflow_id, run_id=execution).fetch_history()
    histories = [history]
    if earlier := history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id:
        histories += await _histories(client, workflow_id, earlier)
    for event in history.events:
        if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
            child = event.child_workflow_execution_started_event_attributes.workflow_execution.workflow_id
            histories += await _histories(client, child)
    return histories


def scenarios() -> dict[str, Scenario]:
    """By name; made anew for each use, because events belong to one loop."""
    groups = (_plain, _planned, _turned, _judged, _answered, _interrupted, _nested, _people)
    return {name: scenario for group in groups for name, scenario in group().items()}


PAIR = plan({"id": "t1"}, {"id": "t2"})
NOT_SERVED = status(404, "not_found_error", "model not found")
NO_KEY = status(401, "authentication_error")
PACED = status(429, "rate_limit_error", retry_after="120")


RIVALS: dict[str, Any] = {
    "name": "rivals",
    "generalist": "quick",
    "roles": [
        {"name": "quick", "description": "Looks.", "system_prompt": "You are quick.", "effort": "low"},
        {"name": "deep", "description": "Thinks.", "system_prompt": "You are deep.", "effort": "high"},
    ],
}


def _plain() -> dict[str, Scenario]:
    """Runs that nothing happens to, and failures of subtasks."""
    diamond = plan(
        {"id": "t1"}, {"id": "t2", "role": "scribe"}, {"id": "t3", "after": ["t1", "t2"]}, {"id": "t4", "after": ["t3"]}
    )
    broken = plan({"id": "t1"}, {"id": "t2"}, {"id": "t3", "after": ["t1"]}, {"id": "t4", "after": ["t1", "t2"]})
    wide = plan(*[{"id": f"t{number}"} for number in range(60)])
    return {
        "direct_answer": Scenario(script(plan(answer="four"))),
        "diamond_with_tools": Scenario(script(diamond, {"t1": _tool_then_text}, answer(cites=["t1"]))),
        "failed_and_skipped": Scenario(script(broken, {"t1": _endless}), {"max_turns": 2}),
        "all_failed": Scenario(script(plan({"id": "t1"}), {"t1": lambda step: stop("refusal")})),
        "file_tool": Scenario(script(plan({"id": "t1", "role": "counter"}), {"t1": _file_then_text})),
        "more_at_once_than_start_together": Scenario(script(wide), {"max_subtasks": 60, "max_parallel": 60}),
    }


def _planned() -> dict[str, Scenario]:
    """Plans that are sent back, made step by step, or revised."""
    mended = script(plan({"id": "t1"}))
    finished = as_json({"finished": True, "subtasks": [], "new_roles": []})
    route = as_json({"role": "finder", "secondary_role": "scribe", "description": "Find and write it down."})
    revision = subtasks(item("t3", "scribe", replaces=["t1"], description="Ask the neighbours about it"))
    return {
        "plan_mended": Scenario(lambda step: plan() if step.number == 1 and step.kind == "plan" else mended(step)),
        "plan_invalid": Scenario(script(plan())),
        "route": Scenario(plans(route), {"strategy": "route"}),
        "steps": Scenario(
            plans(subtasks(item("t1", "finder")), subtasks(item("t2", "scribe", depends_on=["t1"])), finished),
            {"strategy": "step"},
        ),
        "replanned": Scenario(
            plans(subtasks(item("t1", "finder"), item("t2", "scribe")), revision, turns={"t1": lambda step: GIVES_UP}),
            {"success": "all", "max_turns": 1, "max_replans": 2},
        ),
    }


def _turned() -> dict[str, Scenario]:
    """The ways a worker agent's turns may go."""
    one = plan({"id": "t1"})
    looks = tools(("lookup", {"query": "pears"}))
    again = tools(("read_output", {"output": "1-1"}))
    concludes = {"outcome": "done", "summary": "44 pears", "finding": "There are 44 pears.", "confidence": 0.9}
    figures = in_order(looks, text("There are 98765 pears."), text("There are pears."))
    timed = in_order(looks, hang(), text("found at last"))
    return {
        "odd_turns": Scenario(script(one, {"t1": _odd_turns})),
        "finish_tool": Scenario(script(one, {"t1": in_order(looks, tools((FINISH_TOOL, concludes)))})),
        "read_again": Scenario(script(one, {"t1": in_order(looks, again, text("found"))})),
        "model_chain": Scenario(_second_model_only, {"models": {"supervisor": ["a", "b"], "workers": ["c", "d"]}}),
        "unsupported_figure": Scenario(script(one, {"t1": figures})),
        "last_turn": Scenario(script(one, {"t1": in_order(looks, looks, text("7 pears"))}), {"max_turns": 2}),
        "subtask_timeout": Scenario(script(one, {"t1": timed}), {"subtask_timeout": "PT2S"}),
        "continued_as_new": Scenario(script(one, {"t1": _thirty_turns}), {"max_turns": 30}),
    }


def _judged() -> dict[str, Scenario]:
    """Findings that are reviewed and chosen between."""
    pair = subtasks(item("t1"), item("t2"), item("t3", depends_on=["t2"]))
    conflict = {"subtask_ids": ["t1", "t2"], "description": "44 or 45 pears"}
    judgement = as_json({"choice": 2, "reason": "t2 counted later"})
    reviews = (verdicts([conflict], t2="the unit is missing"), verdicts())
    candidates = subtasks(item("t1", candidates=3), item("t2", depends_on=["t1"]))
    rivals = subtasks(item("t1", "quick", candidates=2, candidate_roles=["deep"]))
    return {
        "done_again_after_review": Scenario(reviewed(pair, *reviews, judge=judgement), team="house"),
        "candidates": Scenario(script(candidates), team="house"),
        "candidates_of_roles": Scenario(script(rivals), team=RIVALS),
    }


def _answered() -> dict[str, Scenario]:
    """Answers that are drafted, sent back, or cannot be written."""
    drafted = asyncio.Event()

    def draft(step: Step) -> Reply:
        drafted.set()
        return answer("a draft" if "short draft" in step.prompt else "all")

    drafts = with_replies(script(PAIR, {"t2": lambda step: when(drafted, text("late"))}), synthesis=draft)
    wrong = in_order(answer("There are 98765 pears.", ["t1"]), answer("There are pears.", ["t1"]))
    return {
        "drafts": Scenario(drafts, {"incremental_synthesis": 1}),
        "answer_sent_back": Scenario(with_replies(script(PAIR), synthesis=wrong)),
        "empty_answer": Scenario(script(PAIR, answer_reply=answer(""))),
        "paced_answer": Scenario(
            script(PAIR, answer_reply=PACED), {"deadline": "PT8S", "models": {"supervisor": "paced-supervisor"}}
        ),
    }


def _interrupted() -> dict[str, Scenario]:
    """Runs that a person, the clock or the provider interrupts."""
    refused, released = asyncio.Event(), asyncio.Event()

    def account(step: Step) -> Reply:
        return text("found") if refused.is_set() else when(released, NO_KEY)

    async def resumed(client: Client, handle: Handle, model: ScriptedModel) -> None:
        await until(functools.partial(is_in, handle, "completed", "t2"))
        released.set()
        await until(functools.partial(waits_for_provider, handle))
        refused.set()
        await handle.execute_update(SupervisorWorkflow.resume, Resume())

    held = asyncio.Event()

    async def extended(client: Client, handle: Handle, model: ScriptedModel) -> None:
        await until(lambda: "t2/1/turn.1" in model.steps(handle.id))
        await _extend(handle)
        held.set()

    async def was_reset(client: Client, handle: Handle, model: ScriptedModel) -> Handle:
        await handle.result()
        points = await workflow_tasks(handle)
        return await reset(client, handle, points[len(points) // 2])

    never: Turns = {"t2": lambda step: hang()}
    return {
        "deadline": Scenario(script(PAIR, never), {"deadline": "PT6S"}),
        "cancelled": Scenario(script(PAIR, never), meanwhile=_cancel),
        "resumed": Scenario(script(PAIR, {"t1": account}), meanwhile=resumed),
        "extended": Scenario(script(PAIR, {"t2": lambda step: when(held, text("late"))}), meanwhile=extended),
        "reset": Scenario(script(plan({"id": "t1"}, {"id": "t2", "after": ["t1"]})), meanwhile=was_reset),
    }


def _nested() -> dict[str, Scenario]:
    """Supervisors of supervisors."""
    shapes = {
        "": subtasks(item("t1", "storey"), *[item(f"t{number}") for number in range(2, 9)]),
        "t1/1": subtasks(item("f1", "bench"), *[item(f"f{number}", "walker") for number in range(2, 9)]),
        "t1/1/f1/1": PLANS["t1/1/f1/1"],
    }
    held = asyncio.Event()

    async def extended(client: Client, handle: Handle, model: ScriptedModel) -> None:
        await until(lambda: "t1/1/f1/1/l1/1/turn.1" in model.steps(handle.id))
        await _extend(handle)
        held.set()

    account = one_waits()

    async def asks_for_people(handle: Handle) -> bool:
        return (await runs.status_of(handle)).flags.waiting_person

    async def paid(client: Client, handle: Handle, model: ScriptedModel) -> None:
        await until(functools.partial(asks_for_people, handle))
        account.paid = True
        await handle.execute_update(SupervisorWorkflow.resume, Resume())

    deep: dict[str, Any] = {"max_depth": 3}
    wide: dict[str, Any] = {**deep, "max_subtasks": 30}
    late = tree(PLANS, **{"l1/1/turn.1": when(held, text("late pears"))})
    return {
        "nested": Scenario(tree(PLANS), deep, team="house"),
        "nested_on_a_small_budget": Scenario(tree(shapes), {**wide, "budget": {"tokens": 300_000}}, team="house"),
        "slot_kept_by_a_nested_run": Scenario(account.reply, {"max_parallel": 1}, paid, team="house"),
        "nested_extended": Scenario(late, deep, extended, team="house"),
        "slots_of_a_tree": Scenario(tree(shapes), {**wide, "max_parallel": 2}, team="house"),
        "nested_cancelled": Scenario(tree(PLANS, **{"l1/1/turn.1": hang()}), deep, _cancel, team="house"),
    }


async def _decide(client: Client, handle: Handle, model: ScriptedModel) -> None:
    """Decides about all that waits, until the run has ended."""
    while not await runs.closed(handle):
        await asyncio.sleep(0.05)
        for wait in await runs.waits_of(handle):
            asked = client.get_workflow_handle(wait.workflow_id)
            if wait.kind == "plan":
                choice = {"decision": "change", "comment": "more"} if wait.id == "plan.1" else {"decision": "approve"}
                await asked.execute_update("decide_plan", {"revision": int(wait.id[5:]), **choice})
            elif wait.kind == "tool":
                call = {"id": wait.id, "decision": "approve", "arguments_sha256": wait.arguments_sha256}
                await asked.execute_update("decide_tool_call", call)
            elif wait.for_decision:
                await asked.execute_update("reply", {"id": wait.id, "text": "the second"})


def _people() -> dict[str, Scenario]:
    """What people decide, and what they say to a run at work."""

    def asks(step: Step) -> Reply:
        calls = tools(("ask_person", {"question": "Which one?"}), ("send", {"to": "all", "words": "Sell"}))
        return calls if step.number == 1 else text("The second was sold")

    held = asyncio.Event()

    async def steered(client: Client, handle: Handle, model: ScriptedModel) -> None:
        await until(lambda: "t1/1/turn.1" in model.steps(handle.id))
        await handle.execute_update("steer", {"text": "only the ripe ones"})
        await handle.execute_update("pause", {"now": False})
        held.set()
        await until(functools.partial(runs.is_answered, client, f"{handle.id}"))
        await handle.execute_update("resume", {})
        await until(functools.partial(is_in, handle, "completed", "t1"))
        await handle.execute_update("retry_subtask", {"subtask_id": "t1", "instruction": "once more"})
        await handle.execute_update("skip_subtask", {"subtask_id": "t2"})

    asked = {"id": "t1", "role": "both"}
    team = "people"
    nested = tree({"": subtasks(item("t1", "group")), "t1/1": subtasks(item("n1", "both"))})

    def nested_asks(step: Step) -> Reply:
        return asks(step) if step.kind == "turn" else nested(step)

    def slow(step: Step) -> Reply:
        return when(held, text("ripe")) if step.subtask_id == "t1" else hang()

    return {
        "approved_and_asked": Scenario(
            script(plan(asked, {"id": "t2", "role": "counsel"}), {"t1": asks}), {"approve_plan": True}, _decide, team
        ),
        "nested_asked": Scenario(nested_asks, {"max_depth": 2}, _decide, team),
        "steered": Scenario(script(PAIR, {"t1": slow, "t2": slow}), meanwhile=steered),
    }


# --- turns ----------------------------------------------------------------------------------------------


def _tool_then_text(step: Step) -> Reply:
    if step.number == 1:
        return tools(("lookup", {"query": "a"}), ("lookup", {"query": "b"}), ("unknown_tool", {}))
    return text("found\n\nConfidence: 0.6\nLimitations: small sample")


def _endless(step: Step) -> Reply:
    return tools(("lookup", {"query": str(step.number)}))


def _thirty_turns(step: Step) -> Reply:
    return _endless(step) if step.number < 30 else text("found at last")


def _second_model_only(step: Step) -> Reply:
    usual = script(plan({"id": "t1"}))
    return NOT_SERVED if step.body["model"] in ("a", "c") else usual(step)


def _odd_turns(step: Step) -> Reply:
    odd = {1: stop("pause_turn", "let me see"), 2: stop("max_tokens", "cut"), 3: stop("end_turn")}
    return odd.get(step.number) or text("at last")


def _file_then_text(step: Step) -> Reply:
    if step.number > 1:
        return text("there")
    _, path = tempfile.mkstemp()  # it exists, so the tool ends at once
    return tools(("wait_for_file", {"path": path}))


# --- what happens meanwhile -----------------------------------------------------------------------------


async def _cancel(client: Client, handle: Handle, model: ScriptedModel) -> None:
    await until(lambda: len(model.of(handle.id)) >= 3)
    await handle.cancel()


async def _extend(handle: Handle) -> None:
    more = ExtendLimits(deadline=timedelta(hours=2), budget=NewBudget(tokens=2_000_000))
    await handle.execute_update(SupervisorWorkflow.extend_limits, more)
