"""Callers that are not who they say, and roles that ask for tools that are not theirs: each is refused and counted."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, FailureError

from activities.teams.team_files import TeamFiles
from activities.teams.toolbox import Toolbox
from activities.tools.tool import Arguments, Tool, ToolContext, ToolOutput
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.supervision.base.store_keys import is_named
from temporal_supervisor.supervision.contract.result import RunResult
from tests.scripted_model import Reply, Step, plan, script, text
from tests.serving import store_of
from tests.workflow import runs
from tests.workflow.runs import Lab


def innermost(error: BaseException) -> tuple[str | None, str]:
    while isinstance(error, (ActivityError, ChildWorkflowError)) and isinstance(error.cause, FailureError):
        error = error.cause
    assert isinstance(error, ApplicationError), error
    return error.type, error.message


def worker_agent(run: str, ref: dict[str, str], team_ref: str) -> dict[str, Any]:
    """The input of a worker agent that reads another run's goal and result."""
    return {
        "run": ref,
        "team_ref": team_ref,
        "role": {"name": "writer", "model": "claude-opus-5-5", "tools": []},
        "subtask_id": "t1",
        "attempt": 1,
        "max_turns": 10**9,
        "tools_queue": "supervisor",
        "expires_at": "9000-01-01T00:00:00Z",
        "brief": {"plan_ref": f"{run}/plan", "subtask_id": "t1"},
    }


async def test_a_worker_agent_without_a_supervisor_reads_nothing(
    lab: Lab, settings: Settings, victim: RunResult
) -> None:
    """Even with all references of a run, its grant among them, under an id as its own children have."""
    keys = await (await store_of(lab.client, settings.artifacts_url)).list_keys(f"{lab.run_id}/")
    own = await run_ref(lab.client, settings, lab.run_id)
    loot = worker_agent(lab.run_id, own, next(key for key in keys if is_named("team", key, lab.run_id)))
    before = len(lab.model.calls)
    with pytest.raises(WorkflowFailureError) as caught:
        await lab.client.execute_workflow("WorkerAgentWorkflow", loot, id=f"{lab.run_id}/t1/9", task_queue="supervisor")
    assert innermost(caught.value.cause) == ("InvalidRequest", "worker agents are started by a SupervisorWorkflow only")
    assert len(lab.model.calls) == before


async def test_a_nested_supervisor_without_a_parent_does_not_begin(
    lab: Lab, settings: Settings, victim: RunResult
) -> None:
    store = await store_of(lab.client, settings.artifacts_url)
    before = await store.list_keys(f"{lab.run_id}/")
    nested = {
        "run": await run_ref(lab.client, settings, lab.run_id),
        "subtask_id": "t1",
        "depth": -1000,
        "brief": {"plan_ref": f"{lab.run_id}/plan", "subtask_id": "t1"},
        "grant": {"tokens": 10**9, "usd": 10**3, "slots": 200, "subtasks": 1000},
    }
    with pytest.raises(WorkflowFailureError) as caught:
        await lab.client.execute_workflow(
            "SupervisorWorkflow",
            args=[{"goal": "EVIL GOAL", "team": "lab"}, nested],
            id=f"{lab.run_id}/t1/9",
            task_queue="supervisor",
        )
    assert innermost(caught.value.cause)[0] == "InvalidRequest"
    assert await store.list_keys(f"{lab.run_id}/") == before


async def run_ref(client: Client, settings: Settings, run_id: str) -> dict[str, str]:
    """Returns what the activities of a run are given of it."""
    store = await store_of(client, settings.artifacts_url)
    keys = await store.list_keys(f"{run_id}/")
    calls = [key for key in keys if key.count("/") == 4]
    grant_ref = next(key for key in keys if is_named("grant", key, run_id))
    first_run_id = calls[0].split("/")[1]
    return {"run_id": run_id, "store_id": await store.begin(), "first_run_id": first_run_id, "grant_ref": grant_ref}


async def test_a_run_with_an_id_used_before_leaves_the_first_one_as_it_was(
    lab: Lab, settings: Settings, victim: RunResult
) -> None:
    store = await store_of(lab.client, settings.artifacts_url)
    objects = {key: await store.get(key) for key in await store.list_keys(f"{lab.run_id}/")}
    lab.play(script(plan(answer="something else")))
    second = await lab.run(goal="another goal")
    assert second.result_ref != victim.result_ref
    assert {key: await store.get(key) for key in objects} == objects


