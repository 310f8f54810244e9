"""Measures the page of runs with 1,000 subtasks at work, in Chromium: `make watch`.

One run has a template with 999 items, one a plan that names 1,000 subtasks, and of one such a plan waits for approval.
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
from tests.scripted_model import Reply, Step, scripted_model, text, tools
from tests.serving import TEAMS, WorkerProcesses
from tests.waiting import until

ITEMS = 999  # and the template
WATCHERS = 50
_SECONDS = 30.0  # for which events, and the watchers' part of the server, are looked at
_REPLY = 1.5  # seconds that a reply takes
_WINDOW = {"viewport": {"width": 1280, "height": 900}}
_ITEMS, _PLANNED, _ASKED = "items", "planned", "asked"  # the runs
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
            model.play(_ITEMS, answers)
            model.play(_PLANNED, answers)
            async with page_process(environ, folder / "ui.log") as (base, process):
                yield Place(cli, base, psutil.Process(process.pid))
        finally:
            workers.end()


def _with_items(folder: Path) -> list[str]:
    """Returns the options of a run whose plan has a template."""
    trees = folder / "trees.txt"
    trees.write_text("\n".join(f"tree {number}" for number in range(1, ITEMS + 1)))
    each = {"id": "t1", "role": "finder", "description": "Weigh the pears", "for_each": "lines:trees.txt"}
    return [*_with_plan(folder, [{**each, "max_items": ITEMS}]), "--attach", str(trees)]


def _with_plan(folder: Path, subtasks: list[dict[str, Any]]) -> list[str]:
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"subtasks": subtasks}))
    return ["--plan", str(plan)]


def _planned() -> list[dict[str, Any]]:
    """Returns 1,000 subtasks, each with its words."""
    words = "Find out how many pears tree {} bears, by the garden's book"
    return [{"id": f"t{n}", "role": "finder", "description": words.format(n)} for n in range(1, ITEMS + 2)]


async def begin(place: Place, run_id: str, *options: str) -> Run:
    """Starts a run, and returns it."""
    words = ["run", "Weigh the pears of the garden", "--team", "lab", "--id", run_id, "--detach"]
    bounds = ["--max-subtasks", "1000", "--budget-tokens", "50000000", "--max-reviews", "0"]
    done = await place.cli(*words, *bounds, *options)
    assert done.code == 0, done.err
    return Run(await connect(address=place.cli.environ["TEMPORAL_ADDRESS"]), run_id)


async def has_subtasks(run: Run) -> None:
    """Returns once the subtasks of a run are known."""

    async def is_known() -> bool:
        with contextlib.suppress(NoAnswer):
            status = await run.status()
            assert status.phase != "failed", status.warnings
            return status.counts.total >= ITEMS
        return False

    await until(is_known, 600)


async def waits(run: Run) -> None:
    """Returns once a person is asked in a run."""

    async def is_asked() -> bool:
        with contextlib.suppress(NoAnswer):
            return (await run.status()).flags.waiting_person
        return False

    await until(is_asked, 600)


async def first_paint(place: Place, path: str) -> float:
    """Returns the milliseconds from the request to the first paint, in a browser of its own."""
    async with started_chromium() as chromium, chromium.reading(place.base, **_WINDOW) as reader:
        await reader.open(path)
        await reader.page.wait_for_function(_PAINTED)
        painted = await reader.page.evaluate(_PAINTED)
        return float(painted)


async def looked_at(place: Place, run_id: str) -> dict[str, Any]:
    """Returns the ages of events when they are on the screen, and the memory of the browser."""
    async with started_chromium() as chromium, chromium.reading(place.base, **_WINDOW) as reader:
        await reader.open(f"/runs/{run_id}")
        await reader.page.locator("details.items > summary").first.click()
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
    async with client.stream("GET", f"/runs/{_ITEMS}/stream") as news:
        async for _ in news.aiter_bytes():
            pass


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def measure(folder: Path) -> None:
    """Prints what is measured."""
    async with at_work(folder) as place:
        await has_subtasks(await begin(place, _ITEMS, *_with_items(folder)))
        await _measure_at_work(place, _ITEMS)
        print(f"{WATCHERS} watchers: {await watched(place):.2f} cores of the page's server", flush=True)
        await place.cli("cancel", _ITEMS)

        await has_subtasks(await begin(place, _PLANNED, *_with_plan(folder, _planned())))
        await _measure_at_work(place, _PLANNED)
        await place.cli("cancel", _PLANNED)

        await waits(await begin(place, _ASKED, "--approve-plan", *_with_plan(folder, _planned())))
        for path in (f"/runs/{_ASKED}", "/"):
            print(f"first paint of {path} with a plan that waits: {await first_paint(place, path):,.0f} ms", flush=True)
        await place.cli("cancel", _ASKED)


async def _measure_at_work(place: Place, run_id: str) -> None:
    for name in ("nobody watched before", "again"):
        print(f"{run_id}: first paint, {name}: {await first_paint(place, f'/runs/{run_id}'):,.0f} ms", flush=True)
    print(json.dumps(await looked_at(place, run_id)), flush=True)
    done = (await place.cli.json("status", run_id))["counts"]
    print(f"subtasks done meanwhile: {done['completed']}", flush=True)


def main() -> None:
    """Measures in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="watching-", ignore_cleanup_errors=True) as folder:
        asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
