"""A Worker process under the corpus: after each case it serves on and its memory stays; SIGTERM ends it in its time."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from temporal_supervisor.supervision.contract.base import depth_exceeds
from temporal_supervisor.supervision.contract.request import REQUEST_DEPTH
from tests.corpus.test_hostages import BITES, SCHEMAS
from tests.corpus.test_raw_inputs import ODD, ends, field
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, text, tools
from tests.serving import own_server, worker_processes
from tests.workflow import runs

SOME = dict(list(ODD.items())[::4])
GROWTH = 64  # MB of a Worker, over all of it
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


BOMBS = ["SELECT * FROM t" + " JOIN t" * 40, BITES, "1" + "**9" * 200, "(" * 400]


def bombs(step: Step) -> Reply:
    """Calls of tools with what no parser may meet on the event loop, then one that is answered, and an end."""
    if step.number == 2:
        return tools(("query_data", {"sql": "SELECT count(*) FROM life_expectancy"}))
    if step.number > 2:
        return text("All others were refused.")
    queries = [("query_data", {"sql": bomb}) for bomb in BOMBS]
    return tools(*queries, *(("calculate", {"expression": bomb}) for bomb in BOMBS))


async def call_tools(client: Client, model: ScriptedModel, run_id: str) -> None:
    model.play(run_id, script(plan({"id": "t1", "role": "analyst"}), {"t1": bombs}))
    result = await runs.run(client, run_id, team="almanac")
    assert (result.status, result.usage.tool_calls) == ("completed", 2 * len(BOMBS) + 1)


async def start_runs(client: Client, model: ScriptedModel, run_id: str, kind: str, inputs: dict[str, Any]) -> None:
    endings = await ends(client, model, run_id, kind, inputs)
    assert [ending for ending in endings.values() if ending.startswith("stuck")] == []


SHALLOW = [schema for schema in SCHEMAS if not depth_exceeds(schema, REQUEST_DEPTH)]
Cases = dict[str, Callable[[Client, ScriptedModel, str], Awaitable[None]]]
CASES: Cases = {
    "worker agents": partial(start_runs, kind="WorkerAgentWorkflow", inputs=ODD),
    "schemas": partial(
        start_runs,
        kind="SupervisorWorkflow",
        inputs={str(number): field("answer_schema", json.dumps(schema)) for number, schema in enumerate(SHALLOW)},
    ),
    "tools": call_tools,
}
TOOLS: Cases = {"tools": call_tools}
"""What no other test of the corpus gives to a Worker."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "cases", [pytest.param(TOOLS, id="tools"), pytest.param(CASES, id="all", marks=pytest.mark.long)]
)
async def test_a_worker_process_outlives_the_corpus(
    lone: Client, model: ScriptedModel, run_id: str, tmp_path: Path, cases: Cases
) -> None:
    with worker_processes(lone, model.url, str(tmp_path / "artifacts"), tmp_path) as processes:
        worker = await processes.start()
        await ends(lone, model, f"{run_id}-warm", "SupervisorWorkflow", SOME if cases is TOOLS else ODD)
        before = megabytes(worker.pid)
        for number, (name, case) in enumerate(cases.items()):
            await case(lone, model, f"{run_id}-{number}")
            assert await honest(lone, model, f"{run_id}-honest-{number}") == "completed", name
            assert megabytes(worker.pid) - before < GROWTH, name
        await worker.stopped()
