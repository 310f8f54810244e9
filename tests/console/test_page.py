"""The page as a newcomer uses it, in Chromium: ask, watch, decide, read; while a Worker is killed."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.console.conftest import ROOT, RUN, Cli, Model, worker_of
from tests.console.page_driver import Chromium, Reader, page_of, serious_findings
from tests.console.page_facts import same_at_the_end, same_while_open
from tests.waiting import until

LIGHT = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
DARK = {"viewport": {"width": 1600, "height": 1000}, "color_scheme": "dark"}
PHONE = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark", "has_touch": True}


async def ask(reader: Reader, goal: str, **fields: str) -> None:
    """Asks as a person does, and is led to the run."""
    await reader.open("/ask")
    await reader.page.fill("#goal", goal)
    for name, text in fields.items():
        await reader.page.fill(f"#{name}", text)
    await reader.page.check("#approve_plan")
    await reader.page.click("#ask button.main")
    await reader.page.wait_for_url("**/runs/**", timeout=60_000)


async def test_a_newcomer_asks_a_folder_approves_the_plan_and_opens_a_figure(
    address: str, read: Cli, chromium: Chromium
) -> None:
    async with chromium.reading(address, **LIGHT) as reader:
        await ask(reader, "How many orders are there by region?", folder="shop/data")
        await reader.sees(".card.plan", "analyst")
        await reader.sees(".card .outlook", "in all")
        assert await reader.page.locator(".card details.commands code").all_inner_texts()
        await reader.page.click(".card.plan button[value=approve]")
        await reader.sees("#events", "plan.1: approve")
        await reader.sees(".report .answer", "158")
        await reader.page.click(".answer a.claim >> text=158")
        trail = reader.page.locator("dialog[open]")
        assert "SELECT" in await trail.inner_text()
        assert await trail.locator("td.hit").all_inner_texts() == ["158"]
        await trail.locator("[data-close]").click()
        bars = reader.page.locator(".chart rect.bar")
        assert await bars.count() == 4
        assert await reader.fits()
        run_id = reader.page.url.rpartition("/")[2]
        assert reader.trouble == []
    shown = await read.json("result", run_id)
    assert shown["status"] == "completed"


LAMPS = {
    "subtasks": [
        {"id": "t1", "role": "reader", "description": "What does the department need of lamps?"},
        {
            "id": "t2",
            "role": "buyer",
            "description": "Write the order for lamps by what is needed",
            "depends_on": ["t1"],
        },
    ]
}


async def test_a_run_is_steered_on_a_phone_while_its_worker_is_killed(
    alone: Cli, standin: Model, chromium: Chromium, tmp_path: Path
) -> None:
    teams = {"SUPERVISOR_TEAMS_DIR": str(ROOT / "examples" / "teams")}
    cli = alone.with_environ(**teams)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(LAMPS))
    async with (
        page_of(cli.environ, tmp_path / "ui.log") as found,
        chromium.reading(found, **PHONE) as reader,
    ):
        async with worker_of(cli.environ, standin, tmp_path) as worker:
            asked = ("run", "Order lamps", "--team", "purchasing", "--plan", str(plan))
            assert (await cli(*asked, "--id", "lamps", "--detach")).code == 0
            await reader.open("/runs/lamps")
            await reader.sees(".card.question textarea")
            assert await serious_findings(reader) == []
            await same_while_open(reader, cli, "lamps")
            await reader.page.click("#tree a[data-path=t1]")
            await reader.sees("details.action.retry")  # on the page of the run there is none
            for action in ("steer", "retry", "skip"):
                assert await reader.reaches(f"details.action.{action} summary")
            await reader.open("/runs/lamps")
            said = await reader.does("pause")
            assert "pause lamps" in said
            assert (await cli.json("status", "lamps"))["flags"]["paused"]
            os.kill(worker.pid, signal.SIGKILL)
            await until(lambda: worker.code is not None, 20)

        await reader.page.fill(".card textarea", "20 lamps by 3 March, cost centre 7")
        await reader.page.click(".card button[value=reply]")
        await reader.hears("does not answer")
        assert await reader.page.input_value(".card textarea")  # what was typed is not lost

        async with worker_of(cli.environ, standin, tmp_path):
            await reader.sees("details.action.resume")
            assert "resume lamps" in await reader.does("resume")
            await reader.sees("details.action.pause")
            assert "TEXT" in await reader.does("steer", text="prefer a long warranty")
            await reader.sees("#events", "a person says: prefer a long warranty")
            await reader.open("/")
            await reader.page.fill("article.card textarea", "20 lamps by 3 March, cost centre 7")
            await reader.page.click("article.card button[value=reply]")
            await reader.hears("replied")
            await reader.sees("#runs .wait", "a decision on a tool call")  # the list goes with the cards
            await reader.open("/runs/lamps")
            await reader.sees(".card.tool pre")
            assert "title" in await reader.page.inner_text(".card.tool pre")
            await reader.page.click(".card.tool button[value=approve]")
            await reader.sees(".report .answer", seconds=90)
            assert await reader.fits()
            await same_at_the_end(reader, cli, "lamps")
    decided = await cli.json("trace", "lamps")
    kinds = [event["data"]["kind"] for event in decided if event["type"] == "decided"]
    assert kinds == ["question", "tool"]


@pytest.mark.parametrize("options", [LIGHT, DARK, PHONE], ids=["light", "dark", "phone"])
async def test_pages_shut_nobody_out(address: str, options: dict[str, object], chromium: Chromium) -> None:
    async with chromium.reading(address, **options) as reader:
        for path in ("/", f"/ask?after={RUN}", f"/runs/{RUN}"):
            await reader.open(path)
            assert await serious_findings(reader) == []
            assert await reader.fits()


async def test_the_list_on_the_page_is_that_of_the_command(address: str, read: Cli, chromium: Chromium) -> None:
    rows = await read.json("list")
    async with chromium.reading(address, **LIGHT) as reader:
        await reader.open("/")
        cells = reader.page.locator("table.runs tbody tr")
        assert await cells.count() == len(rows)
        for at, row in enumerate(rows):
            shown = await cells.nth(at).inner_text()
            state = "partial" if row["status"] == "partial" else row["state"]
            assert all(part in shown for part in (state, row["team"], row["goal"][:100]))
        await reader.open("/?state=failed")
        failed = [row for row in rows if row["state"] == "failed"]
        assert await cells.count() == len(failed)
