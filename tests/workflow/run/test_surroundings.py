"""Runs in surroundings that are not as they should be: the server, the store, the split of processes."""

import contextlib
import functools
from typing import Any

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client, WorkflowFailureError

import worker_main
from runtime import search_attributes
from runtime.connection import connect
from runtime.server.embedded_server import EmbeddedServer
from runtime.settings import Settings
from tests.conftest import LAB
from tests.scripted_model import ScriptedModel, plan, script, text, tools
from tests.workflow import runs

run = functools.partial(runs.run, team="lab")


@contextlib.asynccontextmanager
async def processes(client: Client, settings: Settings, *groups: list[Any]) -> Any:
    """One set of Workers for each group of roles, as so many processes would be."""
    attributes = await search_attributes.ensure(client)
    async with contextlib.AsyncExitStack() as stack:
        for roles in groups:
            for worker in worker_main.compose(client, settings, roles, attributes):
                await stack.enter_async_context(worker)
        yield attributes


def settings_for(model: ScriptedModel, artifacts: object) -> Settings:
    return Settings(_env_file=None, artifacts_url=str(artifacts), teams_dir=LAB, ANTHROPIC_BASE_URL=model.url)


async def test_an_attribute_of_another_type_is_left_alone_and_the_run_warns(
    model: ScriptedModel, run_id: str, tmp_path: Any
) -> None:
    model.play(run_id, script(plan({"id": "t1"})))
    async with EmbeddedServer(shared=False, headless=True) as server:
        client = await connect(address=server.address)
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default",
                search_attributes={"SupervisorPhase": IndexedValueType.INDEXED_VALUE_TYPE_INT},
            )
        )
        async with processes(client, settings_for(model, tmp_path), ["workflows", "model", "tools"]) as usable:
            assert "SupervisorPhase" not in usable
            result = await run(client, run_id)
            assert result.status == "completed"
            assert any("SupervisorPhase" in warning for warning in result.warnings)
            described = await client.get_workflow_handle(run_id).describe()
            assert (await described.memo())["phase"] == "done"
            assert described.search_attributes["SupervisorTeam"] == ["lab"]


async def test_the_roles_may_be_split_over_processes(model: ScriptedModel, run_id: str, tmp_path: Any) -> None:
    shape = plan({"id": "t1", "role": "counter"}, {"id": "t2"})
    go = tmp_path / "go"
    go.touch()

    def slow(step: Any) -> Any:
        return tools(("wait_for_file", {"path": str(go)})) if step.number == 1 else text("there")

    def quick(step: Any) -> Any:
        return tools(("lookup", {"query": "x"})) if step.number == 1 else text("found")

    model.play(run_id, script(shape, {"t1": slow, "t2": quick}))
    async with EmbeddedServer(shared=False, headless=True) as server:
        client = await connect(address=server.address)
        async with processes(client, settings_for(model, tmp_path / "a"), ["workflows"], ["model"], ["tools"]):
            result = await run(client, run_id)
            assert result.status == "completed"
            history = await client.get_workflow_handle(f"{run_id}/t1/1").fetch_history()
            queues = {
                event.activity_task_scheduled_event_attributes.task_queue.name
                for event in history.events
                if event.HasField("activity_task_scheduled_event_attributes")
            }
            assert queues == {"supervisor-model", "supervisor-tools"}


async def test_a_worker_with_another_store_never_answers_for_a_run(
    model: ScriptedModel, run_id: str, tmp_path: Any
) -> None:
    model.play(run_id, script(plan({"id": "t1"})))
    async with EmbeddedServer(shared=False, headless=True) as server:
        client = await connect(address=server.address)
        ours, other = settings_for(model, tmp_path / "ours"), settings_for(model, tmp_path / "other")
        async with processes(client, ours, ["workflows"]), processes(client, other, ["model", "tools"]):
            with pytest.raises(WorkflowFailureError) as caught:
                await run(client, run_id, deadline="PT6S")
        assert "store" in str(caught.value.cause)
        assert model.of(run_id) == []
