"""A Worker process under the whole corpus: it serves on, its memory stays, and SIGTERM ends it within its grace."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from temporalio.client import Client

from runtime.watchdog import FROZEN
from supervision import limits
from supervision.contract.base import depth_exceeds
from tests.corpus.test_hostages import SCHEMAS
from tests.corpus.test_raw_inputs import FIELDS, ODD, ends, field
from tests.scripted_model import ScriptedModel, plan, script
from tests.serving import own_server, worker_processes
from tests.workflow import runs

GROWTH = 64  # MB of a Worker over all of it
KIB = 1024


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server that only this test's process serves."""
    async with own_server() as client:
        yield client


def megabytes(pid: int) -> float:
    """Returns the memory of a process that is in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / KIB


async def honest(client: Client, model: ScriptedModel, run_id: str) -> str:
    model.play(run_id, script(plan({"id": "t1", "role": "writer"})))
    return (await runs.run(client, run_id, team="lab")).status


async def attack(client: Client, model: ScriptedModel, run_id: str) -> None:
    """Raw payloads, schemas that unfold, and calls of tools with what no parser may meet."""
    for kind in ("SupervisorWorkflow", "WorkerAgentWorkflow"):
        await ends(client, model, f"{run_id}-{kind}", kind, ODD)
    await ends(client, model, f"{run_id}-fields", "SupervisorWorkflow", FIELDS)
    shallow = [schema for schema in SCHEMAS if not depth_exceeds(schema, limits.REQUEST_DEPTH)]
    schemas = {str(number): field("answer_schema", json.dumps(schema)) for number, schema in enumerate(shallow)}
    await ends(client, model, f"{run_id}-schemas", "SupervisorWorkflow", schemas)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.timeout(300)
async def test_a_worker_process_outlives_the_corpus(
    lone: Client, model: ScriptedModel, run_id: str, tmp_path: Path
) -> None:
    with worker_processes(lone, model.url, str(tmp_path / "artifacts"), tmp_path) as processes:
        worker = await processes.start()
        await ends(lone, model, f"{run_id}-warm", "SupervisorWorkflow", ODD)
        before = megabytes(worker.process.pid)
        await attack(lone, model, run_id)
        assert await honest(lone, model, f"{run_id}-honest") == "completed"
        assert megabytes(worker.process.pid) - before < GROWTH
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.ended() not in (FROZEN, -signal.SIGPROF, -signal.SIGKILL)


async def test_one_poisoned_worker_of_three_leaves_the_runs_to_the_others(
    lone: Client, model: ScriptedModel, run_id: str, tmp_path: Path
) -> None:
    with worker_processes(lone, model.url, str(tmp_path / "artifacts"), tmp_path) as processes:
        workers = [await processes.start() for _ in range(3)]
        assert await honest(lone, model, f"{run_id}-before") == "completed"
        workers[0].process.send_signal(signal.SIGSTOP)  # it takes tasks no more, and keeps what it has
        ended = await asyncio.gather(*(honest(lone, model, f"{run_id}-{number}") for number in range(8)))
        assert ended == ["completed"] * 8
        workers[0].kill()
