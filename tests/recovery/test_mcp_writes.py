"""kill -9 of the Worker in calls of a writing MCP server: each note is written once, and its loss is said."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.activity.tools.test_mcp import SECRET, SERVERS, Shop
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools
from tests.serving import WorkerProcesses
from tests.waiting import until
from tests.workflow.plan.test_approval import asked
from tests.workflow.runs import Lab
from tests.workflow.subtasks.test_people import reply

NOTES = int(os.environ.get("MCP_NOTES", "2"))  # of which all but the last are cut short by a kill


async def _team(folder: Path) -> Path:
    """Writes the team with its pins, and returns the ledger of its server."""
    folder.mkdir()
    shop = Shop(folder)
    args = json.dumps([str(SERVERS / "benign.py"), str(shop.ledger)])
    trusted = {"note": "write", "leak": "read", "put": "write"}
    await shop.benign(
        f'command = {json.dumps(sys.executable)}\nargs = {args}\nenv = ["SHOP_TOKEN"]',
        {name: f'effects = "{effects}", returns = "trusted"' for name, effects in trusted.items()},
    )
    return shop.ledger


async def test_every_note_is_written_once_however_often_the_worker_is_killed(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    ledger = await _team(tmp_path / "teams")
    workers.environ |= {"SUPERVISOR_TEAMS_DIR": str(tmp_path / "teams"), "SHOP_TOKEN": SECRET}

    def turns(step: Step) -> Reply:
        if step.number > NOTES:
            return tools(("store__leak", {})) if step.number == NOTES + 1 else text("All notes were made.")
        return tools(("store__note", {"text": f"note {step.number}", "seconds": 0.0 if step.number == NOTES else 60.0}))

    lone.play(script(plan({"id": "t1", "role": "clerk"}), {"t1": turns}, answer(cites=["t1"])))
    worker = await workers.start()
    handle = await lone.start(team="shop", max_turns=NOTES + 4, max_reviews=0)
    for number in range(1, NOTES):
        await until(lambda number=number: ledger.exists() and f"note {number}" in ledger.read_text(), 60)
        worker.kill()
        worker = await workers.start()
    assert (await asyncio.wait_for(handle.result(), 60)).status == "completed"
    notes = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert [note["text"] for note in notes] == [f"note {number + 1}" for number in range(NOTES)]
    assert len({note["key"] for note in notes}) == NOTES
    said = [lone.prompt(f"t1/1/turn.{number + 1}") for number in range(1, NOTES + 1)]
    assert ["outcome of this call is unknown" in each for each in said] == [True] * (NOTES - 1) + [False]
    assert said[-1] == "noted"
    assert '"SHOP_TOKEN": "[secret]"' in lone.prompt(f"t1/1/turn.{NOTES + 2}")
    histories = [
        await handle.fetch_history(),
        await lone.client.get_workflow_handle(f"{lone.run_id}/t1/1").fetch_history(),
    ]
    assert not any(SECRET in history.to_json() for history in histories)
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert [file for file in kept if SECRET.encode() in file.read_bytes()] == []
    assert any(b"[secret]" in file.read_bytes() for file in kept)


@pytest.mark.long
async def test_a_question_of_a_server_waits_in_the_inbox_and_outlives_workers(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    shelves = (await _team(tmp_path / "teams")).with_suffix(".shelves")
    workers.environ |= {"SUPERVISOR_TEAMS_DIR": str(tmp_path / "teams"), "SHOP_TOKEN": SECRET}
    calls = tools(("store__put", {"article": "tea"}), ("store__put", {"article": "salt"}))
    turns = {"t1": lambda step: calls if step.number == 1 else text("Both are on their shelves.")}
    lone.play(script(plan({"id": "t1", "role": "clerk"}), turns))
    worker = await workers.start()
    handle = await lone.start(team="shop", max_reviews=0)
    for place, replied in {"1.0.0": "below", "1.1.0": "4", "1.0.1": "3"}.items():  # what is no number is asked again
        wait = await asked(handle, f"t1/1:{place}")
        assert (wait.kind, wait.subtask_id) == ("question", "t1")
        assert wait.prompt_preview.startswith("MCP server 'store' asks before it does put: ")
        if place.startswith("1.0"):  # beside the other question, and once the first one is answered
            worker.kill()
            worker = await workers.start()
        await reply(handle, wait.id, replied)
    assert (await handle.result()).status == "completed"
    assert shelves.read_text().splitlines() == ["salt 4", "tea 3"]
    assert sorted(lone.prompt("t1/1/turn.2").splitlines()) == ["salt is on shelf 4, row 1", "tea is on shelf 3, row 1"]
