"""What the page's script does by itself, in Chromium, where no Temporal server is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.page.ask_form import MOST_BYTES, MOST_FILE_BYTES
from temporal_supervisor.console.page.page_guard import Door
from temporal_supervisor.console.page.page_serving import listening, page_server
from temporal_supervisor.runtime.settings import Settings
from tests.console.page_driver import Chromium, Reader

DESK = {"viewport": {"width": 1280, "height": 900}}
ELSEWHERE = "page.localhost"
TOKEN = "a-token-of-more-than-sixteen"
TABLE = """<table class="sorts"><thead><tr><th>found</th></tr></thead><tbody></tbody></table>
<p id="said"></p><script src="/static/page.js"></script>"""
SORTED = """(cells) => {
  const table = document.querySelector("table.sorts");
  const body = table.tBodies[0];
  for (const cell of cells) body.insertRow().insertCell().textContent = cell;
  const sorted = () => {
    table.querySelector("th button").click();
    return [...body.rows].map((row) => row.cells[0].textContent);
  };
  return [sorted(), sorted()];
}"""


@asynccontextmanager
async def reading(chromium: Chromium, door: Door, host: str = "127.0.0.1") -> AsyncIterator[Reader]:
    """Gives a reader of the page, which is served by this process."""
    access = Access(address="127.0.0.1:1")
    access.settings = Settings()
    server = page_server(access, door)
    with listening("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            base = f"http://{host}:{listener.getsockname()[1]}"
            async with chromium.reading(base, **DESK) as reader:
                yield reader
        finally:
            server.should_exit = True
            await serving


async def test_a_table_is_sorted_by_what_its_cells_mean(chromium: Chromium) -> None:
    cells = ["t10", "", "1,204.5", "12", "\u22122", "$2,000", "3%", "t2"]
    ordered = ["\u22122", "3%", "12", "1,204.5", "$2,000", "t2", "t10"]
    async with reading(chromium, Door.of([])) as reader:
        shown = {"body": TABLE, "content_type": "text/html"}
        await reader.page.route("**/table", lambda route: route.fulfill(**shown))
        await reader.open("/table")
        await reader.sees("th button", "found")
        up, down = await reader.page.evaluate(SORTED, cells)
        assert (up, down) == ([*ordered, ""], [*ordered[::-1], ""])
        assert reader.trouble == []


async def test_a_reader_elsewhere_sends_the_token_and_is_led_on(chromium: Chromium) -> None:
    async with reading(chromium, Door.of([ELSEWHERE], TOKEN), ELSEWHERE) as reader:
        await reader.open("/ask")
        for token in ("a-wrong-token", TOKEN):
            assert "/login" in reader.page.url
            await reader.page.fill("#token", token)
            await reader.page.click("button.main")
            if token != TOKEN:
                await reader.sees(".problem", "not the token")
        await reader.sees("#goal")
        assert reader.page.url.endswith("/ask")


def file_of(folder: Path, name: str, size: int) -> Path:
    """Returns a file of that size, which takes no place on the disk."""
    path = folder / name
    with path.open("wb") as file:
        file.truncate(size)
    return path


async def test_more_than_is_taken_is_not_sent(chromium: Chromium, tmp_path: Path) -> None:
    large = file_of(tmp_path, "large.csv", MOST_FILE_BYTES + 1)
    count = MOST_BYTES // MOST_FILE_BYTES + 1
    many = [file_of(tmp_path, f"part-{n}.csv", MOST_FILE_BYTES) for n in range(count)]
    async with reading(chromium, Door.of([])) as reader:
        await reader.open("/ask")
        await reader.page.fill("#goal", "How many pears are there?")
        for files, words in [
            ([large], "large.csv has 101 MB: at most 100 MB are taken."),
            (many, "At most 1,024 MB are taken in all."),
        ]:
            await reader.page.set_input_files("#files", files)
            await reader.sees("#chosen.bad", words)
            await reader.page.click("#ask button.main")
            assert await reader.page.inner_text("#said") == ""
        await reader.page.set_input_files("#files", [file_of(tmp_path, "small.csv", 1000)])
        await reader.sees("#chosen:not(.bad)", "1 chosen, 1 KB.")
        is_sent = "document.getElementById('ask').checkValidity()"
        assert await reader.page.evaluate(is_sent)
