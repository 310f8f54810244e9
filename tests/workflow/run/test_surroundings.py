"""Runs in surroundings of their own: server, store, processes, ceilings, shared limits, files that roles read."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest

from activities.files.manifest import MANIFEST_TYPE, Manifest, found_files, put_files
from activities.store.artifacts import ArtifactStore
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base.queues import MODEL_QUEUE
from temporal_supervisor.supervision.base.store_keys import output_key
from temporal_supervisor.supervision.contract.request import Attachment
from temporal_supervisor.supervision.contract.status import Wait
from tests.office_files import pdf_bytes
from tests.scripted_model import Reply, Step, plan, script, text, tools, when
from tests.serving import address_of, own_server
from tests.waiting import until
from tests.workflow import runs
from tests.workflow.runs import Lab, found
from worker_main import serving


async def test_an_attribute_of_another_type_is_left_alone_and_the_run_warns(lab: Lab, settings: Settings) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with own_server() as client:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default", search_attributes={"SupervisorPhase": IndexedValueType.INDEXED_VALUE_TYPE_INT}
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


@pytest.mark.usefixtures("short_deadlines")
async def test_a_worker_with_another_store_never_answers_for_a_run_which_waits_for_the_right_one(
    lab: Lab, settings: Settings, tmp_path: Path
) -> None:
    lab.play(script(plan({"id": "t1"})))
    async with own_server() as client:
        other = settings.model_copy(update={"artifacts_url": str(tmp_path / "other")})
        async with serving(client, settings, ["workflows"]):
            async with serving(client, other, ["model", "tools"]):
                handle = await lab.on(client).start(deadline="PT10S")
                shown: list[Wait] = []

                async def waits() -> bool:
                    status = await runs.status_of(handle)
                    shown[:] = status.waiting
                    return status.flags.waiting_store and bool(shown)

                await until(waits)
                deadline_at = datetime.fromisoformat((await runs.status_of(handle)).deadline_at)
                await until(lambda: datetime.now(UTC) > deadline_at + timedelta(seconds=1), 30)
                try:
                    await until(waits)  # each try of the call that is held up shows its wait anew
                except TimeoutError:
                    pytest.fail(f"no wait is shown: {await runs.status_of(handle)}")
                (wait,) = shown
                assert "has no id, the run uses the store" in wait.prompt_preview
                assert lab.calls == []
            async with serving(client, settings, ["model", "tools"]):
                assert (await handle.result()).status == "completed"


async def test_no_request_and_no_update_passes_the_operators_ceilings(lab: Lab, settings: Settings) -> None:
    low = settings.model_copy(update={"max_budget_tokens": 400_000, "max_budget_usd": 2.0, "max_parallel": 1})
    hold = asyncio.Event()
    lab.play(script(plan({"id": "t1"}), {"t1": lambda step: when(hold, text("pears"))}))
    async with own_server() as client, serving(client, low):
        handle = await lab.on(client).start()
        await until(lab.sent("t1/1/turn.1"))
        status = await runs.status_of(handle)
        in_force = status.limits
        assert (in_force.budget_tokens, in_force.budget_usd, in_force.max_parallel) == (400_000, 2.0, 1)
        above = handle.execute_update("extend_limits", {"budget": {"tokens": 400_001}})
        assert "SUPERVISOR_MAX_BUDGET_TOKENS" in await runs.refusal(above)
        hold.set()
        result = await handle.result()
        assert result.status == "completed"
        assert len([warning for warning in result.warnings if "operator's ceiling" in warning]) == 3


LARGE, SMALL, BESIDE = 60, 2, 3
RPM = 900  # the test teams name two pools: a third of it is the model queue's


@pytest.mark.timeout(180)
async def test_small_runs_get_their_turn_beside_a_large_one(lab: Lab, settings: Settings) -> None:
    async with own_server() as client, serving(client, settings.model_copy(update={"model_rpm": RPM})):
        large, *small = [lab.on(client).named(f"{lab.run_id}-{number}") for number in range(1 + BESIDE)]
        for own in (large, *small):
            own.play(script(plan(*[{"id": f"t{number}"} for number in range(LARGE if own is large else SMALL)])))
        await large.start(max_subtasks=LARGE, max_parallel=LARGE)
        await until(lambda: len(large.calls) > 20, 60)
        await asyncio.gather(*(own.run() for own in small))
        waits = [wait for own in small for wait in await model_waits(own)]
        meanwhile = [start for _, start in await model_waits(large)]
    assert len(waits) == BESIDE * (2 * SMALL + 2)  # each looks nothing up, and is sent back
    # Without turns, each waits for all that the large run has queued before it.
    assert sum(scheduled < start < started for start in meanwhile for scheduled, started in waits) < LARGE / 2


@pytest.mark.timeout(120)
async def test_a_limit_is_changed_while_a_run_goes_on(lab: Lab, settings: Settings) -> None:
    lab.play(script(plan({"id": "t1"}, {"id": "t2"})))
    async with own_server() as client, serving(client, settings.model_copy(update={"model_rpm": 1})):
        handle = await lab.on(client).start()
        await until(lambda: len(lab.calls) == 1, 30)
        command = [str(find_temporal()), "task-queue", "config", "set", "--task-queue", MODEL_QUEUE]
        command += ["--task-queue-type", "activity", "--queue-rps-limit", "100"]
        command += ["--address", address_of(client)]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        result = await asyncio.wait_for(handle.result(), 30)
    assert result.timing.wall_seconds < 60  # a call a minute before


async def model_waits(lab: Lab) -> list[tuple[int, int]]:
    """Returns for each model call of a run when it was scheduled and when the server gave it to a Worker."""
    waits = []
    async for described in lab.client.list_workflows(f"WorkflowId STARTS_WITH '{lab.run_id}'"):
        history = await lab.client.get_workflow_handle(described.id, run_id=described.run_id).fetch_history()
        scheduled = {event.event_id: event for event in history.events}
        for event in history.events:
            if event.HasField("activity_task_started_event_attributes"):
                call = scheduled[event.activity_task_started_event_attributes.scheduled_event_id]
                if call.activity_task_scheduled_event_attributes.task_queue.name == MODEL_QUEUE:
                    waits.append((call.event_time.ToNanoseconds(), event.event_time.ToNanoseconds()))
    return waits


# --- files of a run ----------------------------------------------------------------------------------


CALLS = {
    "analyst": tools(("query_data", {"sql": 'SELECT sum("Net (€)") AS total FROM t_order'})),
    "reader": tools(("search_documents", {"query": "rent"})),
}
SEEN = {"analyst": "| 1250 |", "reader": "[lease.pdf p. 2]"}


@pytest.fixture
async def attached(store: ArtifactStore, tmp_path: Path) -> Attachment:
    """The attachment that `run --data FOLDER` makes."""
    (tmp_path / "order.csv").write_bytes("Region;Net (€)\nSüd;1.237,50\nNord;12,50\n".encode("cp1252"))
    (tmp_path / "lease.pdf").write_bytes(pdf_bytes(["Between A and B", "The rent is 900 EUR"]))
    (tmp_path / "broken.xlsx").write_bytes(b"no spreadsheet")
    ref = await put_files(store, found_files([tmp_path]))
    return Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)


def turns(role: str) -> Callable[[Step], Reply]:
    def reply(step: Step) -> Reply:
        if step.number == 1:
            return CALLS[role]
        return text("found it" if SEEN[role] in step.prompt else f"not there: {step.prompt}")

    return reply


SHAPE = plan({"id": "t1", "role": "analyst"}, {"id": "t2", "role": "reader"})


@pytest.mark.usefixtures("short_rest")
async def test_a_file_that_is_deleted_from_the_store_meanwhile_is_named(
    lab: Lab, store: ArtifactStore, attached: Attachment
) -> None:
    released = asyncio.Event()
    lab.play(script(when(released, SHAPE), {"t1": turns("analyst"), "t2": turns("reader")}))
    handle = await lab.start(team="files", attachments=[attached])
    await until(lambda: bool(lab.calls))
    manifest = Manifest.model_validate_json(await store.get(attached.ref or ""))
    (part,) = next(file.parts for file in manifest.files if file.name == "order.csv")
    await store.delete(output_key(lab.run_id, part.rpartition("/")[2]))
    for cached in cache_dir().glob("files-*"):  # its other folders are the developer's own database and artifacts
        shutil.rmtree(cached, ignore_errors=True)
    released.set()
    result = await handle.result()
    read = "1 of 3 files can't be read: broken.xlsx (it is no spreadsheet that can be read: "
    assert result.warnings[0].startswith(read)
    assert found(result, 1).summary == "found it"
    assert "order.csv: it is no longer stored" in lab.prompt("t1/1/turn.2")
