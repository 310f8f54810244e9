"""One real Temporal server, one scripted model and one Worker for the whole test session."""

import contextlib
import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings as hypothesis
from temporalio.client import Client

from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer, ServerInfo
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from tests.scripted_model import ScriptedModel, scripted_model
from tests.serving import light_folder, settings_for
from tests.workflow.runs import Lab
from worker_main import serving

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; commands would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.freeze()  # as a Worker does: an eighth of the tests' time went into looking for garbage
gc.set_threshold(limits.NEW_OBJECTS)

os.environ.setdefault("GOGC", "400")  # servers that collect garbage seldom take a seventh less CPU
os.environ.setdefault("GOMAXPROCS", "1")  # and on one core a tenth less: there are more servers than cores

hypothesis.register_profile("usual", deadline=None, max_examples=40)  # of how fast the machine is they say nothing
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slowest files first: at the end one of them would keep a single process busy."""

    def place(item: pytest.Item) -> int:
        return next((i for i, name in enumerate(SLOW) if item.nodeid.startswith(f"tests/{name}")), len(SLOW))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Keeps the garbage collector from going through thousands of collected tests."""
    gc.freeze()


@pytest.fixture(scope="session")
def light() -> Iterator[Path]:
    """A folder for what the session's server and Workers keep."""
    with light_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
async def server(light: Path) -> AsyncIterator[ServerInfo]:
    """A Temporal server of the tests' own."""
    async with EmbeddedServer(shared=False, db=light / "temporal.db", headless=True) as info:
        yield info


@pytest.fixture(scope="session")
async def client(server: ServerInfo) -> Client:
    """A client with the project's data converter."""
    return await connect(address=server.address)


@pytest.fixture(scope="session")
async def model() -> AsyncIterator[ScriptedModel]:
    """The scripted model, over HTTP."""
    async with scripted_model() as scripted:
        yield scripted


@pytest.fixture(scope="session")
def settings(model: ScriptedModel, light: Path) -> Settings:
    """Settings of the session's Worker."""
    return settings_for(model.url, light / "artifacts")


class SessionWorkers:
    """The project's Workers in this process: as in production, or with the SDK's sandbox.

    The sandbox loads the modules of workflows for each run, a third of what a short run costs.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client, self._settings = client, settings
        self._sandboxed: bool | None = None  # None: none serve yet
        self._at_work = contextlib.AsyncExitStack()

    async def serve(self, *, sandboxed: bool) -> None:
        """Returns once Workers of that kind serve, which replace those of the other kind."""
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
    return Lab(client, model, run_id, getattr(request.module, "USUAL", {}))
