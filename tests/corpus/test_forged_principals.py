"""Callers that are not who they say: each is refused and counted, and the run they aim at ends as it would have."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, FailureError

from activities.store.artifacts import open_store
from runtime.settings import Settings
from standin.server.api_reply import ApiReply
from supervision.contract.result import RunResult
from supervision.store_keys import is_team
from tests.corpus.foreign import EVIL
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, text
from tests.workflow import runs

USAGE = {"model_calls": 0}


async def forged(client: Client, kind: str, name: str, queue: str, *arguments: Any) -> tuple[str | None, str]:
    """Returns type and message of the failure that a forged call ends with."""
    with pytest.raises(WorkflowFailureError) as caught:
        await client.execute_workflow(
            "Forger", args=[kind, name, queue, list(arguments)], id=f"forger-{uuid4().hex[:8]}", task_queue=EVIL
        )
    return innermost(caught.value.cause)


def innermost(error: BaseException) -> tuple[str | None, str]:
    while isinstance(error, (ActivityError, ChildWorkflowError)) and isinstance(error.cause, FailureError):
        error = error.cause
    assert isinstance(error, ApplicationError), error
    return error.type, error.message


def worker_agent(run: str, store_id: str, team_ref: str, **fields: Any) -> dict[str, Any]:
    """The input of a worker agent that reads another run's goal and result."""
    return {
        "run": {"run_id": run, "store_id": store_id},
        "team_ref": team_ref,
        "role": {"name": "writer", "model": "claude-opus-5-5", "tools": []},
        "subtask_id": "t1",
        "attempt": 1,
        "max_turns": 10**9,
        "tools_queue": "supervisor",
        "expires_at": "9000-01-01T00:00:00Z",
        "brief": {"goal_ref": f"{run}/goal", "plan_ref": f"{run}/plan", "subtask_id": "t1"},
        **fields,
    }


@pytest.mark.usefixtures("worker", "foreign")
async def test_a_worker_agent_without_a_supervisor_reads_nothing(
    client: Client, model: ScriptedModel, settings: Settings, victim: RunResult, run_id: str
) -> None:
    store = open_store(settings.artifacts_url)
    team_ref = next(key for key in await store.list_keys(f"{run_id}/") if is_team(key, run_id))
    loot = worker_agent(run_id, await store.identity(), team_ref)
    before = len(model.calls)
    with pytest.raises(WorkflowFailureError) as caught:
        await client.execute_workflow("WorkerAgentWorkflow", loot, id=f"{run_id}/forged", task_queue="supervisor")
    assert innermost(caught.value.cause)[0] == "NotGranted"
    assert (await forged(client, "child", "WorkerAgentWorkflow", "supervisor", loot))[0] == "NotGranted"
    assert len(model.calls) == before


@pytest.mark.usefixtures("worker", "foreign")
async def test_a_forged_parent_gets_no_nested_supervisor(
    client: Client, settings: Settings, victim: RunResult, run_id: str
) -> None:
    store = open_store(settings.artifacts_url)
    before = await store.list_keys(f"{run_id}/")
    nested = {
        "root_id": run_id,
        "store_id": await store.identity(),
        "subtask_id": "t1",
        "depth": -1000,
        "brief": {"goal_ref": f"{run_id}/goal", "plan_ref": f"{run_id}/plan", "subtask_id": "t1"},
    }
    kind, message = await forged(
        client, "child", "SupervisorWorkflow", "supervisor", {"goal": "EVIL GOAL", "team": "lab"}, nested
    )
    assert kind == "InvalidRequest", message
    assert await store.list_keys(f"{run_id}/") == before


def activity_inputs(run: dict[str, str]) -> dict[str, tuple[str, list[Any]]]:
    """Every activity of ours, with an input that aims at another run."""
    base = {"run": run, "goal_ref": f"{run['run_id']}/outputs/a", "plan_ref": f"{run['run_id']}/outputs/b"}
    asked = {**base, "model": "m"}
    turn = {"run": run, "team_ref": f"{run['run_id']}/team.x", "role": "writer", "max_tokens": 9}
    call = {"call_id": "c", "name": "t", "arguments_sha256": ""}
    failed = {"type": "TurnLimit", "message": ""}
    result = {"status": "completed", "answer": "FORGED: transfer the money", "usage": USAGE}
    request = {"goal": "EVIL GOAL", "team": "lab"}
    return {
        "prepare_run": ("supervisor", [{"run": run, "request": request}]),
        "publish_result": ("supervisor", [{"run": run, "result": result}, []]),
        "adopt_finding": ("supervisor", [{"run": run, "text_ref": f"{run['run_id']}/outputs/a"}]),
        "pool_backlog": ("supervisor", [{"run": run, "queue": "supervisor"}]),
        "run_tool": ("supervisor", [{**turn, "head": f"{run['run_id']}/x/1", "call": call}]),
        "call_model": ("supervisor-model", [{**turn, "model": "m", "step": "turn.1", "head": f"{run['run_id']}/x/1"}]),
        "plan": ("supervisor-model", [{**asked, "team_ref": f"{run['run_id']}/team.x", "max_subtasks": 3}]),
        "refine": ("supervisor-model", [{**asked, "subtask_id": "t1", "role": "r", "attempt": 1, "error": failed}]),
        "review": ("supervisor-model", [{**asked, "round": 1, "findings": []}]),
        "judge": (
            "supervisor-model",
            [{**asked, "number": 1, "question": "select", "description": "", "findings": []}],
        ),
        "synthesize": ("supervisor-model", [{**asked, "findings": [], "max_tokens": 9}]),
    }