async def test_a_rewritten_result_is_noticed(lab: Lab, settings: Settings, victim: RunResult) -> None:
    store = await store_of(lab.client, settings.artifacts_url)
    assert victim.result_ref is not None
    await store.put(victim.result_ref, b'{"status": "completed", "answer": "FORGED", "usage": {}}')
    with pytest.raises(Exception, match="it was changed"):
        await store.get(victim.result_ref)


async def test_a_forged_report_changes_nothing(lab: Lab) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    def turn(step: Step) -> Reply:
        async def reply() -> ApiReply:
            asked.set()
            await go_on.wait()
            return await text("the truth")()

        return reply

    lab.play(script(plan({"id": "t1", "role": "counter"}), {"t1": turn}))
    handle = await lab.start()
    await asked.wait()
    for child in (f"{lab.run_id}/t1/1", f"{lab.run_id}/t9/1", ""):
        fake = {"workflow_id": child, "waits": 3, "waits_for_people": True, "spent": {"model_calls": 9}}
        await handle.signal("nested_report", fake)
    root_time = {"number": 9, "words": ["FORGED"], "deadline_at": "2000-01-01T00:00:00Z"}
    await handle.signal("instructions", root_time)  # a root has none above it
    shown = await runs.status_of(handle)
    assert (shown.subtasks[0].nested, shown.flags.waiting_person, shown.usage.model_calls) == (None, False, 1)
    assert datetime.fromisoformat(shown.deadline_at) > datetime.now(UTC)
    go_on.set()
    result = await handle.result()
    assert (result.status, [subtask.nested for subtask in result.subtasks]) == ("completed", [None])
    assert not any("FORGED" in str(call.step.body) for call in lab.calls)


async def test_a_squatter_on_the_ids_of_children_cannot_end_a_run(lab: Lab) -> None:
    await lab.client.start_workflow("Squatter", id=f"{lab.run_id}/t1/1", task_queue="nobody-polls")
    lab.play(script(plan({"id": "t1", "role": "counter"}), {"t1": lambda step: text("the truth")}))
    result = await lab.run()
    assert (result.status, result.subtasks[0].attempts) == ("completed", 1)


TEAMS = Path(__file__).parents[2] / "teams"
LOOK_ALIKES = str.maketrans({"a": "\u0430", "c": "\u0441", "e": "\u0435", "o": "\u043e"})  # Cyrillic
DISGUISES: dict[str, Callable[[str], str]] = {
    "capitals": str.upper,
    "one letter less": lambda name: name[:-1],
    "one letter more": lambda name: f"{name}s",
    "hyphens": lambda name: name.replace("_", "-").title(),
    "blank behind": lambda name: f"{name} ",
    "line end": lambda name: f"{name}\n",
    "zero width": lambda name: f"{name[:2]}\u200b{name[2:]}",
    "full width": lambda name: "".join(chr(ord(letter) + 0xFEE0) for letter in name),
    "other script": lambda name: name.translate(LOOK_ALIKES),
    "with its team": lambda name: f"default/{name}",
    "path": lambda name: f"../default/{name}",
    "NUL": lambda name: f"{name}\x00",
    "attribute": lambda name: f"{name}.run",
}


class AnyArguments(Arguments):
    """None that matter."""


def counting(names: list[str], ran: list[str]) -> Toolbox:
    def tool(name: str) -> Tool[Any]:
        async def run(arguments: AnyArguments, context: ToolContext) -> ToolOutput:
            ran.append(name)
            return ToolOutput("done")

        return Tool(name, "Counts.", AnyArguments, run)

    return Toolbox(map(tool, names))


async def test_a_role_runs_its_own_tools_by_their_very_names(caplog: pytest.LogCaptureFixture) -> None:
    team = await TeamFiles([TEAMS]).load("almanac")
    caplog.set_level(logging.WARNING)
    ran: list[str] = []
    tools = counting(team.toolbox.names(), ran)
    for role in team.team.roles:
        for name in tools.names():
            for spelt in (name, *(disguise(name) for disguise in DISGUISES.values()), "", "finish"):
                ran.clear()
                caplog.clear()
                outcome = await tools.run(role, spelt, {}, ToolContext())
                allowed = spelt in role.tools
                assert (ran == [name], outcome.is_error) == (allowed, not allowed), (role.name, spelt)
                assert len(caplog.records) == (not allowed), (role.name, spelt)
    assert len(tools.names()) == 7
