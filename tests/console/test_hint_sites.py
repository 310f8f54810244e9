"""Every command that the source suggests anywhere is run by a test as it is printed."""

import ast
import asyncio
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.failure.v1 import Failure, TimeoutFailureInfo
from temporalio.api.workflow.v1 import PendingActivityInfo

from console.command import CommandFailed
from console.commands import doctor
from console.run import find_run, standstill, start_run
from console.run.run_outcome import RunOutcome
from console.terminal import console
from console.view.answer_text import answer_report
from runtime.paths import make_command, module_command
from runtime.server.temporal_binary import find_temporal
from starter import app
from supervision.base import limits
from supervision.contract.result import RunResult
from tests.console.conftest import GOAL, Cli
from tests.console.hint_sites import PLACEHOLDER, ROOT, hidden, in_backticks, made, spelled_out, written
from tests.console.test_hints import all_run, hints, run_as_printed
from tests.serving import own_server

RUN = "sites-1"
STAND = "test_the_hints_of_starting_leaving_and_reading_run_as_printed"
WORKERS = "test_hints_that_start_a_worker_run_as_printed"
MENDED = "test_a_run_that_does_not_replay_is_named_with_the_command_that_mends_it"
STOP = "test_the_hint_that_stops_a_server_runs_from_anywhere"
READ = "test_hints_of_reading_run_as_printed"
RUN_BY = {
    "console/commands/artifact_commands.py:artifacts_report:artifacts --save DIR": READ,
    "console/commands/list_commands.py:list_report:list": READ,
    "console/commands/list_commands.py:teams_report:teams --check": "test_listing_teams_runs_no_code_of_theirs",
    "console/commands/run_commands.py:follow_run:follow": "test_ctrl_c_detaches_and_the_run_completes",
    "console/commands/run_commands.py:run_goal:follow": STAND,
    "console/commands/doctor.py:_open_runs:status": "every_screen_says",
    "console/commands/doctor.py:_cached:worker": "test_doctor_warns_before_the_open_workflows_fill_the_caches",
    "console/commands/doctor.py:_queues:worker --pool": WORKERS,
    "console/commands/doctor.py:_queues:worker": WORKERS,
    "console/commands/tool_command.py:try_tool:tool default/calculate": READ,
    "console/commands/update_commands.py:cancel:result": STAND,
    "console/run/find_run.py:no_runs:run": READ,
    "console/run/request_options.py:prepared_request:run": STAND,
    "console/run/run_handle.py:_must_exist:list": STAND,
    "console/run/standstill.py:_no_worker:worker": WORKERS,
    "console/run/standstill.py:unanswered:doctor": "every_screen_says",
    "console/run/standstill.py:_of_code:repair": MENDED,
    "console/run/standstill.py:_of_failure:worker": WORKERS,
    "console/run/standstill.py:_of_queue:worker": WORKERS,
    "console/run/standstill.py:stated:resume": "test_the_hint_of_a_run_that_waits_for_a_person_runs_as_printed",
    "console/run/start_run.py:_taken:follow": "test_a_taken_id_names_the_run_that_has_it",
    "console/run/start_run.py:_taken:result": STAND,
    "console/run/start_run.py:require_workers:worker": WORKERS,
    "console/view/answer_text.py:_fact_lines:artifacts --save DIR": READ,
    "console/view/answer_text.py:_fact_lines:result --full": READ,
    "runtime/connection.py:_default_address:make serve": "test_hints_of_the_makefile_run_from_anywhere",
    "runtime/connection.py:_explain:make serve": "test_hints_of_the_makefile_run_from_anywhere",
    "runtime/server/__main__.py:_reported_running:module runtime.server --stop": STOP,
    "runtime/server/__main__.py:_serve:module runtime.server --stop": STOP,
    "worker_main.py:_no_model:make standin": "test_hints_of_the_makefile_run_from_anywhere",
}
"""The test, or the part of tests, that runs the hint of each place."""
NO_COMMANDS = {
    PLACEHOLDER: {  # ids of subtasks, and names of fields
        *("activities/model/structured.py", "console/view/answer_text.py", "supervision/results/answer.py"),
        "console/hints.py",  # the makers themselves
    },
    "make PLACEHOLDER": {"runtime/paths.py"},
    "make -C PLACEHOLDER PLACEHOLDER": {"runtime/paths.py"},
    "go install PLACEHOLDER": {"runtime/server/temporal_binary.py"},  # it has been run, and failed
    "model": {"console/commands/model_check.py"},  # a field of a role
    "tool_use": {"standin/server/api_request.py"},  # blocks of a message
    "tool_result": {"standin/server/api_request.py"},
}
USAGES = {  # of programs about themselves: `prog` of a parser
    "console/demo.py: python -m console.demo",
    "runtime/health.py: python -m runtime.health FILE",
    "runtime/server/__main__.py: python -m runtime.server",
    "standin/__main__.py: python -m standin",
}


