"""The command `python -m benchmarks.nested_sizes`: trees of supervisors at full size, and what their histories take."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from temporalio.client import Client, WorkflowHandle

from standin.server.api_reply import ApiReply
from supervision import limits
from supervision.contract.request import Budget, RunRequest
from supervision.contract.result import RunResult
from tests.scripted_model import Reply, Script, Step, answer, scripted_model, text
from tests.serving import own_server, settings_for
from tests.workflow.scripts import item, subtasks
from worker_main import serving
from workflows.supervisor import SupervisorWorkflow

MOST_EVENTS = 4_000
MOST_BYTES = 8_000_000
_TURN_SECONDS = (2.0, 5.0)  # as calls of a small model take
_QUERY_EVERY = 2.0
_NESTED = ("storey", "bench")  # roles of the teams `house` and `floor` that are teams themselves


class Shape(NamedTuple):
    """A tree: how many subtasks each supervisor plans, level by level; the last level's are worker agents'."""

    name: str
    widths: tuple[int, ...]

    def script(self, random_seconds: random.Random) -> Script:
        """Returns the model's side of it."""

        def reply(step: Step) -> Reply:
            level = step.call.removeprefix(step.run_id).count("/") // 2
            if step.kind == "plan":
                last = level == len(self.widths) - 1
                role = ("hand", "walker", "finder")[level] if last else _NESTED[level]
                return subtasks(*[item(f"s{n}", role) for n in range(self.widths[level])])
            return answer() if step.kind == "synthesis" else _slowly(text("a finding"), random_seconds)

        return reply


SHAPES = {
    shape.name: shape for shape in (Shape("nested-400", (1, 400)), Shape("8x100", (8, 100)), Shape("8x8x8", (8, 8, 8)))
}


def _slowly(then: Reply, random_seconds: random.Random) -> Reply:
    seconds = random_seconds.uniform(*_TURN_SECONDS)

    async def reply() -> ApiReply:
        await asyncio.sleep(seconds)
        return await then()

    return reply


async def _measure(client: Client, shape: Shape) -> bool:
    """Runs one tree, prints its figures. Returns False if one is above its limit or a query failed."""
    request = RunRequest(
        goal="Weigh the pears of the garden",
        team="house",
        max_reviews=0,
        max_depth=3,
        max_subtasks=max(shape.widths),
        max_parallel=limits.MAX_PARALLEL,
        deadline="PT2H",
        budget=Budget(tokens=50_000_000, usd=None),
    )
    run_id, began = f"size-{shape.name}", time.monotonic()
    handle = await client.start_workflow(SupervisorWorkflow.run, request, id=run_id, task_queue="supervisor")
    watched = [handle, client.get_workflow_handle_for(SupervisorWorkflow.run, f"{run_id}/s0/1")]
    asking = asyncio.create_task(_ask(watched))
    result = await handle.result()
    asking.cancel()
    slowest, refused = await asking
    below = sum(report.nested.counts.completed for report in result.subtasks if report.nested)
    print(f"{shape.name}: {result.status}, {below} subtasks below, {time.monotonic() - began:.0f} s")
    print(f"  slowest query {slowest:.2f} s, {refused} failed")
    sizes = [await _size(client, run_id)]
    for report in result.subtasks[:2]:
        sizes.append(await _size(client, report.workflow_id or ""))
    if len(shape.widths) == 3:
        sizes.append(await _size(client, f"{run_id}/s0/1/s0/1"))
    small = all(events < MOST_EVENTS and stored < MOST_BYTES for events, stored in sizes)
    return small and result.status == "completed" and not refused


async def _ask(handles: list[WorkflowHandle[SupervisorWorkflow, RunResult]]) -> tuple[float, int]:
    """Asks runs for status and trace until it is cancelled. Returns the slowest answer's seconds, and the failures."""
    slowest, failed, begun = 0.0, 0, False
    try:
        while True:
            for handle in handles:
                for query in ("status", "trace"):
                    asked = time.monotonic()
                    try:
                        await handle.query(query)
                        begun = True
                    except Exception as error:
                        if begun and "not found" not in str(error):
                            failed += 1
                            print(f"  query failed: {error}")
                    slowest = max(slowest, time.monotonic() - asked)
            await asyncio.sleep(_QUERY_EVERY)
    except asyncio.CancelledError:
        return slowest, failed


async def _size(client: Client, workflow_id: str) -> tuple[int, int]:
    info = (await client.get_workflow_handle(workflow_id).describe()).raw_description.workflow_execution_info
    print(f"  {workflow_id}: {info.history_length} events, {info.history_size_bytes:,} bytes")
    return info.history_length, info.history_size_bytes


async def _main(names: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        async with scripted_model() as model, own_server() as client:
            settings = settings_for(model.url, Path(folder))
            async with serving(client, settings):
                good = True
                for name in names:
                    model.play(f"size-{name}", SHAPES[name].script(random.Random(name)))
                    good = await _measure(client, SHAPES[name]) and good
                return good


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measures trees of supervisors; exits 1 if a limit is passed.")
    parser.add_argument("--only", choices=list(SHAPES), action="append", help="default: all")
    sys.exit(0 if asyncio.run(_main(parser.parse_args().only or list(SHAPES))) else 1)
