"""Files of a run reach the tools of its roles, those of nested supervisors too."""

import asyncio
import shutil
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.files.manifest import MANIFEST_TYPE, Manifest, found_files, put_files
from examples.office_files import pdf_bytes
from runtime.paths import cache_dir
from runtime.settings import Settings
from supervision.base.store_keys import output_key
from supervision.contract.request import Attachment
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, text, tools, when
from tests.serving import store_of
from tests.waiting import until
from tests.workflow.runs import start

CALLS = {
    "analyst": tools(("query_data", {"sql": 'SELECT sum("Net (€)") AS total FROM t_order'})),
    "reader": tools(("search_documents", {"query": "rent"})),
}
SEEN = {"analyst": "| 1250 |", "reader": "[lease.pdf p. 2]"}


@pytest.fixture
async def attached(client: Client, settings: Settings, tmp_path: Path) -> Attachment:
    """The attachment that `run --data FOLDER` makes."""
    (tmp_path / "order.csv").write_bytes("Region;Net (€)\nSüd;1.237,50\nNord;12,50\n".encode("cp1252"))
    (tmp_path / "lease.pdf").write_bytes(pdf_bytes(["Between A and B", "The rent is 900 EUR"]))
    (tmp_path / "broken.xlsx").write_bytes(b"no spreadsheet")
    ref = await put_files(await store_of(client, settings.artifacts_url), found_files([tmp_path]))
    return Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)


def turns(role: str) -> object:
    def reply(step: Step) -> Reply:
        if step.number == 1:
            return CALLS[role]
        return text("found it" if SEEN[role] in step.prompt else f"not there: {step.prompt}")

    return reply


TURNS = {"t1": turns("analyst"), "t2": turns("reader")}
SHAPE = plan({"id": "t1", "role": "analyst"}, {"id": "t2", "role": "reader"})


@pytest.mark.usefixtures("worker")
async def test_the_roles_of_a_nested_supervisor_see_them(
    client: Client, model: ScriptedModel, run_id: str, attached: Attachment
) -> None:
    office = {
        "name": "office",
        "description": "Answers from an archive.",
        "generalist": "archive",
        "roles": [{"name": "archive", "description": "The archive.", "capabilities": ["files"], "team": "files"}],
    }
    below = script(SHAPE, {"t1": lambda step: TURNS[step.call.split("/")[3]](step)})  # type: ignore[operator]

    def reply(step: Step) -> Reply:
        outer = plan({"id": "t1", "role": "archive"})
        return outer if step.kind == "plan" and step.subtask_id is None else below(step)

    model.play(run_id, reply)
    result = await (await start(client, run_id, office, attachments=[attached])).result()
    (nested,) = (subtask.nested for subtask in result.subtasks)
    assert nested is not None
    assert (nested.status, nested.counts.completed) == ("completed", 2)
    last = [call.step for call in model.of(run_id) if call.step.kind == "turn" and call.step.number == 2]
    assert all(any(seen in step.prompt for step in last) for seen in SEEN.values())


@pytest.mark.usefixtures("worker", "short_rest")
async def test_a_file_that_is_deleted_from_the_store_meanwhile_is_named(
    client: Client, model: ScriptedModel, run_id: str, attached: Attachment, settings: Settings
) -> None:
    released = asyncio.Event()
    usual = script(SHAPE, TURNS)  # type: ignore[arg-type]
    model.play(run_id, lambda step: when(released, usual(step)) if step.kind == "plan" else usual(step))
    handle = await start(client, run_id, "files", attachments=[attached], max_replans=0)
    await until(lambda: bool(model.of(run_id)))
    store = await store_of(client, settings.artifacts_url)
    manifest = Manifest.model_validate_json(await store.get(attached.ref or ""))
    (part,) = next(file.parts for file in manifest.files if file.name == "order.csv")
    await store.delete(output_key(run_id, part.rpartition("/")[2]))
    shutil.rmtree(cache_dir())
    released.set()
    result = await handle.result()
    read = "1 of 3 files can't be read: broken.xlsx (it is no spreadsheet that can be read: "
    assert result.warnings[0].startswith(read)
    assert result.subtasks[1].finding
    assert result.subtasks[1].finding.summary == "found it"
    (answered,) = (call.step.prompt for call in model.of(run_id) if call.step.call.endswith("/t1/1/turn.2"))
    assert "order.csv: it is no longer stored" in answered
