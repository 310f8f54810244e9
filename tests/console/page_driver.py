"""A browser at the page of the program: Chromium, driven by Playwright."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.forked import started
from tests.waiting import until

_PATIENCE = 60_000  # milliseconds for a page or a button, on a machine with other work
_HEARS = """
globalThis.heard = [];
new MutationObserver(() => {
  const said = document.getElementById("said");
  const words = said ? said.textContent : "";
  if (words && heard.at(-1) !== words) heard.push(words);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
"""Keeps the words that the page says of what was done.

They are shown for seconds, and a busy machine looks later.
"""


@dataclass
class Reader:
    """A person at a browser; `trouble` is what its console said that no page should."""

    page: Any
    base: str
    trouble: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        """Opens a page of the program."""
        await self.page.goto(f"{self.base.rstrip('/')}{path}")

    async def sees(self, selector: str, words: str = "", seconds: float = 60) -> None:
        """Returns once an element with these words is seen."""
        found = self.page.locator(selector)
        place = (found.filter(has_text=words) if words else found).first
        try:
            await place.wait_for(timeout=seconds * 1000)
        except Exception as error:
            shown = await self.page.inner_text("body")
            raise AssertionError(f"{selector!r} with {words!r} is not in\n{shown}") from error

    async def hears(self, words: str, seconds: float = 60) -> str:
        """Returns what the page has said with these words, once it has."""

        async def said() -> list[str]:
            return [each for each in await self.page.evaluate("heard") if words in each]

        async def is_said() -> bool:
            return bool(await said())

        await until(is_said, seconds)
        return (await said())[-1]

    async def does(self, action: str, **fields: str) -> str:
        """Fills in the form of an action, sends it, and returns what is said."""
        box = self.page.locator(f"details.action.{action}")
        await box.locator("summary").click()
        for name, text in fields.items():
            await box.locator(f"[name={name}]").fill(text)
        command = str(await box.locator("code").inner_text())
        await self.page.evaluate("heard.length = 0")
        await box.locator("button").click()
        said = await self.hears("run '")
        return f"{command}\n{said}"

    async def reaches(self, selector: str) -> bool:
        """True if an element is inside the window, from its left to its right."""
        box = await self.page.locator(selector).bounding_box()
        width = float(await self.page.evaluate("innerWidth"))
        return box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width

    async def fits(self) -> bool:
        """True if the page is not wider than its window."""
        width = "document.documentElement.scrollWidth <= innerWidth"
        return bool(await self.page.evaluate(width))


@dataclass(frozen=True)
class Chromium:
    """A browser for many readers, each with a window and cookies of his own."""

    browser: Any

    @asynccontextmanager
    async def reading(self, base: str, **options: Any) -> AsyncIterator[Reader]:
        """Gives a person at the browser."""
        context = await self.browser.new_context(**options)
        try:
            context.set_default_timeout(_PATIENCE)
            await context.add_init_script(_HEARS)
            page = await context.new_page()
            reader = Reader(page, base)
            page.on("console", lambda said: reader.trouble.append(said.text))
            page.on("pageerror", lambda error: reader.trouble.append(str(error)))
            yield reader
        finally:
            await context.close()


@asynccontextmanager
async def started_chromium() -> AsyncIterator[Chromium]:
    """Gives a browser; skips the test where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium on PATH")
    driver = pytest.importorskip("playwright.async_api")
    flags = ["--no-sandbox", "--disable-gpu"]
    async with driver.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=flags)
        try:
            yield Chromium(browser)
        finally:
            await browser.close()


@asynccontextmanager
async def page_process(
    environ: Mapping[str, str],
    log: Path,
    *words: str,
) -> AsyncIterator[tuple[str, BaseProcess]]:
    """Starts the command `ui`; gives the address that it prints, and the process."""
    errors = log.with_suffix(".err")
    log.touch()
    errors.touch()
    files: list[Path | str] = [os.devnull, log, errors]
    process = started("starter", ("ui", "--port", "0", *words), environ, log.parent, files)
    try:
        await until(lambda: re.search(r"http://\S+", log.read_text()) is not None, 60)
        found = re.search(r"http://\S+", log.read_text())
        assert found is not None
        yield found[0], process
    finally:
        process.terminate()
        process.join()


@asynccontextmanager
async def page_of(environ: Mapping[str, str], log: Path, *words: str) -> AsyncIterator[str]:
    """Starts the command `ui`; gives the address that it prints."""
    async with page_process(environ, log, *words) as (address, _):
        yield address


async def serious_findings(reader: Reader) -> list[str]:
    """Returns what axe finds on the page that shuts readers out."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    found = (await axe.Axe().run(reader.page)).response["violations"]
    return [
        f"{item['id']}: {item['help']}: {item['nodes'][0]['html'][:200]}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]
