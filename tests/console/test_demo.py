"""The demo from nothing, with its own server, in its own folder."""

import os
import re
import signal
import socket
from pathlib import Path

import pytest

from benchmarks.prompts import PAGE, SMALL_WINDOW, page, sent
from tests.console.conftest import Cli
from tests.waiting import lives, until


@pytest.fixture
def fresh(base: dict[str, str], tmp_path: Path) -> Cli:
    """An environment in which nothing was ever started."""
    root = Path(__file__).parents[2]
    environ = {**base, "SUPERVISOR_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(root)}
    environ["SUPERVISOR_ARTIFACTS_URL"] = str(tmp_path / "artifacts")
    return Cli(environ, tmp_path)


def stale_lines(output: str) -> list[str]:
    """The lines of the documents' sample that this output of the demo does not have, numbers aside."""

    def kind(line: str) -> str:
        shown = line.removesuffix(" ...").split(", log ")[0].removesuffix(", it was running already")
        return re.sub(r"[\d,.:$%]+", "0", re.sub(r", process \d+$", "", shown))

    page = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
    sample = page.split("<!-- sample: the demo -->\n```\n")[1].split("```")[0].splitlines()
    real = [kind(line) for line in output.splitlines()]
    assert max(map(len, sample)) <= 80
    return [line for line in sample if not any(other.startswith(kind(line)) for other in real)]


async def test_without_a_terminal_it_answers_and_leaves_nothing_running(fresh: Cli) -> None:
    done = await fresh(module="temporal_supervisor.console.demo")
    assert done.code == 0, done.err
    assert "the stand-in model at http://127.0.0.1:" in done.out
    assert "Rwanda" in done.out
    assert "answers come from the stand-in model" in done.out
    assert "\x1b" not in done.out
    assert re.search(r"http://127\.0\.0\.1:\d+/namespaces/default/workflows/supervise-", done.out)
    assert stale_lines(done.out) == []
    pids = [int(pid) for pid in re.findall(r"process (\d+)", done.out)]
    assert len(pids) == 2
    assert not [pid for pid in pids if lives(pid)]


async def test_on_a_terminal_a_killed_worker_is_replaced_and_all_stays_up_until_ctrl_c(fresh: Cli) -> None:
    async with fresh.terminal("--standin", module="temporal_supervisor.console.demo", columns=120, rows=40) as terminal:
        await terminal.until("asking for a plan", 60)
        server, worker = [int(pid) for pid in re.findall(r"process (\d+)", terminal.text)]
        os.kill(worker, signal.SIGKILL)
        await terminal.until(f"worker {worker} was killed (signal 9): starting another one")
        await terminal.until("server, Web UI and worker stay up", 60)
        assert lives(server)
        terminal.interrupt()
        assert await terminal.ended() == 0
        await until(lambda: not lives(server))


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("worker  process", id="before the run", marks=pytest.mark.long),
        pytest.param("asking for a plan", id="in the run"),
        pytest.param("server, Web UI and worker stay up", id="after the answer", marks=pytest.mark.long),
    ],
)
async def test_sigterm_ends_it_like_ctrl_c(fresh: Cli, words: str) -> None:
    async with fresh.terminal("--standin", module="temporal_supervisor.console.demo", columns=120, rows=40) as terminal:
        await terminal.until(words, 60)
        pids = [int(pid) for pid in re.findall(r"process (\d+)", terminal.text)]
        (model,) = re.findall(r"the stand-in model at http://127\.0\.0\.1:(\d+)", terminal.text)
        terminal.terminate()
        terminal.terminate()  # as an impatient person
        text = await terminal.whole()
        assert await terminal.ended() == 128 + signal.SIGTERM
    assert text.count("SIGTERM ended the demo: all that it had started is stopped") == 1
    assert "Traceback" not in text
    assert "error" not in text
    assert len(pids) == 2
    assert not [pid for pid in pids if lives(pid)]
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(model))):
        pass


@pytest.mark.long
async def test_it_joins_a_server_that_runs_and_leaves_it_running(fresh: Cli) -> None:
    serving = await fresh("serve", "--detach", "--in-memory")
    assert serving.code == 0
    server = int(re.findall(r"process (\d+)", serving.out)[0])
    try:
        done = await fresh("--goal", "What is 2 + 3?", module="temporal_supervisor.console.demo")
        assert done.code == 0
        assert "it was running already" in done.out
        assert "5" in done.out
        assert lives(server)
    finally:
        await fresh("serve", "--stop")
    assert not lives(server)


async def test_the_page_of_prompts_is_what_the_demo_sends() -> None:
    assert page(await sent(), await sent(SMALL_WINDOW)) == PAGE.read_text(encoding="utf-8"), (
        "if that is meant: make prompts"
    )
