"""kill -9 of the only Worker process, wherever it is: the run completes, and no stored answer is asked for again."""

import asyncio
import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pytest

from activities.files.manifest import MANIFEST_TYPE, DataFile, put_files
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.contract.finding import FindingRecord
from temporal_supervisor.supervision.contract.request import Attachment
from temporal_supervisor.supervision.contract.result import RunResult
from tests.contracts import REQUEST, clerk_reads_each, contract_files, row_of
from tests.scripted_model import Reply, Step, answer, plan, script, text, tools, when
from tests.serving import WorkerProcesses, store_of
from tests.waiting import until
from tests.workflow.runs import Handle, Lab

ITEMS = 15
MORE_ITEMS = int(os.environ.get("KILL_ITEMS", "40"))
"""Documents of one table; a number in the environment is for a run by hand."""
PATIENCE = 60 + max(ITEMS, MORE_ITEMS)


TICK = 0.02
"""A file's time is taken from the kernel's coarse clock, which lags by up to a tick."""


async def _finish(lone: Lab, handle: Handle, workers: WorkerProcesses) -> RunResult:
    """Starts a new process, waits for the run, and checks that each answer is stored and none was asked for again."""
    await workers.start()
    result = await asyncio.wait_for(handle.result(), PATIENCE)
    # <run>/<first run id>/<workflow id>/<step>/<sha256>
    stored = {"/".join(map(unquote, path.parts[-3:-1])): path.stat().st_mtime for path in workers.artifacts.rglob("*")}
    assert [call.step.call for call in lone.calls if call.at > stored[call.step.call] + TICK] == []
    return result


def _turns(step: Step) -> Reply:
    return tools(("lookup", {"query": "x"})) if step.number == 1 else text("found it")


@pytest.mark.parametrize("of_a_turn", [1, pytest.param(limits.CALL_DEATHS + 1, marks=pytest.mark.long)])
async def test_a_call_that_waits_for_the_model_outlives_any_number_of_kills_and_no_other_is_repeated(
    lone: Lab, workers: WorkerProcesses, of_a_turn: int
) -> None:
    """The count of such deaths is tested without processes: tests/activity/test_attempt_interceptor.py."""
    kills = {"plan.1.1": 1, "t1/1/turn.2": of_a_turn, "synthesis.1": 1}
    released = {moment: asyncio.Event() for moment in kills}
    usual = script(plan({"id": "t1"}), {"t1": _turns}, answer(cites=["t1"]))

    def reply(step: Step) -> Reply:
        moment = step.call.removeprefix(f"{lone.run_id}/")
        return when(released[moment], usual(step)) if moment in kills else usual(step)

    lone.play(reply)
    worker = await workers.start()
    handle = await lone.start()
    for moment, times in kills.items():
        for kill in range(1, times + 1):
            await until(lambda moment=moment, kill=kill: lone.steps.count(moment) == kill, 30)
            worker.kill()
            if kill == times:
                released[moment].set()
            if (moment, kill) != ("synthesis.1", 1):
                worker = await workers.start()
    result = await _finish(lone, handle, workers)
    assert result.status == "completed"
    assert {step: lone.steps.count(step) for step in lone.repeated} == {m: times + 1 for m, times in kills.items()}


@pytest.mark.parametrize(
    ("items", "shares"),
    [(ITEMS, (0.5,)), pytest.param(MORE_ITEMS, (0.2, 0.5, 0.8), marks=pytest.mark.long)],
)
async def test_kills_amid_many_documents_repeat_no_stored_answer_and_lose_no_row(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path, items: int, shares: Sequence[float]
) -> None:
    files = contract_files(tmp_path, items)
    store = await store_of(lone.client, workers.artifacts)
    attached = Attachment(name="files", ref=await put_files(store, files), media_type=MANIFEST_TYPE)
    lone.play(clerk_reads_each(len(files)))
    worker = await workers.start()
    handle = await lone.start(team=REQUEST["team"], attachments=[attached], max_parallel=12, max_reviews=0)
    for share in shares:
        await until(lambda share=share: len(lone.calls) >= share * 2 * items, PATIENCE)
        worker.kill()
        worker = await workers.start()
    result = await _finish(lone, handle, workers)
    assert (result.status, result.gaps, result.unsupported) == ("completed", [], [])
    assert lone.steps.count("plan.1.1") == 1
    (table,) = result.artifacts
    rows = list(csv.DictReader(io.StringIO((await store.get(table.ref)).decode(), newline="")))
    assert [row["source"] for row in rows] == [file.name for file in files]
    whole = RunResult.model_validate_json(await store.get(result.result_ref or ""))
    records = {report.id: report.finding.record_ref for report in whole.subtasks if report.finding}
    for row in rows:
        record = FindingRecord.model_validate_json(await store.get(records[row["item"]]))
        read = (await store.get(record.evidence[0].output_ref)).decode()
        said = {name: "" if value is None else str(value) for name, value in row_of(read, row["file"]).items()}
        assert row == {**row, **said}


async def test_sigterm_lets_calls_in_flight_finish(lone: Lab, workers: WorkerProcesses) -> None:
    released = asyncio.Event()
    lone.play(script(plan({"id": "t1"}), {"t1": lambda step: when(released, text("found it"))}))
    worker = await workers.start()
    handle = await lone.start()
    await until(lone.sent("t1/1/turn.1"), 30)
    worker.process.terminate()
    await until(lambda: "stopping" in worker.log.read_text())
    released.set()
    assert await worker.ended() == 0
    await _finish(lone, handle, workers)
    assert lone.steps == ["plan.1.1", "t1/1/turn.1", "t1/1/turn.2", "synthesis.1"]


async def test_a_kill_in_the_conversion_of_a_file_repeats_no_call(
    lone: Lab, workers: WorkerProcesses, tmp_path: Path
) -> None:
    """The Worker that prepared the run is gone; the next ones have another cache folder, and the first is killed."""
    orders, elsewhere = tmp_path / "orders.csv", tmp_path / "elsewhere"
    orders.write_text("Number,Ordered\n" + "".join(f"{n},{1 + n % 28}.03.2025 12:30\n" for n in range(150_000)))
    ref = await put_files(await store_of(lone.client, workers.artifacts), [DataFile("orders.csv", orders)])
    released = asyncio.Event()

    def turns(step: Step) -> Reply:
        if step.number == 1:
            return when(released, tools(("query_data", {"sql": "SELECT count(*) AS n FROM orders"})))
        return text("found it" if "| 150000 |" in step.prompt else step.prompt)

    lone.play(script(plan({"id": "t1", "role": "analyst"}), {"t1": turns}))
    first = await workers.start()
    files = Attachment(name="files", ref=ref, media_type=MANIFEST_TYPE)
    handle = await lone.start(team="files", attachments=[files])
    await until(lambda: "t1/1/turn.1" in lone.steps, 60)
    first.kill()
    released.set()
    workers.environ["SUPERVISOR_CACHE_DIR"] = str(elsewhere)
    second = await workers.start()
    await until(lambda: bool(list(elsewhere.glob("files-*/*/texts.duckdb"))), 60)
    second.kill()
    result = await _finish(lone, handle, workers)
    assert [subtask.finding and subtask.finding.summary for subtask in result.subtasks] == ["found it"]
    assert len(list(elsewhere.glob("files-*/*/report.json"))) == 1
