"""One real Temporal server, one scripted model and one Worker for the whole test session.

The process that only hands tests out reads this module, too: what fixtures alone need is imported in them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zlib import crc32

import pytest
from hypothesis import settings as hypothesis

from temporal_supervisor.supervision.base import limits

if TYPE_CHECKING:
    from collections.abc import Generator

    from temporalio.client import Client
    from xdist.scheduler import LoadFileScheduling

    from temporal_supervisor.runtime.server.embedded_server import ServerInfo
    from temporal_supervisor.runtime.settings import Settings
    from tests.scripted_model import ScriptedModel
    from tests.workflow.runs import Lab

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.set_threshold(limits.NEW_OBJECTS)  # as a Worker does: an eighth of the tests' time went into looking for garbage

os.environ.setdefault("GOGC", "400")  # servers that collect garbage seldom take a seventh less CPU
os.environ.setdefault("GOMAXPROCS", "1")  # and on one core a tenth less: there are more servers than cores

hypothesis.register_profile("usual", deadline=None, max_examples=25)  # of how fast the machine is they say nothing
hypothesis.load_profile("usual")

SANDBOXED = Path(__file__).parent / "workflow"

SLOW = (
    *("machine", "recovery/test_kill", "corpus/test_raw_inputs", "corpus/test_liveness", "faults", "recovery"),
    *(
        "console/test_people",
        "console/test_hints",
        "corpus",
        "console",
        "runtime",
        "workflow",
        "activity",
    ),
)


WAITING = (
    *("recovery", "bursts", "console/test_demo", "console/test_standstills", "runtime/test_watchdog"),
    *("workflow/run/test_lost_stores", "workflow/subtasks/test_breakers"),
)


CONSOLE, PARTS = "tests/console/", 3


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Hands out files one by one, and those of commands in three parts.

    A process that plays one of these starts two servers, a Worker, a browser and a run for it:
    until the end they take CPU even at rest.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class InParts(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return f"{CONSOLE}{crc32(file.encode()) % PARTS}" if file.startswith(CONSOLE) else file

    return InParts(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slowest files first, and those that mostly wait between those that compute.

    At the end one of them would keep a single process busy; side by side, they would leave the cores idle.
    """

    def place(name: str) -> int:
        return next((i for i, slow in enumerate(SLOW) if name.startswith(f"tests/{slow}")), len(SLOW))

    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    ordered = sorted(files, key=place)
    waiting = [name for name in ordered if name.startswith(tuple(f"tests/{each}" for each in WAITING))]
    computing = iter([name for name in ordered if name not in waiting])
    turns: list[str] = []
    for name in waiting:
        turns += [name, *islice(computing, 3)]
    items[:] = [item for name in (*turns, *computing) for item in files[name]]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keeps the garbage collector from going through all that is imported, and thousands of collected tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Gives each test, with its fixtures, the umask that the session began with.

    A main that a test calls keeps its files private: in the tests' own process that would last.
    """
    before = os.umask(0o022)
    os.umask(before)
    try:
        return (yield)
    finally:
        os.umask(before)


@pytest.fixture(scope="session")
def light() -> Iterator[Path]:
    """A folder for what the session's server and Workers keep."""
    from tests.serving import light_folder

    with light_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
async def server(light: Path) -> AsyncIterator[ServerInfo]:
    """A Temporal server of the tests' own."""
    from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer

    async with EmbeddedServer(shared=False, db=light / "temporal.db", headless=True) as info:
        yield info


@pytest.fixture(scope="session")
async def client(server: ServerInfo) -> Client:
    """A client with the project's data converter."""
    from temporal_supervisor.runtime.connection import connect

    return await connect(address=server.address)


@pytest.fixture(scope="session")
async def model() -> AsyncIterator[ScriptedModel]:
    """The scripted model, over HTTP."""
    from tests.scripted_model import scripted_model

    async with scripted_model() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def settings(model: ScriptedModel, light: Path) -> Settings:
    """Settings of the session's Worker."""
    from tests.serving import settings_for

    return settings_for(model.url, light / "artifacts")


class SessionWorkers:
    """The project's Workers in this process: as in production, or with the SDK's sandbox.

    The sandbox takes a twentieth of the CPU of a short run.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._sandboxed: bool | None = None  # None: none serve yet
        self._at_work = contextlib.AsyncExitStack()

    async def serve(self, *, sandboxed: bool) -> None:
        """Returns once Workers of that kind serve, which replace those of the other kind."""
        from worker_main import serving

        if sandboxed is self._sandboxed:
            return
        await self.stop()
        workers = serving(self._client, self._settings, strict_sandbox=sandboxed)
        await self._at_work.enter_async_context(workers)
        self._sandboxed = sandboxed

    async def stop(self) -> None:
        """Ends the Workers that serve."""
        await self._at_work.aclose()
        self._sandboxed = None


@pytest.fixture(scope="session")
async def session_workers(client: Client, settings: Settings) -> AsyncIterator[SessionWorkers]:
    """The Workers of the session, none of which serve yet."""
    workers = SessionWorkers(client, settings)
    yield workers
    await workers.stop()


@pytest.fixture(scope="module")
async def worker(request: pytest.FixtureRequest, session_workers: SessionWorkers) -> None:
    """The project's Workers, with the real sandbox for the tests of workflows."""
    await session_workers.serve(sandboxed=request.path.is_relative_to(SANDBOXED))


@pytest.fixture
def run_id() -> str:
    """An id no other run has."""
    return f"run-{uuid4().hex[:12]}"


@pytest.fixture
def lab(request: pytest.FixtureRequest, client: Client, model: ScriptedModel, worker: None, run_id: str) -> Lab:
    """A run on the session's Worker, with what a file says of all its runs in USUAL."""
    from tests.workflow.runs import Lab

    return Lab(client, model, run_id, getattr(request.module, "USUAL", {}))
