"""Runs in surroundings that are not as they should be: the server, the store, the split of processes."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import WorkflowFailureError

from runtime.settings import Settings
from tests.scripted_model import plan, script, text, tools
from tests.serving import own_server
from tests.workflow.runs import Lab, queues
from worker_main import serving


async def test_an_attribute_of_another_type_is_left_alone_and_the_run_warns(lab: Lab, settings: Settings) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with own_server() as client:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default",
                search_attributes={"SupervisorPhase": IndexedValueType.INDEXED_VALUE_TYPE_INT},
            )
        )
        async with serving(client, settings) as usable:
            assert "SupervisorPhase" not in usable
            result = await lab.on(client).run()
            assert result.status == "completed"
            assert any("SupervisorPhase" in warning for warning in result.warnings)
            described = await client.get_workflow_handle(lab.run_id).describe()
            assert (await described.memo())["phase"] == "done"
            assert described.search_attributes["SupervisorTeam"] == ["lab"]


async def test_the_roles_may_be_split_over_processes(lab: Lab, settings: Settings, tmp_path: Path) -> None:
    shape = plan({"id": "t1", "role": "counter"}, {"id": "t2"})
    go = tmp_path / "go"
    go.touch()

    def slow(step: Any) -> Any:
        return tools(("wait_for_file", {"path": str(go)})) if step.number == 1 else text("there")

    def quick(step: Any) -> Any:
        return tools(("lookup", {"query": "x"})) if step.number == 1 else text("found")

    lab.play(script(shape, {"t1": slow, "t2": quick}))
    async with (
        own_server() as client,
        serving(client, settings, ["workflows"]),
        serving(client, settings, ["model"]),
        serving(client, settings, ["tools"]),
    ):
        result = await lab.on(client).run()
        assert result.status == "completed"
        assert set(await queues(client, f"{lab.run_id}/t1/1")) == {"supervisor-model", "supervisor-tools"}


@pytest.mark.usefixtures("short_deadlines")
async def test_a_worker_with_another_store_never_answers_for_a_run(
    lab: Lab, settings: Settings, tmp_path: Path
) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with own_server() as client:
        other = settings.model_copy(update={"artifacts_url": str(tmp_path / "other")})
        async with serving(client, settings, ["workflows"]), serving(client, other, ["model", "tools"]):
            with pytest.raises(WorkflowFailureError) as caught:
                await lab.on(client).run(deadline="PT3S")
        assert "store" in str(caught.value.cause)
        assert lab.calls == []
