"""The command line as people use it: real processes, a real terminal, a real server, the stand-in model."""

import asyncio
import codecs
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

import pytest

from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.standin.extract.kind_of_call import think
from temporal_supervisor.standin.server.app import BrainServer, serving
from temporal_supervisor.standin.server.faults import FaultScript, ServerConfig
from tests.console.page_driver import Chromium, page_of, started_chromium
from tests.forked import end_of, ended, started
from tests.serving import WorkerProcess, WorkerProcesses
from tests.waiting import until

pytest.register_assert_rewrite("tests.console.page_facts")

ROOT = Path(__file__).parents[2]
GOAL = (
    "How did life expectancy in Rwanda change from 1952 to 2007, and what explains the setbacks? Write a short report."
)
RUN = "hints-1"
HOLDS = {"stall_after": 2}  # a reply that begins and does not end, until the call is cancelled
_OURS = ("ANTHROPIC_", "SUPERVISOR_", "OTEL_", "TEMPORAL_", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "PYTHON")


@dataclass(frozen=True)
class Done:
    """What a command wrote and how it ended."""

    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of an error; fails the test when there is more than one, or a traceback."""
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: "), self.err
        return lines[0]


class Terminal:
    """A process on a terminal of a given size; `text` is all that it wrote."""

    def __init__(self, process: BaseProcess, master: int, slave: IO[bytes]) -> None:
        self.process = process
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character
        self._closed = False
        self._master, self._slave = master, slave
        asyncio.get_running_loop().add_reader(master, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux: the other side is closed
            data = b""
        self.text += self._decoder.decode(data)
        if not data:
            self._closed = True
            asyncio.get_running_loop().remove_reader(self._master)

    def type(self, text: str) -> None:
        """As a person at the keyboard."""
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """As when a window is dragged."""
        _size(self._master, columns, rows)
        self._signal(signal.SIGWINCH)

    def interrupt(self) -> None:
        """As Ctrl-C."""
        self._signal(signal.SIGINT)

    def terminate(self) -> None:
        """As `kill`, or a system that shuts down."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    async def until(self, words: str, seconds: float = 40) -> None:
        """Returns once `words` are on the screen."""
        try:
            await until(lambda: words in self.text, seconds)
        except TimeoutError:
            raise AssertionError(f"{words!r} did not come:\n{self.text[-3000:]}") from None

    async def whole(self, seconds: float = 90) -> str:
        """All that it wrote, once it has ended and everything was read."""
        await self.ended(seconds)
        self._slave.close()
        await until(lambda: self._closed, seconds)
        return self.text

    async def ended(self, seconds: float = 40) -> int:
        """The exit code."""
        return await end_of(self.process, seconds)


@dataclass
class Cli:
    """Starts commands in one environment."""

    environ: dict[str, str]
    folder: Path

    def with_environ(self, **more: str) -> "Cli":
        """The same with other variables."""
        return Cli({**self.environ, **more}, self.folder)

    async def __call__(self, *words: str, stdin: bytes = b"", module: str = "starter") -> Done:
        """Runs a command to its end."""
        with tempfile.TemporaryDirectory() as held:
            given, out, err = (Path(held, name) for name in ("in", "out", "err"))
            given.write_bytes(stdin)
            out.touch()
            err.touch()
            code = await ended(module, words, self.environ, self.folder, [given, out, err])
            assert "Traceback" not in err.read_text(), err.read_text()
            return Done(code, out.read_text(), err.read_text())

    async def out(self, *words: str, module: str = "starter") -> str:
        """What a command prints that succeeds."""
        done = await self(*words, module=module)
        assert done.code == 0, done.err
        return done.out

    async def refused(self, *words: str, code: int = 1) -> str:
        """The sentence with which a command fails."""
        done = await self(*words)
        assert done.code == code, done.err
        return done.sentence

    async def json(self, *words: str) -> Any:
        """What a command prints with `--json`."""
        return json.loads((await self(*words, "--json")).out)

    async def until(self, run_id: str, reached: Callable[[dict[str, Any]], bool]) -> None:
        """Returns once the status of a run is so."""

        async def is_so() -> bool:
            return reached(await self.json("status", run_id))

        await until(is_so, 60)

    @contextlib.asynccontextmanager
    async def terminal(
        self, *words: str, columns: int = 80, rows: int = 30, module: str = "starter"
    ) -> AsyncIterator[Terminal]:
        """Runs a command on a terminal; it is ended with the block."""
        master, slave = pty.openpty()
        _size(slave, columns, rows)
        environ, tty = {**self.environ, "TERM": "xterm-256color"}, os.ttyname(slave)
        process = started(module, words, environ, self.folder, [tty] * 3)
        held = os.fdopen(slave, "rb", buffering=0)  # until the process has opened it, and has ended
        try:
            yield Terminal(process, master, held)
        finally:
            if process.exitcode is None:
                process.kill()
                process.join()
            asyncio.get_running_loop().remove_reader(master)
            held.close()
            os.close(master)


