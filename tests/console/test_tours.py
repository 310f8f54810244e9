"""The tours of the documents, run as they are printed: without a key, on a server and a Worker of their own."""

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.console.conftest import ROOT, Cli, Done
from tests.serving import WorkerProcesses
from tests.waiting import until

pytestmark = pytest.mark.timeout(900)

START = (ROOT / "docs/start.md").read_text(encoding="utf-8")
PEOPLE = (ROOT / "docs/people.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- run: (\w+) -->\n```sh\n(.*?)```", re.DOTALL)
_DECIDES = re.compile(r"^temporal-supervisor (?:reply|show|approve|deny) ")


@dataclass
class Tour:
    """A folder in which somebody follows the documents."""

    folder: Path
    environ: dict[str, str]

    async def block(self, script: str) -> Done:
        """What a block of commands prints; each of them must succeed."""
        process = await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", script),
            cwd=self.folder,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 300)
        done = Done(process.returncode or 0, out.decode(), err.decode())
        assert done.code == 0, (script, done.out, done.err)
        return done

    async def waits(self, subtask: str) -> None:
        """Returns once a subtask waits for a person."""
        # A command of the page's own would import everything at each look.
        forked = Cli(self.environ, self.folder)

        async def is_asked() -> bool:
            listed = json.loads(await forked.out("inbox", "--json"))
            return any(item["subtask_id"] == subtask for item in listed)

        await until(is_asked, 120)

    async def decisions(self, script: str) -> str:
        """What commands that decide print, each run once what it is about waits."""
        shown = ""
        for line in script.splitlines():
            if _DECIDES.match(line):
                words = shlex.split(line, comments=True)
                await self.waits(next(word for word in words if re.fullmatch(r"t\d+", word)))
            shown += (await self.block(line)).out
        return shown


@pytest.fixture
async def tour(base: dict[str, str], tmp_path: Path) -> AsyncIterator[Tour]:
    """A folder where the page's first block has started a server, and a Worker with the stand-in serves."""
    program = tmp_path / "bin" / "temporal-supervisor"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {ROOT / "starter.py"} "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "given"
    folder.mkdir()
    environ = {name: value for name, value in base.items() if name != "SUPERVISOR_TEAM"}
    environ |= {
        "PATH": os.pathsep.join([str(program.parent), base["PATH"]]),
        "SUPERVISOR_CACHE_DIR": str(tmp_path / "cache"),
        "SUPERVISOR_ARTIFACTS_URL": str(tmp_path / "artifacts"),
        "SUPERVISOR_TEAMS_DIR": str(folder / "teams"),
    }
    (folder / "teams").mkdir()
    made, workers = Tour(folder, environ), WorkerProcesses(environ, tmp_path)
    blocks = dict(_BLOCK.findall(START))
    try:
        await made.block(blocks["start"])
        await workers.start("--standin")
        yield made
    finally:
        workers.end()
        await made.block(blocks["stop"])


async def answers_from_files(tour: Tour, script: str) -> None:
    """Runs the first block that asks: the answer has figures of the table and a sentence of the notes."""
    files = (await tour.block(script)).out
    assert "table orders, 5 rows" in files
    assert "3279" in files
    assert "Office chairs come back because the gas spring of lot 7 loses pressure. [notes.md]" in files


async def test_the_first_minutes_of_the_start_page(tour: Tour) -> None:
    blocks = dict(_BLOCK.findall(START))
    assert [*blocks] == [
        "start",
        "files",
        "evidence",
        "table",
        "tool",
        "approval",
        "decision",
        "stop",
    ]
    await answers_from_files(tour, blocks["files"])


@pytest.mark.long
async def test_the_fifteen_minutes_of_the_start_page(tour: Tour) -> None:
    blocks = dict(_BLOCK.findall(START))
    await answers_from_files(tour, blocks["files"])
    assert "3279" in (await tour.block(blocks["evidence"])).out
    assert (tour.folder / "report.html").stat().st_size > 10_000
    written = await tour.block(blocks["table"])
    assert "wrote table.csv: 3 rows, 5 columns" in written.err
    assert [line.split(",")[:2] for line in (tour.folder / "table.csv").read_text().splitlines()] == [
        *(
            ["supplier", "total"],
            ["Acme Lamps", "588.0"],
            ["Borg Chairs", "2093.0"],
            ["Acme Lamps", "245.0"],
        )
    ]
    told = (await tour.block(blocks["tool"])).out
    assert told.count("Desk lamp costs 49.00 EUR") >= 2  # by `tool`, and in the answer
    await tour.block(blocks["approval"])
    decided = await tour.decisions(blocks["decision"])
    assert "approved t1/1:1.0 of run my-refund" in decided
    assert "Kim" in (tour.folder / "teams/refunds/refunds.csv").read_text()


@pytest.mark.long
async def test_the_tour_of_people_decide(tour: Tour) -> None:
    shutil.copytree(ROOT / "examples/teams/purchasing", tour.folder / "teams/purchasing")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    goal = makefile.partition('--goal "')[2].partition('"')[0]
    plan = tour.folder / "teams/purchasing/plan.json"
    await tour.block(f'temporal-supervisor run --detach --team purchasing --plan {plan} --id lamps "{goal}"')
    commands = PEOPLE.split("## Try it\n")[1].split("```sh\n")[1].split("```")[0]
    decided = await tour.decisions(commands)
    assert "replied to t2/" in decided
    assert "approved t4/" in decided
    await tour.block("temporal-supervisor result lamps --wait")
    orders = tour.folder.parent / "orders.md"  # where the Worker was started
    assert orders.read_text(encoding="utf-8").count("<!--") == 1
