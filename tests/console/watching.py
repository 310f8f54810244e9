"""Measures the page of a run with 1,000 subtasks at work, in Chromium: `make watch`.

A server, a Worker and a page of their own, and a model that answers by a script after a while.
"""

import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from temporal_supervisor.messages import NoAnswer
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.standin.server.api_reply import ApiReply
from tests.console.conftest import Cli
from tests.console.page_driver import page_process, started_chromium
from tests.scripted_model import Reply, ScriptedModel, Step, scripted_model, text, tools
from tests.serving import TEAMS, WorkerProcesses
from tests.waiting import until

ITEMS = 999  # and the template
WATCHERS = 50
_SECONDS = 30.0  # for which events, and the watchers' part of the server, are looked at
_REPLY = 1.5  # seconds that a reply takes
_WINDOW = {"viewport": {"width": 1280, "height": 900}}
_RUN = "watched"
_SEEN = """
window.ages = [];
new MutationObserver((changes) => {
  for (const change of changes) for (const line of change.addedNodes) {
    const at = line.querySelector?.("time")?.dateTime;
    if (at) window.ages.push(Date.now() - new Date(at));
  }
}).observe(document.getElementById("events"), { childList: true });
"""
_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


@dataclass(frozen=True)
class Place:
    """A page and its process, where the run is at work."""

    cli: Cli
    base: str
    server: psutil.Process


def answers(step: Step) -> Reply:
    """Returns a tool call and then a finding, each after a while."""
    said = text(f"Tree {step.subtask_id} bears pears.")
    reply = tools(("lookup", {"query": "pears"})) if step.number == 1 else said

    async def late() -> ApiReply:
        await asyncio.sleep(_REPLY)
        return await reply()

    return late


@asynccontextmanager
async def at_work(folder: Path) -> AsyncIterator[Place]:
    """Gives a page where a run with all its items is at work."""
    inherited = {**os.environ, "SUPERVISOR_TEMPORAL": str(find_temporal())}
    async with (
        scripted_model() as model,
        EmbeddedServer(shared=False, db=folder / "temporal.db", headless=True) as info,
    ):
        environ = {
            **inherited,
            "SUPERVISOR_CACHE_DIR": str(folder),
            "SUPERVISOR_ARTIFACTS_URL": str(folder / "artifacts"),
            "SUPERVISOR_TEAMS_DIR": str(TEAMS),
            "TEMPORAL_CONFIG_FILE": os.devnull,
            "TEMPORAL_ADDRESS": info.address,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "test-key",
        }
        workers = WorkerProcesses(environ, folder)
        cli = Cli(environ, folder)
        try:
            await workers.start()
            await _begin(cli, model, folder)
            async with page_process(environ, folder / "ui.log") as (base, process):
                yield Place(cli, base, psutil.Process(process.pid))
        finally:
            workers.end()


async def _begin(cli: Cli, model: ScriptedModel, folder: Path) -> None:
    model.play(_RUN, answers)
    trees = folder / "trees.txt"
    trees.write_text("\n".join(f"tree {number}" for number in range(1, ITEMS + 1)))
    each = {"id": "t1", "role": "finder", "description": "Weigh the pears", "for_each": "lines:trees.txt"}
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"subtasks": [{**each, "max_items": ITEMS}]}))
    words = ["run", "Weigh the pears of the garden", "--team", "lab", "--id", _RUN, "--detach"]
    bounds = ["--max-subtasks", "1000", "--budget-tokens", "50000000", "--max-reviews", "0"]
    done = await cli(*words, *bounds, "--plan", str(plan), "--attach", str(trees))
    assert done.code == 0, done.err
    run = Run(await connect(address=cli.environ["TEMPORAL_ADDRESS"]), _RUN)

    async def has_items() -> bool:
        with contextlib.suppress(NoAnswer):
            status = await run.status()
            assert status.phase != "failed", status.warnings
            return status.counts.total >= ITEMS
        return False

    await until(has_items, 600)


async def first_paint(place: Place) -> float:
    """Returns the milliseconds from the request to the first paint, in a browser of its own."""
    async with started_chromium() as chromium, chromium.reading(place.base, **_WINDOW) as reader:
        await reader.open(f"/runs/{_RUN}")
        await reader.page.wait_for_function(_PAINTED)
        painted = await reader.page.evaluate(_PAINTED)
        return float(painted)


async def looked_at(place: Place) -> dict[str, Any]:
    """Returns the ages of events when they are on the screen, and the memory of the browser."""
    async with started_chromium() as chromium, chromium.reading(place.base, **_WINDOW) as reader:
        await reader.open(f"/runs/{_RUN}")
        await reader.page.locator("details.items > summary").click()
        await reader.sees("details.items li")
        await reader.page.evaluate(_SEEN)
        await asyncio.sleep(_SECONDS)
        ages = [float(age) for age in await reader.page.evaluate("window.ages")]
        return {**_ages(ages), "browser_mb": round(_memory() / 2**20)}


def _ages(ages: Sequence[float]) -> dict[str, float]:
    ordered = sorted(ages)
    most = ordered[int(len(ordered) * 0.95)]
    return {"events": len(ages), "median_ms": statistics.median(ages), "95_of_100_ms": most}


def _memory() -> int:
    """Returns the bytes that the process of the page has for itself, in the only browser."""
    found = [
        process.memory_full_info().uss
        for process in psutil.Process().children(recursive=True)
        if "--type=renderer" in " ".join(process.cmdline())
    ]
    return max(found, default=0)


async def watched(place: Place) -> float:
    """Returns the cores of the page's server that all watchers together take."""
    async with httpx2.AsyncClient(base_url=place.base, timeout=None) as client, asyncio.TaskGroup() as group:
        tasks = [group.create_task(_watch(client)) for _ in range(WATCHERS)]
        await asyncio.sleep(2)  # until the first, whole, news are sent
        before, began = _cpu(place.server), time.monotonic()
        await asyncio.sleep(_SECONDS)
        used, took = _cpu(place.server) - before, time.monotonic() - began
        for task in tasks:
            task.cancel()
    return used / took


async def _watch(client: httpx2.AsyncClient) -> None:
    async with client.stream("GET", f"/runs/{_RUN}/stream") as news:
        async for _ in news.aiter_bytes():
            pass


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def measure(folder: Path) -> None:
    """Prints what is measured."""
    async with at_work(folder) as place:
        for name in ("first paint, nobody watched before", "again"):
            print(f"{name}: {await first_paint(place):,.0f} ms", flush=True)
        print(json.dumps(await looked_at(place)), flush=True)
        print(f"{WATCHERS} watchers: {await watched(place):.2f} cores of the page's server")
        done = (await place.cli.json("status", _RUN))["counts"]
        print(f"items done meanwhile: {done['completed']}")
        await place.cli("cancel", _RUN)


def main() -> None:
    """Measures in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="watching-", ignore_cleanup_errors=True) as folder:
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
