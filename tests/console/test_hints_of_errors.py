"""The commands that errors and `doctor` suggest run as they are printed."""

import asyncio
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from console.command import CommandFailed
from console.commands import doctor
from console.run import find_run
from console.run.run_outcome import RunOutcome
from console.terminal import console
from console.view.answer_text import answer_report
from runtime.paths import PROGRAM, command
from supervision.base import limits
from supervision.contract.result import RunResult
from tests.console.conftest import GOAL, Cli
from tests.console.test_hints import all_run, hints, run_as_printed
from tests.serving import own_server

RUN = "sites-1"


@pytest.mark.parametrize("words", [["serve"], ["serve", "--stop"], ["standin", "--port", "8234"]], ids=" ".join)
async def test_hints_of_the_server_and_of_the_stand_in_run_from_anywhere(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out = await run_as_printed(Cli(dict(os.environ), tmp_path), f"{command(PROGRAM, words).strip('`')} -h")
    assert (code, f"usage: temporal-supervisor {words[0]}" in out) == (0, True), out


async def starts_a_worker(text: str, cwd: Path) -> None:
    """Runs the hints as printed, but for a file of settings that is not there: a Worker would run for ever."""
    commands = hints(text)
    assert commands, text
    for words in commands:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"{words} --env-file nowhere"), cwd=cwd, stderr=subprocess.PIPE
        )
        _, err = await process.communicate()
        assert (process.returncode, err) == (2, b"there is no file nowhere\n"), words


async def test_doctor_warns_before_the_open_workflows_fill_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(client: Any, queue: str, kind: Any) -> dict[str, datetime]:
        return {"7@host": datetime.now(UTC)}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "pollers", one)
    async with own_server() as client:
        for number in range(4):
            await client.start_workflow("SupervisorWorkflow", id=f"w-{number}", task_queue="supervisor")
        for held, level in ((6, "ok"), (5, "warning")):
            monkeypatch.setattr(limits, "CACHED_WORKFLOWS", held)
            row = await doctor._cached(client)
            assert row is not None
            assert (row.level, row.text) == (level, f"4 on 1 Worker, which holds {held} of them in its cache")
            if row.fix:
                await starts_a_worker(row.fix, tmp_path)
            assert bool(row.fix) == (level == "warning")


@pytest.fixture(scope="module")
async def read(served: dict[str, str], place: Path) -> Cli:
    """Commands where run `sites-1` has completed, which made an artifact."""
    cli = Cli(served, place)
    assert (await cli("run", GOAL, "--id", RUN)).code == 0
    return cli


async def test_hints_of_reading_run_as_printed(
    read: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["result", RUN], ["artifacts", RUN], ["tool", "calculate"], ["list", "--team", "nobodys"]):
        done = await read(*words)
        printed = hints(done.out + done.err)
        assert printed, (words, done)
        for command_of_screen in printed:
            code, out = await run_as_printed(read, command_of_screen)
            assert code == 0, (printed, out)
        shutil.rmtree(read.folder / "DIR", ignore_errors=True)

    monkeypatch.chdir(read.folder)
    answer_report(RUN, RunOutcome(0, "completed", RunResult(answer="-", truncated=True))).show(console())
    assert len(await all_run(read, capsys.readouterr().out)) == 1

    async def no_runs(client: Any, limit: int) -> list[Any]:
        return []

    monkeypatch.setattr(find_run, "roots", no_runs)
    with pytest.raises(CommandFailed) as none:
        await find_run.find_run(_Namespace(), None)  # type: ignore[arg-type]
    code, out = await run_as_printed(read, f"{hints(str(none.value))[0]} --detach")
    assert code == 0, out


class _Namespace:
    namespace = "default"