def test_each_place_that_makes_a_hint_has_a_test_that_runs_it() -> None:
    assert made() == set(RUN_BY)
    tests = [ast.parse(file.read_text()) for file in Path(__file__).parent.glob("test_*.py")]
    functions = {node.name for tree in tests for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    functions |= {node.name for tree in tests for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(RUN_BY.values()) - functions == set()
    assert hidden() == []


def test_no_text_suggests_a_command_that_nothing_runs() -> None:
    ours = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    unknown = {
        piece: modules - NO_COMMANDS.get(piece, set())
        for piece, modules in in_backticks().items()
        if piece not in written() and not (piece.split()[0] in ours and len(piece.split()) <= 2)
    }
    assert {piece: modules for piece, modules in unknown.items() if modules} == {}
    assert set(spelled_out()) == USAGES


@pytest.mark.parametrize("command", sorted(written()))
def test_commands_of_other_programs_are_ones_that_they_know(command: str, tmp_path: Path) -> None:
    program, *words = command.split()
    if program == "chmod":
        (tmp_path / PLACEHOLDER).touch()
        subprocess.run([program, *words], cwd=tmp_path, check=True)
        return
    if program == "make":
        subprocess.run([program, "--dry-run", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return
    assert program == "temporal"
    subcommands = [word for word in words if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
    asked = [str(find_temporal()), *subcommands, "--help"]
    page = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert f"temporal {' '.join(subcommands)} " in page
    for option in [word for word in words if word.startswith("--")]:
        assert re.search(rf"{option}\b", page), (command, page)


@pytest.mark.parametrize("target", ["serve", "standin"])
async def test_hints_of_the_makefile_run_from_anywhere(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert make_command(target) == f"`make {target}`"
    monkeypatch.chdir(tmp_path)
    done = await asyncio.create_subprocess_exec(
        *("bash", "-c", make_command(target).strip("`") + " --dry-run"), cwd=tmp_path, stdout=subprocess.PIPE
    )
    out, _ = await done.communicate()
    assert done.returncode == 0
    assert b".venv/bin/python" in out


def test_the_hint_that_stops_a_server_runs_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert module_command("runtime.server", "--stop") == ".venv/bin/python -m runtime.server --stop"
    monkeypatch.chdir(tmp_path)
    command = f"SUPERVISOR_CACHE_DIR={tmp_path}/none {module_command('runtime.server', '--stop')}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done


async def starts_a_worker(text: str, cwd: Path) -> None:
    """Runs the hints as printed, but for a file of settings that is not there: a Worker would go on for ever."""
    commands = hints(text)
    assert commands, text
    for command in commands:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", f"{command} --env-file nowhere"), cwd=cwd, stderr=subprocess.PIPE
        )
        _, err = await process.communicate()
        assert (process.returncode, err) == (2, b"there is no file nowhere\n"), command


async def test_hints_that_start_a_worker_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def nobody(client: Any, queue: str, kind: Any) -> dict[str, datetime]:
        return {}

    async def unlimited(client: Any, queue: str) -> None:
        return None

    async def only_runs(client: Any, queue: str, kind: Any) -> dict[str, datetime]:
        return {"7@host": datetime.now(UTC)} if queue == "supervisor" else {}

    role = '[[roles]]\nname = "far"\ndescription = "Far."\nsystem_prompt = "Go."\npool = "east"\n'
    (tmp_path / "spread").mkdir()
    (tmp_path / "spread" / "team.toml").write_text(f'name = "spread"\ngeneralist = "far"\n{role}')
    texts = []
    monkeypatch.setattr(doctor, "limited", unlimited)
    for polled in (only_runs, nobody):
        for module in (start_run, standstill, doctor):
            monkeypatch.setattr(module, "pollers", polled)
        monkeypatch.setattr(start_run, "server_address", lambda _: "host:1")
        with pytest.raises(CommandFailed) as refused:
            await start_run.require_workers(None)  # type: ignore[arg-type]
        texts.append(str(refused.value))
    for queue in ("supervisor-model", "supervisor-tools", "supervisor.east"):
        cause = await standstill._of_queue(_Client(), ("t1",), queue)  # type: ignore[arg-type]
        assert cause is not None
        texts.append(cause.line)
    lost = PendingActivityInfo(attempt=2, last_failure=Failure(timeout_failure_info=TimeoutFailureInfo()))
    lost.activity_options.task_queue.name = "supervisor.east"
    texts.append(standstill._of_failure(("t1",), lost, datetime.now(UTC)).line)
    texts += [row.fix async for row in doctor._queues(None, [tmp_path]) if row.fix]  # type: ignore[arg-type]
    assert len(texts) == 9
    for text in dict.fromkeys(texts):
        await starts_a_worker(text, tmp_path)


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


class _Client:
    client = None


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
        assert len(printed) == 1, (words, done)
        code, out = await run_as_printed(read, printed[0])
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