def _size(descriptor: int, columns: int, rows: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@dataclass(frozen=True)
class Model:
    """The stand-in model, and the script of what its replies meet."""

    url: str
    script: FaultScript

    def fails(self, run_id: str, **fault: Any) -> None:
        """From now on it fails for that run."""
        self.script.replace(ServerConfig.model_validate({"rules": [{"call": f"{run_id}*", **fault}]}))

    def usual(self) -> None:
        """As it is by itself."""
        self.script.replace(ServerConfig())


@pytest.fixture(scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of these tests' processes."""
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="session")
async def standin() -> AsyncIterator[Model]:
    """The stand-in model."""
    script = FaultScript()
    async with serving(BrainServer(think, script=script)) as url:
        yield Model(url, script)


@pytest.fixture(scope="session")
async def base(place: Path) -> dict[str, str]:
    """An environment without anything of ours but the folders."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return {
        **inherited,
        "SUPERVISOR_TEMPORAL": str(find_temporal()),  # a folder of its own would make it anew
        "SUPERVISOR_CACHE_DIR": str(place),
        "SUPERVISOR_TEAM": "almanac",
        "SUPERVISOR_ARTIFACTS_URL": str(place / "artifacts"),
        "TEMPORAL_CONFIG_FILE": os.devnull,
        "PYTHONIOENCODING": "utf-8",
    }


@contextlib.asynccontextmanager
async def worker_of(environ: dict[str, str], standin: Model, folder: Path) -> AsyncIterator[WorkerProcess]:
    """A Worker process with the stand-in model."""
    model = {"ANTHROPIC_BASE_URL": standin.url, "SUPERVISOR_MODEL": "standin"}
    processes = WorkerProcesses({**environ, **model}, folder)
    try:
        yield await processes.start()
    finally:
        processes.end()


@pytest.fixture(scope="session")
async def served(base: dict[str, str], standin: Model, place: Path, light: Path) -> AsyncIterator[dict[str, str]]:
    """The environment of a server with a Worker process."""
    async with EmbeddedServer(shared=False, db=light / "console.db", headless=True) as info:
        environ = {**base, "TEMPORAL_ADDRESS": info.address}
        async with worker_of(environ, standin, place):
            yield environ


@pytest.fixture
async def cli(served: dict[str, str], standin: Model, place: Path) -> AsyncIterator[Cli]:
    """Commands where a Worker serves."""
    yield Cli(served, place)
    standin.usual()


@pytest.fixture(scope="session")
async def read(served: dict[str, str], place: Path) -> Cli:
    """Commands, as they are installed, where run RUN has completed."""
    cli = Cli(served, place)
    cli = cli.with_environ(PATH=os.pathsep.join([str(Path(sys.executable).parent), served["PATH"]]))
    assert (await cli("run", GOAL, "--id", RUN, "--max-parallel", "1")).code == 0
    return cli


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Chromium]:
    """A browser."""
    async with started_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
async def address(read: Cli, place: Path) -> AsyncIterator[str]:
    """The address of the page where run RUN has completed."""
    teams = {"SUPERVISOR_TEAMS_DIR": str(ROOT / "examples" / "teams")}
    environ = {**read.environ, **teams}
    words = ("--data-root", str(ROOT / "examples"))
    async with page_of(environ, place / "ui.log", *words) as found:
        yield found


@pytest.fixture(scope="session")
async def alone(base: dict[str, str], place: Path) -> AsyncIterator[Cli]:
    """Commands where there is a server and no Worker."""
    async with EmbeddedServer(shared=False, headless=True) as info:
        yield Cli({**base, "TEMPORAL_ADDRESS": info.address}, place)
