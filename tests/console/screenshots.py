"""Takes the pictures of the page for the docs: `make screenshots`.

Real runs on a server, a Worker and a page of their own, with the stand-in model. `ALL=FOLDER` writes every picture
light, dark and on a phone there, to be looked at; those that the docs show are kept with them.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_WINDOW, _TALL = {"width": 1280, "height": 860}, {"width": 1280, "height": 1080}
_PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
_GOAL = "How did life expectancy in Rwanda and Botswana change from 1952 to 2007, and why?"
_STUDY = "How did revenue develop by region in 2025, and what do the notes say about deliveries?"
_SLOW_MS = 2500  # of a reply: the picture of a run at work is to show one


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


@dataclass(frozen=True)
class Picture:
    """A page, what is done there before the picture is taken, and in which looks the docs have it."""

    name: str
    path: str
    before: Callable[[Reader], Awaitable[None]]
    window: dict[str, int]
    kept: tuple[str, ...] = ("light",)

    @property
    def looks(self) -> dict[str, dict[str, Any]]:
        """The browsers in which it is seen, those of the docs first."""
        looks: dict[str, dict[str, Any]] = {
            "light": {"viewport": self.window, "color_scheme": "light"},
            "dark": {"viewport": self.window, "color_scheme": "dark"},
            "phone": {**_PHONE, "color_scheme": "light"},
        }
        return {look: looks[look] for look in sorted(looks, key=lambda look: look not in self.kept)}

    def file(self, look: str) -> Path:
        """Returns the picture's file in the docs."""
        return IMAGES / (f"{self.name}-phone.png" if look == "phone" else f"{self.name}.png")


@dataclass(frozen=True)
class Photographer:
    """Takes pictures of one page: those of the docs, and with a folder all others, too."""

    chromium: Chromium
    base: str
    everything: Path | None

    async def take(self, picture: Picture) -> None:
        """Opens the page in each look, does what is to be seen, and writes the picture."""
        for look, options in picture.looks.items():
            is_kept = look in picture.kept
            if not is_kept and self.everything is None:
                continue
            async with self.chromium.reading(self.base, **options) as reader:
                await reader.open(picture.path)
                await picture.before(reader)
                await reader.page.evaluate("document.fonts.ready")
                shown = await reader.page.screenshot()
            if is_kept:
                picture.file(look).write_bytes(shown)
            if self.everything is not None:
                (self.everything / f"{picture.name}-{look}.png").write_bytes(shown)


async def take(folder: Path, everything: Path | None) -> None:
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
            await _all(cli, model, Photographer(chromium, base, everything), folder)


async def _all(cli: Cli, model: Model, photographer: Photographer, folder: Path) -> None:
    plan = folder / "plan.json"
    plan.write_text(json.dumps(LAMPS))
    await cli("run", _GOAL, "--team", "almanac", "--id", "life-expectancy")
    lamps = ("run", "Order lamps by our policy", "--team", "purchasing", "--plan", str(plan))
    await cli(*lamps, "--id", "lamps", "--detach")
    life, both = "/runs/life-expectancy", ("light", "phone")
    for picture in [
        Picture("page-question", "/runs/lamps", _question, _WINDOW, kept=()),
        Picture("page-runs", "/", _nothing, _WINDOW, kept=both),
        Picture("page-ask", "/ask?team=files", _filled, _WINDOW),
        Picture("page-answer", life, _answer, _TALL, kept=both),
        Picture("page-trail", life, _trail, _TALL),
    ]:
        await photographer.take(picture)

    model.script.replace(ServerConfig(latency_ms=_SLOW_MS))
    data = ROOT / "examples" / "shop" / "data"
    await cli("run", _STUDY, "--team", "study", "--data", str(data), "--id", "study", "--detach")
    await photographer.take(Picture("page-run", "/runs/study", _at_work, _WINDOW, kept=("dark", "phone")))
    await cli("cancel", "study")
    await cli("cancel", "lamps")


async def _question(reader: Reader) -> None:
    await reader.sees(".card.question")


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


def main(everything: str = "") -> None:
    """Takes the pictures of the docs; with a folder, every picture in every look, too."""
    looked_at = Path(everything) if everything else None
    if looked_at is not None:
        looked_at.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="screenshots-", ignore_cleanup_errors=True) as folder:
        asyncio.run(take(Path(folder), looked_at))


if __name__ == "__main__":
    main(*sys.argv[1:])
