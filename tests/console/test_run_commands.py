"""Starting, following, leaving and cancelling runs."""

import contextlib
import json
from pathlib import Path

from temporalio.client import Client

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from tests.console.conftest import GOAL, HOLDS, Cli, Model
from tests.console.test_hints import all_run, hints, run_as_printed
from tests.waiting import until


async def test_a_taken_id_names_the_run_that_has_it(cli: Cli, standin: Model) -> None:
    standin.fails("taken-1", **HOLDS)
    assert (await cli("run", GOAL, "--id", "taken-1", "--detach")).code == 0
    running = await cli.refused("run", GOAL, "--id", "taken-1")
    assert "already running" in running
    assert [command.split()[-2:] for command in hints(running)] == [["follow", "taken-1"]]
    await cli("cancel", "taken-1")
    assert await all_run(cli, running)
    assert "exists already (cancelled)" in await cli.refused("run", GOAL, "--id", "taken-1")


async def test_ctrl_c_detaches_and_the_run_completes(cli: Cli, standin: Model) -> None:
    standin.fails("left-1", chunk_delay_ms=40)
    async with cli.terminal("run", GOAL, "--id", "left-1") as terminal:
        await terminal.until("asking for a plan")
        terminal.interrupt()
        assert await terminal.ended(10) == 130
        await terminal.until("the run continues: ")
        assert "Traceback" not in terminal.text
        assert terminal.text.rstrip().endswith("follow left-1`")
        (left,) = hints(terminal.text.replace("\r", ""))
        assert "\x1b[?25h" in terminal.text[terminal.text.rindex("\x1b[?25l") :]  # the cursor is back
    standin.usual()
    code, out = await run_as_printed(cli, left)
    assert (code, "Rwanda" in out) == (0, True)
    assert "Rwanda" in await cli.out("result", "left-1", "--wait")


async def test_cancelling_stops_the_run_and_keeps_what_it_had(cli: Cli, standin: Model) -> None:
    standin.fails("stop-1*synthesis", stall_after=2)  # silent until the call is cancelled
    async with cli.terminal("run", GOAL, "--id", "stop-1", columns=120) as terminal:
        await terminal.until("writing the answer")
        done = await cli("cancel", "stop-1")
        assert done.code == 0
        assert "run 'stop-1' is cancelled" in done.err
        assert [command.split()[-2:] for command in hints(done.err)] == [["result", "stop-1"]]
        assert await terminal.ended() == 4
    result = await cli("result", "stop-1", "--json")
    assert result.code == 4
    assert [s["state"] for s in json.loads(result.out)["subtasks"]] == ["completed"] * 3
    assert (await cli("cancel", "stop-1")).code == 0


async def test_a_terminated_run_says_so_on_every_screen(cli: Cli, standin: Model) -> None:
    standin.fails("ended-1/t2*", **HOLDS)
    assert (await cli("run", GOAL, "--id", "ended-1", "--detach")).code == 0

    half = {"completed": 1, "running": 1}
    await cli.until("ended-1", lambda status: half.items() <= status["counts"].items())
    client = await Client.connect(cli.environ["TEMPORAL_ADDRESS"])
    await client.get_workflow_handle("ended-1").terminate(reason="trial")
    status = await cli("status", "ended-1")
    assert "\n terminated · 1/3 done" in status.out
    assert "■ t2" in status.out
    assert status.out.splitlines()[-1] == "terminated: trial"
    assert (await cli.json("status", "ended-1"))["error"]["message"] == "trial"
    result = await cli("result", "ended-1", "--json")
    assert (result.code, "terminated: trial" in result.err) == (1, True)
    shown = json.loads(result.out)
    assert (shown["status"], shown["subtasks"][0]["state"]) == ("partial", "completed")
    reasons = {gap["reason"] for gap in shown["gaps"]}
    assert reasons == {"terminated while it was running", "terminated while it was waiting"}
    assert "was terminated, or was pruned" in (await cli("verify", "ended-1")).sentence


async def test_the_live_view_fits_its_terminal_and_shows_the_plan(cli: Cli, standin: Model) -> None:
    standin.fails("live-1*turn", chunk_delay_ms=40)
    async with cli.terminal("run", GOAL, "--id", "live-1", columns=80) as terminal:
        await terminal.until("executing ·")
        await terminal.until("▶ t")
        await terminal.until("tokens")
        terminal.resize(120, 40)
        await terminal.until("─" * 120)
        standin.usual()
        assert await terminal.ended() == 0
        for words in ("✔ t1", "└ ", "Ctrl-C leaves the run going", "stand-in model", "took "):
            assert words in terminal.text
        assert "\x1b]8" not in terminal.text


def is_back(picture: str) -> bool:
    """True if a whole picture of the run that waits says nothing of the server."""
    whole = "the run waits for a Worker" in picture and "Ctrl-C leaves" in picture
    return whole and "does not answer" not in picture


async def test_following_outlives_the_server(base: dict[str, str], tmp_path: Path) -> None:
    first = contextlib.AsyncExitStack()
    info = await first.enter_async_context(EmbeddedServer(shared=False, db=tmp_path / "temporal.db", headless=True))
    cli = Cli({**base, "TEMPORAL_ADDRESS": info.address}, tmp_path)
    assert (await cli("run", GOAL, "--id", "kept-1", "--detach", "--queue-anyway")).code == 0
    async with cli.terminal("follow", "kept-1", columns=120) as terminal:
        await terminal.until("the run waits for a Worker")
        await first.aclose()
        await terminal.until("the Temporal server does not answer; the run is safe")
        port = int(info.address.rpartition(":")[2])
        async with EmbeddedServer(shared=False, db=tmp_path / "temporal.db", headless=True, port=port):
            await until(lambda: is_back(terminal.text.rpartition("running · ")[2]), 40)
        assert "temporalio_client" not in terminal.text
        assert terminal.process.exitcode is None
