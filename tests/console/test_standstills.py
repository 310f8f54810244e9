"""Runs that stand still: each screen says for whom, and what helps."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.taskqueue.v1 import PollerInfo

from temporal_supervisor.console.run.pollers import Polled
from temporal_supervisor.console.run.standstill import missing_worker
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from tests.console.conftest import GOAL, Cli, Model, worker_of
from tests.console.test_hints import hints, run_as_printed
from tests.waiting import until

QUEUED = datetime.now(UTC) - timedelta(seconds=30)
_BEFORE, _AFTER = QUEUED - timedelta(seconds=5), QUEUED + timedelta(seconds=5)


def poller(identity: str, at: datetime, build: str = "") -> PollerInfo:
    """A Worker as the server lists it: by its last poll."""
    info = PollerInfo(identity=identity, deployment_options=WorkerDeploymentOptions(build_id=build))
    info.last_access_time.FromDatetime(at)
    return info


async def waits(cli: Cli, run_id: str, for_whom: str, subject: str = "") -> dict[str, Any]:
    """Returns the standstill of that kind, of any subject or of this one, once `status --json` has it."""
    seen: list[dict[str, Any]] = []

    async def is_there() -> bool:
        status = json.loads(await cli.out("status", run_id, "--json"))
        standstills = [one for one in status["standstills"] if one["waits_for"] == for_whom]
        seen[:] = [one for one in standstills if not subject or subject in one["subjects"]]
        return bool(seen)

    await until(is_there, 60)
    return seen[0]


async def screens_say(cli: Cli, run_id: str, *words: str) -> None:
    """`status`, `doctor`, `list` and `follow` show the words, on 80 columns, whole."""
    async with cli.terminal("follow", run_id) as terminal:
        for word in words:
            await until(lambda word=word: word in " ".join(terminal.text.split()), 60)
    for command in (["status", run_id], ["doctor"], ["list", "--state", "running"]):
        done = await cli(*command)
        for word in words:
            assert word in " ".join(done.out.split()), (command, done.out, done.err)


async def every_screen_says(cli: Cli, run_id: str, *words: str) -> None:
    """So do they, and what `doctor` suggests runs as it is printed."""
    await screens_say(cli, run_id, *words)
    doctor = await cli("doctor")
    assert doctor.code == 1
    for printed in hints(" ".join(doctor.out.split())):
        if " worker" not in printed:
            assert (await run_as_printed(cli, printed))[0] in (0, 1), printed


@pytest.mark.parametrize("build", ["", "7"])
def test_nobody_is_to_start_a_worker_while_a_new_one_polls(build: str) -> None:
    lost, new = poller("7@far", _BEFORE, build), poller("8@far", _AFTER, build)
    cause = missing_worker(Polled([lost, new], build), build, QUEUED, None)
    assert cause.text.startswith("a Worker to take it up: 8@far (polled ")
    assert "7@far" not in cause.text
    assert "start one" not in cause.helps


@pytest.mark.parametrize(
    ("workers", "build"),
    [
        ([], ""),
        ([poller("7@far", _BEFORE)], ""),  # it may have been lost before the run asked for it
        ([poller("7@far", _AFTER, "8")], "7"),  # a run stays with its build
    ],
)
def test_a_worker_is_to_be_started_while_none_polls(
    workers: list[PollerInfo],
    build: str,
) -> None:
    assert "start one with" in missing_worker(Polled(workers, "8"), build, QUEUED, None).helps


@pytest.mark.parametrize(("builds", "named"), [(["7"], "7"), (["7", "8"], "BUILD")])
def test_a_build_is_made_current_by_its_name_if_it_is_the_only_one(
    builds: list[str],
    named: str,
) -> None:
    workers = [poller(f"{build}@far", _AFTER, build) for build in builds]
    cause = missing_worker(Polled(workers, ""), "", QUEUED, None)
    assert cause.text.startswith("a current build")
    assert cause.helps.endswith(f" --build-id {named}`")


async def test_a_provider_that_is_away_is_named(cli: Cli, standin: Model) -> None:
    standin.fails("down-1*/turn.*", status=529, message="too many")
    assert (await cli("run", GOAL, "--id", "down-1", "--detach")).code == 0
    cause = await waits(cli, "down-1", "provider", "t1")
    assert "is overloaded" in cause["text"]
    assert "too many" in cause["text"]
    assert "attempt " in cause["text"] or "next try at" in cause["text"]  # before and after its breaker opens
    await every_screen_says(cli, "down-1", "for the model provider", "overloaded", "provider answers")
    await cli("cancel", "down-1")


async def test_a_pool_without_a_worker_is_named_with_the_command_that_starts_one(cli: Cli) -> None:
    role = {"name": "far", "description": "Works far away.", "system_prompt": "Answer.", "pool": "east"}
    request = {"goal": GOAL, "strategy": "route", "team": {"name": "spread", "generalist": "far", "roles": [role]}}
    (cli.folder / "pool.json").write_text(json.dumps(request))
    assert (await cli("run", "--request", "pool.json", "--id", "pool-1", "--detach")).code == 0
    cause = await waits(cli, "pool-1", "worker")
    assert cause["text"] == "a Worker of pool east: there is none"
    assert "--pool east" in cause["helps"]
    await every_screen_says(cli, "pool-1", "a Worker of pool east", "--pool east")
    await cli("cancel", "pool-1")


async def test_a_killed_worker_is_named_while_there_is_no_other(
    base: dict[str, str], standin: Model, tmp_path: Path
) -> None:
    async with EmbeddedServer(shared=False, headless=True) as info:
        cli = Cli({**base, "TEMPORAL_ADDRESS": info.address}, tmp_path)
        standin.fails("killed-1*/turn.1", delay_ms=60_000)
        async with worker_of(cli.environ, standin, tmp_path) as worker:
            assert (await cli("run", GOAL, "--id", "killed-1", "--detach")).code == 0
            await cli.until("killed-1", lambda status: bool(status["counts"]["running"]))
            waiting = await cli("run", GOAL, "--approve-plan", "--id", "asks-1", "--detach")
            assert waiting.code == 0
            await cli.until("asks-1", lambda status: bool(status["waiting"]))
            os.kill(worker.pid, signal.SIGKILL)
            done = await cli.out("status", "killed-1")
            assert "the run waits for a Worker" in done
            assert "temporal-supervisor worker" in done
            async with cli.terminal("follow", "killed-1", columns=80) as terminal:
                await until(lambda: "the run waits for a Worker" in " ".join(terminal.text.split()), 60)
            doctor = " ".join((await cli("doctor")).out.split())
            assert "'asks-1': the run waits for a Worker" in doctor  # which nobody could ask
            cause = await waits(cli, "killed-1", "worker")
            story = await cli("trace", "killed-1")  # out of the history and the journal
            assert "t1 delegating to researcher: " in story.out
            assert str(worker.pid) in cause["text"] or "t1" in cause["subjects"]
