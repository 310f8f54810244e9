"""A real Chromium without a window, over its DevTools protocol: what a page loads, logs and measures."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.waiting import until

_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
_TROUBLE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")


class Browser:
    """One page; `requests` and `trouble` are those since it was opened."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requests: list[str] = []
        self.trouble: list[dict[str, Any]] = []
        self._socket = socket
        self._numbers = count(1)

    async def open(self, path: Path, width: int = 1280) -> None:
        """Loads a file in a window of that width, to the end."""
        for domain in ("Page", "Network", "Log", "Runtime"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self.requests, self.trouble = [], []
        await self.call("Page.navigate", url=path.as_uri())
        async with asyncio.timeout(60):
            while await self.value("document.readyState + location.protocol") != "completefile:":
                await asyncio.sleep(0.05)

    async def value(self, expression: str) -> Any:
        """Returns what JavaScript makes of the page: the protocol's own, which a page's policy does not stop."""
        done = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Returns the reply of the browser, and keeps the events that come before it."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            said = await asyncio.wait_for(self._socket.receive_json(), 60)
            if said.get("id") == number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result
            if said.get("method") == "Network.requestWillBeSent":
                self.requests.append(said["params"]["request"]["url"])
            elif said.get("method") in _TROUBLE:
                self.trouble.append(said)


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Gives a browser; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on PATH")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            program, *_OPTIONS, f"--user-data-dir={profile}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port_file = Path(profile, "DevToolsActivePort")
            await until(lambda: port_file.exists() and len(port_file.read_text().splitlines()) == 2, 60)
            address = f"http://127.0.0.1:{port_file.read_text().splitlines()[0]}"
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{address}/json") as listed:
                    page = next(target for target in await listed.json() if target["type"] == "page")
                async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Browser(socket)
        finally:
            process.terminate()
            await process.wait()
