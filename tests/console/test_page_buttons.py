"""The buttons of a run and of a subtask, pressed one after another in Chromium, rightly and wrongly."""

import json
from pathlib import Path

from tests.console.conftest import GOAL, HOLDS, Cli, Model
from tests.console.page_driver import Chromium, Reader

DESK = {"viewport": {"width": 1280, "height": 900}}
RUN_ID = "buttons-1"


async def pressed(reader: Reader, action: str, said: str, **fields: str) -> None:
    """Opens an action, fills it in, presses its button and awaits what is said."""
    box = reader.page.locator(f"details.action.{action}")
    if await box.get_attribute("open") is None:
        await box.locator("summary").click()
    for name, text in fields.items():
        await box.locator(f"[name={name}]").fill(text)
    await reader.page.evaluate("heard.length = 0")
    await box.locator("button").click()
    await reader.hears(said)


async def test_each_button_does_what_it_says_or_says_why_not(
    cli: Cli, address: str, standin: Model, chromium: Chromium, tmp_path: Path
) -> None:
    standin.fails(f"{RUN_ID}*turn", **HOLDS)
    words = "Look up life expectancy in {} in 2007"
    subtasks = [
        {"id": f"t{number}", "role": "analyst", "description": words.format(place)}
        for number, place in enumerate(("Rwanda", "Japan"), 1)
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"subtasks": subtasks}))
    options = ("--plan", str(plan), "--max-parallel", "1", "--id", RUN_ID, "--detach")
    assert (await cli("run", GOAL, *options)).code == 0

    async with chromium.reading(address, **DESK) as reader:
        await reader.open(f"/runs/{RUN_ID}")
        await reader.sees("#tree .state.running")
        await pressed(reader, "extend", "nothing to extend: give --deadline")
        await pressed(reader, "extend", "'much' is no number", budget_usd="much")
        await pressed(reader, "extend", "must be a duration", budget_usd="", deadline="soon")
        await pressed(reader, "extend", "2,000,000", deadline="2h", budget_tokens="2,000,000")

        await reader.page.click("#tree a[data-path=t1]")
        await reader.sees("details.action.steer")
        await pressed(reader, "steer", "said to t1", text="Only since 1990")
        await pressed(reader, "retry", "'t1' has not ended", instruction="Try the other table")
        await pressed(reader, "skip", "t1 is skipped", why="not needed")
        await reader.sees(".state.skipped")
        await pressed(reader, "retry", "t1 is done again", instruction="Try the other table")
        await reader.open(f"/runs/{RUN_ID}")
        await reader.sees("#events", "not needed")
        await reader.page.locator("details.action.cancel summary").click()
        await reader.page.locator("details.action.cancel button").click()
        await reader.sees(".report", "the run was cancelled")
