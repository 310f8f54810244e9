"""What screens and arguments are made of, without a server: rows, ids, limits, the words of a failure."""

import io
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from console.base.terminal import put
from console.commands import doctor
from console.commands.doctor import CheckRow, row_texts
from console.commands.list_commands import run_table
from console.commands.team_commands import teams_report
from console.run.pollers import gone
from console.run.run_outcome import RunOutcome
from console.view.answer_text import answer_report
from runtime.settings import Settings
from supervision.base import limits
from supervision.contract.finding import ArtifactRef
from supervision.contract.result import RunResult
from tests.console.conftest import ROOT
from tests.serving import own_server

LONG = "supervise-how-did-life-expectancy-in-rwanda-and-botswana-change-131ca7"


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_command_of_an_answer_is_never_broken(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(ROOT)
    screen = terminal(width)
    made = ArtifactRef(name="a.md", media_type="text/markdown", bytes=1, ref="r", subtask_id="t1")
    outcome = RunOutcome(0, "completed", RunResult(answer="-", artifacts=[made]))
    answer_report(LONG, outcome, "http://h/" + LONG).show(screen)
    lines = written(screen).splitlines()
    assert any(f".venv/bin/temporal-supervisor artifacts {LONG} --save DIR" in line for line in lines)
    assert any(f"http://h/{LONG}" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_command_of_the_doctor_is_never_broken(width: int) -> None:
    screen = terminal(width)
    fix = f"start one with `.venv/bin/temporal-supervisor worker --pool east`; `.venv/bin/x status {LONG}` says more"
    row = CheckRow("problem", "open run", "t1 waits for a Worker of pool east: there is none", fix)
    put(screen, row_texts(row, width))
    shown = written(screen)
    for command in (".venv/bin/temporal-supervisor worker --pool east", f".venv/bin/x status {LONG}"):
        (line,) = [line for line in shown.splitlines() if command in line]
        assert len(line) <= width or line.strip() == command  # bare: in backticks a shell would run its output
    assert shown.split()[:3] == ["problem", "open", "run"]
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_a_worker_of_this_machine_that_has_ended_serves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    identities = [f"{process.pid}@{socket.gethostname()}", f"{os.getpid()}@{socket.gethostname()}", "1@elsewhere", "x"]
    assert [gone(identity) for identity in identities] == [True, False, False, False]


def test_a_partial_run_is_listed_as_one() -> None:
    known: dict[str, Any] = {
        "run_id": "r",
        "state": "completed",
        "phase": "done",
        "team": "t",
        "goal": "g",
        "usd": None,
    }
    row: dict[str, Any] = {**known, "started_at": "2026-01-01T10:00:00+00:00", "standstills": []}
    screen = terminal(80)
    partial = {**row, "status": "partial", "partial": "t1/t2 (engineer: found nothing)"}
    put(screen, run_table([partial, {**row, "status": "completed", "partial": None}], screen))
    lines = written(screen).splitlines()
    assert [line.split()[0] for line in lines] == ["state", "partial", "completed", "◐"]
    assert lines[-1] == "◐ r: t1/t2 (engineer: found nothing)"


async def test_doctor_warns_before_the_open_workflows_fill_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    async def one(*_: Any) -> dict[str, datetime]:
        return {"7@host": datetime.now(UTC)}

    monkeypatch.setattr(doctor, "pollers", one)
    async with own_server() as client:
        for number in range(4):
            await client.start_workflow("SupervisorWorkflow", id=f"w-{number}", task_queue="supervisor")
        for held, level in ((6, "ok"), (5, "warning")):
            monkeypatch.setattr(limits, "CACHED_WORKFLOWS", held)
            row = await doctor._cached(client)
            assert row is not None
            assert (row.level, row.text) == (level, f"4 on 1 Worker, which holds {held} of them in its cache")
            assert bool(row.fix) == (level == "warning")


@pytest.mark.parametrize("program", ["starter.py", "worker_main.py"])
def test_without_its_packages_a_program_says_what_to_do(program: str) -> None:
    done = subprocess.run([sys.executable, "-S", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "run `make setup` once, then .venv/bin/temporal-supervisor" in done.stderr


async def test_an_output_schema_that_is_none_is_named_with_its_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crew").mkdir()
    file = tmp_path / "crew" / "team.toml"
    schema = '{ type = "object", properties = { fee = { type = "money" } } }'
    roles = f'[[roles]]\nname = "one"\ndescription = "d"\nsystem_prompt = "p"\noutput_schema = {schema}\n'
    file.write_text(f'name = "crew"\ngeneralist = "one"\n{roles}')
    settings = Settings(_env_file=None, teams_dir=tmp_path)
    assert (await teams_report(settings, name="crew")).show(terminal(80)) == 1
    said = capsys.readouterr().err
    assert f"{file}: roles.one.output_schema: it is not a JSON schema (draft 2020-12): at properties/fee/type: " in said
