"""A run that has ended, on the page: as commands print it, asked on, as CSV, and without our script."""

from pathlib import Path

import pytest
from playwright.async_api import TimeoutError as NotThere

from activities.store.store_urls import open_store
from temporal_supervisor.console.base.command import Access
from temporal_supervisor.console.page.lineage import Origin, lineage_text
from temporal_supervisor.console.page.page_guard import Door
from temporal_supervisor.console.page.page_site import PageSite
from temporal_supervisor.runtime.connection import connect, namespace_id
from temporal_supervisor.supervision.contract.result import Reused, RunResult, SubtaskReport
from temporal_supervisor.supervision.contract.usage import Usage
from tests.console.conftest import GOAL, RUN, Cli
from tests.console.page_driver import Chromium, Reader
from tests.console.page_facts import same_at_the_end
from tests.console.test_report_page import make_run

DESK = {"viewport": {"width": 1280, "height": 900}}
NARROWER = "How did life expectancy in Japan change from 1957 to 2007?"


async def test_what_the_page_shows_of_an_ended_run_is_what_commands_print(
    address: str, read: Cli, chromium: Chromium
) -> None:
    async with chromium.reading(address, **DESK) as reader:
        await reader.open(f"/runs/{RUN}")
        await same_at_the_end(reader, read, RUN)


async def test_a_further_question_is_asked_below_the_answer(address: str, read: Cli, chromium: Chromium) -> None:
    async with chromium.reading(address, **DESK) as reader:
        await reader.open(f"/runs/{RUN}")
        command = await reader.page.inner_text("#on code")
        assert command.endswith(f" run --after {RUN} QUESTION")
        await reader.page.fill("#on-goal", NARROWER)
        await reader.page.click("#on button.main")
        await reader.page.wait_for_url("**/runs/supervise-*", timeout=60_000)
        run_id = reader.page.url.rpartition("/")[2]
        await reader.sees(".report .answer", seconds=90)
        back = reader.page.locator(".lineage a").first
        assert (await back.inner_text(), await back.get_attribute("href")) == (GOAL, f"/runs/{RUN}")
        await reader.open("/")
        await reader.sees(f".runs a[href='/runs/{RUN}'] >> text='{RUN}'")
    asked = await read.json("result", run_id)
    assert (asked["status"], asked["reuse_from"]) == ("completed", [RUN])


def test_each_finding_that_was_taken_leads_to_its_run() -> None:
    saved = Usage(model_calls=3, usd=0.5)
    origin = Reused(run_id="earlier/1", subtask_id="t2", usage=saved)
    taken = SubtaskReport(id="t1", description="Look it up", state="completed", reused=origin)
    built = RunResult(status="completed", subtasks=[taken, SubtaskReport(id="t3")], saved=saved)
    site = PageSite(Access(), Door.of([]))
    assert lineage_text(site, built, []) == ""
    built = built.model_copy(update={"reuse_from": ["earlier/1", "gone"]})
    text = lineage_text(site, built, [Origin("earlier/1", "How many?"), Origin("gone", "")])
    assert '<a href="/runs/earlier%2F1">How many?</a>' in text
    assert '<a href="/runs/gone">gone</a>' in text  # a run that the server has forgotten
    assert '<a href="/runs/earlier%2F1">earlier/1/t2</a>' in text
    assert "1 finding taken" in text
    assert "t1 from earlier/1/t2; this saved 3 model calls" in text


async def test_the_form_to_ask_names_the_runs_to_build_on(address: str, chromium: Chromium) -> None:
    async with chromium.reading(address, **DESK) as reader:
        await reader.open(f"/ask?after=never-was&after={RUN}")
        boxes = reader.page.locator("#earlier input[name=after]")
        assert [await box.get_attribute("value") for box in await boxes.all()] == ["never-was", RUN]
        await reader.page.fill("#goal", NARROWER)
        await reader.page.click("#ask button.main")
        await reader.sees("#said.bad-news", "there is no run 'never-was'")


async def test_a_table_is_downloaded_as_the_command_writes_it(
    address: str, read: Cli, chromium: Chromium, tmp_path: Path
) -> None:
    client = await connect(address=read.environ["TEMPORAL_ADDRESS"])
    store = open_store(read.environ["SUPERVISOR_ARTIFACTS_URL"], await namespace_id(client))
    await make_run(store, "wells-1", 3, "=1+1 ; a,b\n")
    written = tmp_path / "wells.csv"
    await read("result", "wells-1", "-o", str(written))
    async with chromium.reading(address, **DESK) as reader:
        await reader.open("/runs/wells-1")
        async with reader.page.expect_download() as waited:
            await reader.page.click("a >> text=All rows as CSV")
        download = await waited.value
        assert download.suggested_filename == "table-1.csv"
        assert Path(await download.path()).read_bytes() == written.read_bytes()
    assert b"kg" in written.read_bytes()


async def _until_there(reader: Reader, selector: str) -> None:
    """Loads the page anew until it has an element, as a reader without script does."""
    for _ in range(60):
        try:
            await reader.page.locator(selector).first.wait_for(timeout=1000, state="attached")
            return
        except NotThere:
            await reader.page.reload()
    pytest.fail(f"{selector} did not come: {await reader.page.inner_text('body')}")


async def test_without_script_a_reader_asks_decides_and_reads(address: str, chromium: Chromium) -> None:
    async with chromium.reading(address, **DESK, java_script_enabled=False) as reader:
        await reader.open("/ask?team=almanac")
        await reader.page.fill("#goal", NARROWER)
        await reader.page.check("#approve_plan")
        await reader.page.click("#ask button.main")
        run = reader.page.url
        assert "/runs/supervise-" in run
        await _until_there(reader, ".card.plan")
        await reader.page.click(".card.plan button[value=approve]")
        await reader.sees("main [role=alert]", "approve")
        await reader.page.click("main a >> text=Back")
        assert reader.page.url == run
        await _until_there(reader, ".report .answer")
        await reader.page.click(".answer a.claim >> nth=0")
        row = reader.page.locator(":target")
        assert "verified" in await row.inner_text()
        await row.locator("li a").first.click()  # into the output in which it stands
        assert await reader.page.locator(":target table td").count() > 1
        await reader.page.fill("#on-goal", " ")
        await reader.page.click("#on button.main")
        await reader.sees("main [role=alert]", "write a question or a task first")
        await reader.open("/inbox")
        await reader.open(f"/runs/{RUN}/events")  # of a run that has ended: its page
        assert reader.page.url.endswith(f"/runs/{RUN}")
