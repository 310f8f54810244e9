"""Takes the pictures of the page for the docs: `make screenshots`.

Real runs on a server, a Worker and a page of their own, with the stand-in model.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from tests.console.conftest import Cli, Model, worker_of
from tests.console.page_driver import Chromium, Reader, page_of, started_chromium
from tests.console.test_page import LAMPS

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
_WINDOW = {"viewport": {"width": 1280, "height": 860}, "device_scale_factor": 1}
_TALL = {"viewport": {"width": 1280, "height": 1080}}
_GOAL = "How did life expectancy in Rwanda and Botswana change from 1952 to 2007, and why?"
_STUDY = "How did revenue develop by region in 2025, and what do the notes say about deliveries?"
_SLOW_MS = 1500  # of a reply: the picture of a run at work is to show one


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of processes that are shown."""
    return {
        **os.environ,
        "SUPERVISOR_TEMPORAL": str(find_temporal()),
        "SUPERVISOR_CACHE_DIR": str(folder),
        "SUPERVISOR_ARTIFACTS_URL": str(folder / "artifacts"),
        "SUPERVISOR_TEAMS_DIR": str(ROOT / "examples" / "teams"),
        "TEMPORAL_CONFIG_FILE": os.devnull,
        # Commands are shown as they are typed where the program is installed.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }


async def take(folder: Path) -> None:
    """Plays the runs and takes all pictures."""
    environ = environment(folder)
    script = FaultScript()
    async with (
        serving(BrainServer(think, script=script)) as url,
        EmbeddedServer(shared=False, db=folder / "temporal.db") as info,
    ):
        cli = Cli({**environ, "TEMPORAL_ADDRESS": info.address}, folder)
        model = Model(url, script)
        async with (
            worker_of(cli.environ, model, folder),
            page_of(cli.environ, folder / "ui.log") as base,
            started_chromium() as chromium,
        ):
            await _all(cli, model, chromium, base, folder)


async def _all(cli: Cli, model: Model, chromium: Chromium, base: str, folder: Path) -> None:
    plan = folder / "plan.json"
    plan.write_text(json.dumps(LAMPS))
    await cli("run", _GOAL, "--team", "almanac", "--id", "life-expectancy")
    lamps = ("run", "Order lamps by our policy", "--team", "purchasing", "--plan", str(plan))
    await cli(*lamps, "--id", "lamps", "--detach")
    async with chromium.reading(base, **_WINDOW) as reader:
        await reader.open("/runs/lamps")
        await reader.sees(".card.question")
        await picture(reader, "page-runs", "/", _nothing)
        await picture(reader, "page-ask", "/ask?team=files", _filled)
    async with chromium.reading(base, **_TALL) as reader:
        await picture(reader, "page-answer", "/runs/life-expectancy", _answer)
        await picture(reader, "page-trail", "/runs/life-expectancy", _trail)
    async with chromium.reading(base, **_WINDOW, color_scheme="dark") as reader:
        model.script.replace(ServerConfig(latency_ms=_SLOW_MS))
        data = ROOT / "examples" / "shop" / "data"
        study = ("run", _STUDY, "--team", "study", "--data", str(data))
        await cli(*study, "--id", "study", "--detach")
        await picture(reader, "page-run", "/runs/study", _at_work)
        await cli("cancel", "study")
        await cli("cancel", "lamps")


async def picture(reader: Reader, name: str, path: str, before: Callable[[Reader], Awaitable[None]]) -> None:
    """Opens a page, does what is to be seen, and writes the picture."""
    await reader.open(path)
    await before(reader)
    await reader.page.evaluate("document.fonts.ready")
    await reader.page.screenshot(path=IMAGES / f"{name}.png")


async def _nothing(reader: Reader) -> None:
    await reader.sees("article.card")


async def _filled(reader: Reader) -> None:
    await reader.page.fill("#goal", "Did revenue fall in the South, and why?")
    files = sorted((ROOT / "examples" / "shop" / "data").rglob("*.csv"))
    await reader.page.set_input_files("#files", files)
    await reader.page.check("#approve_plan")
    await reader.sees("#estimate", "team files")


async def _answer(reader: Reader) -> None:
    await reader.sees(".report .chart")
    await reader.page.evaluate("document.getElementById('answer').scrollIntoView()")


async def _trail(reader: Reader) -> None:
    await _answer(reader)
    await reader.page.click(".answer a.claim >> text=46.242")
    await reader.sees("dialog[open] td.hit")


async def _at_work(reader: Reader) -> None:
    await reader.sees("#tree li[data-state=running] .took", "turn 2", seconds=90)


def main() -> None:
    """Takes all pictures."""
    with tempfile.TemporaryDirectory(prefix="screenshots-", ignore_cleanup_errors=True) as folder:
        asyncio.run(take(Path(folder)))


if __name__ == "__main__":
    main()