@pytest.mark.usefixtures("worker", "foreign")
@pytest.mark.parametrize("name", list(activity_inputs({"run_id": "", "store_id": ""})))
async def test_no_activity_serves_a_foreign_workflow(
    client: Client, model: ScriptedModel, settings: Settings, victim: RunResult, run_id: str, name: str
) -> None:
    store = open_store(settings.artifacts_url)
    objects = {key: await store.get(key) for key in await store.list_keys(f"{run_id}/")}
    before = len(model.calls)
    queue, arguments = activity_inputs({"run_id": run_id, "store_id": await store.identity()})[name]
    kind, message = await forged(client, "activity", name, queue, *arguments)
    assert kind == "NotGranted", message
    assert len(model.calls) == before
    assert {key: await store.get(key) for key in await store.list_keys(f"{run_id}/")} == objects


@pytest.mark.usefixtures("worker")
async def test_a_run_with_an_id_used_before_leaves_the_first_one_as_it_was(
    client: Client, model: ScriptedModel, settings: Settings, victim: RunResult, run_id: str
) -> None:
    store = open_store(settings.artifacts_url)
    objects = {key: await store.get(key) for key in await store.list_keys(f"{run_id}/")}
    model.play(run_id, script(plan(answer="something else")))
    second = await runs.run(client, run_id, team="lab", goal="another goal")
    assert second.result_ref != victim.result_ref
    assert {key: await store.get(key) for key in objects} == objects


@pytest.mark.usefixtures("worker")
async def test_a_rewritten_result_is_noticed(settings: Settings, victim: RunResult) -> None:
    store = open_store(settings.artifacts_url)
    assert victim.result_ref is not None
    await store.put(victim.result_ref, b'{"status": "completed", "answer": "FORGED", "usage": {}}')
    with pytest.raises(Exception, match="somebody changed it"):
        await store.get(victim.result_ref)


@pytest.mark.usefixtures("worker")
async def test_a_forged_report_changes_nothing(client: Client, model: ScriptedModel, run_id: str) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    def turn(step: Step) -> Reply:
        async def reply() -> ApiReply:
            asked.set()
            await go_on.wait()
            return await text("the truth")()

        return reply

    model.play(run_id, script(plan({"id": "t1", "role": "counter"}), {"t1": turn}))
    handle = await runs.start(client, run_id, team="lab")
    await asked.wait()
    fake = {"phase": "failed", "counts": {"total": 2_000, "failed": 2_000}, "usage": {"model_calls": 9}}
    for key in ("", "guess"):
        forged = {"subtask_id": "t1", "report_key": key}
        await handle.signal("nested_report", {**forged, "run": fake, "flags": {"waiting_human": True}})
        await handle.signal("nested_request", {**forged, "number": 1, "tokens": 10**9})
        terms = {"grant": {"tokens": 10**9}, "deadline_at": "2000-01-01T00:00:00Z", "root_has_finding": True}
        await handle.signal("nested_terms", {"report_key": key, **terms})
    shown = await runs.status_of(handle)
    assert (shown.subtasks[0].nested, shown.flags.waiting_human, shown.usage.model_calls) == (None, False, 1)
    assert shown.limits.budget_tokens == 1_000_000
    go_on.set()
    result = await handle.result()
    assert (result.status, [subtask.nested for subtask in result.subtasks]) == ("completed", [None])


@pytest.mark.usefixtures("worker", "foreign")
async def test_a_squatter_on_the_ids_of_children_cannot_end_a_run(
    client: Client, model: ScriptedModel, run_id: str
) -> None:
    squatters = [
        await client.start_workflow(
            "Forger", args=["activity", "none", "nobody", []], id=f"{run_id}/t1/{attempt}", task_queue="nobody-polls"
        )
        for attempt in (1, 2, 3)
    ]
    model.play(run_id, script(plan({"id": "t1", "role": "counter"}), {"t1": lambda step: text("the truth")}))
    result = await runs.run(client, run_id, team="lab")
    assert (result.status, result.subtasks[0].attempts) == ("completed", 1)
    for squatter in squatters:
        await squatter.terminate()
