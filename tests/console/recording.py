"""Records the page for the docs as an animated PNG: `make recording`.

A real run on a server and a Worker of its own, with the stand-in model: it is asked, its Worker is
killed, another one goes on, the answer comes. It is shown in 20 seconds, however long it took.
"""

import asyncio
import base64
import os
import signal
import struct
import tempfile
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from tests.console.conftest import Cli, Model, worker_of
from tests.console.page_driver import Chromium, Reader, page_of, started_chromium
from tests.console.screenshots import IMAGES, environment

FILE = IMAGES / "page-recording.png"
WIDTH, HEIGHT = 1040, 620
_CAPTION = 34  # pixels below the page, for words on what happens
_GOAL = "How did life expectancy in Rwanda and Botswana change from 1952 to 2007, and why?"
_REPLY_MS = 1300
_EVERY_MS = 300.0
_ANSWER_MS, _LAST_MS = 2000, 4500
_SIGNATURE = b"\x89PNG\r\n\x1a\n"

_ENCODE = Path(__file__).with_name("recording.js")


@dataclass
class Shot:
    """A picture of the page as PNG, the words below it, and the time for which it is shown."""

    picture: bytes
    words: str
    shown_ms: float


@dataclass
class Camera:
    """Takes pictures of a page, one after the other."""

    reader: Reader
    words: str = ""
    shots: list[Shot] = field(default_factory=list)

    async def take(self, shown_ms: float) -> None:
        """Takes a picture; one that is as the one before makes that longer."""
        picture = await self.reader.page.screenshot()
        last = self.shots[-1] if self.shots else None
        if last and (last.picture, last.words) == (picture, self.words):
            last.shown_ms += shown_ms
            return
        self.shots.append(Shot(picture, self.words, shown_ms))

    @asynccontextmanager
    async def rolling(self, words: str, shown_ms: float) -> AsyncIterator[None]:
        """Takes pictures for the time of a block; they are shown for another time in all."""
        self.words, first = words, len(self.shots)
        task = asyncio.create_task(self._roll())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self.take(_EVERY_MS)
        shots = self.shots[first:]
        share = shown_ms / sum(shot.shown_ms for shot in shots)
        for shot in shots:
            shot.shown_ms *= share

    async def _roll(self) -> None:
        while True:
            await self.take(_EVERY_MS)
            await asyncio.sleep(_EVERY_MS / 1000)


async def record(folder: Path) -> None:
    """Plays the run and writes the recording."""
    script = FaultScript()
    script.replace(ServerConfig(latency_ms=_REPLY_MS))
    async with (
        serving(BrainServer(think, script=script)) as url,
        EmbeddedServer(shared=False, db=folder / "temporal.db", headless=True) as info,
        started_chromium() as chromium,
    ):
        cli = Cli({**environment(folder), "TEMPORAL_ADDRESS": info.address}, folder)
        window = {"viewport": {"width": WIDTH, "height": HEIGHT}}
        async with (
            page_of(cli.environ, folder / "ui.log") as base,
            chromium.reading(base, **window) as reader,
        ):
            camera = Camera(reader)
            await _play(camera, cli, Model(url, script), folder)
            FILE.write_bytes(await encoded(chromium, camera.shots))


async def _play(camera: Camera, cli: Cli, model: Model, folder: Path) -> None:
    page = camera.reader.page
    async with worker_of(cli.environ, model, folder) as worker:
        await camera.reader.open("/ask?team=almanac")
        async with camera.rolling("A question to a team", 3000):
            await page.locator("#goal").press_sequentially(_GOAL, delay=12)
            await asyncio.sleep(1)
            await page.click("#ask button.main")
            await page.wait_for_url("**/runs/**", timeout=60_000)
        async with camera.rolling("Who does what, in which turn, for what money", 4000):
            await camera.reader.sees("#tree li[data-state=running] .took", "turn 2", seconds=120)
        os.kill(worker.pid, signal.SIGKILL)
        async with camera.rolling(f"$ kill -9 {worker.pid}     the only Worker is gone", 2500):
            await asyncio.sleep(3)
    goes_on = "$ temporal-supervisor worker     another one goes on where it was"
    async with worker_of(cli.environ, model, folder):
        async with camera.rolling(goes_on, 4000):
            await camera.reader.sees(".report .answer", seconds=240)
        camera.words = "The answer: each figure opens the cells behind it"
        await page.evaluate("document.getElementById('answer').scrollIntoView()")
        await camera.take(_ANSWER_MS)
        await page.click(".answer a.claim >> text=46.242")
        await camera.reader.sees("dialog[open] td.hit")
        await page.locator("dialog td.hit").first.scroll_into_view_if_needed()
        await camera.take(_LAST_MS)


async def encoded(chromium: Chromium, shots: Sequence[Shot]) -> bytes:
    """Returns an animated PNG; a browser reads the pictures, and packs what changes in each."""
    async with chromium.reading("about:blank") as reader:
        await reader.page.add_script_tag(path=str(_ENCODE))
        frames = [[base64.b64encode(shot.picture).decode(), shot.words] for shot in shots]
        packed = await reader.page.evaluate(f"frames => packed(frames, {_CAPTION})", frames)
    return animated(packed, [int(shot.shown_ms) for shot in shots])


def animated(packed: dict[str, Any], shown_ms: Sequence[int]) -> bytes:
    """Returns the file: a palette, and for each picture the rectangle that has changed."""
    frames = packed["frames"]
    width, height = packed["width"], packed["height"]
    chunks = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"acTL", struct.pack(">II", len(frames), 0)),
        _chunk(b"PLTE", bytes(packed["palette"])),
    ]
    number = 0
    for at, (frame, shown) in enumerate(zip(frames, shown_ms, strict=True)):
        place = (frame["width"], frame["height"], frame["x"], frame["y"])
        control = struct.pack(">IIIIIHHBB", number, *place, shown, 1000, 0, 0)
        chunks.append(_chunk(b"fcTL", control))
        data = base64.b64decode(frame["data"])
        number += 1
        if at == 0:
            chunks.append(_chunk(b"IDAT", data))
            continue
        chunks.append(_chunk(b"fdAT", struct.pack(">I", number) + data))
        number += 1
    return b"".join([_SIGNATURE, *chunks, _chunk(b"IEND", b"")])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def main() -> None:
    """Records in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="recording-", ignore_cleanup_errors=True) as folder:
        asyncio.run(record(Path(folder)))
    print(f"{FILE}: {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
