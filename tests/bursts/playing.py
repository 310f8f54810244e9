"""A Worker on this process's event loop, honest runs, and bursts of others beside them."""

import asyncio
import contextlib
import io
import json
import os
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from temporalio.client import Client

from activities.files.file_cache import FileCache, copy_file, local_file
from activities.files.manifest import MANIFEST_TYPE, found_files, put_files
from activities.store.artifacts import ArtifactStore
from activities.tools.sql.sql_tools import TableStore
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from tests.corpus.loop_monitor import SILENCE, monitored
from tests.corpus.test_hostages import anchored
from tests.scripted_model import Reply, ScriptedModel, Step, plan, script, scripted_model, text, tools
from tests.serving import own_server, settings_for, store_of
from tests.workflow import runs
from worker_main import serving

MIB = 1 << 20
SLOWER = 1.5  # times that an honest run may take beside a burst
WORKER_MIB = 600
MODEL_SECONDS = 1.5  # of a call of the honest run: a real model takes longer
_QUERIES = 3
_HONEST = 3  # runs whose median counts
_LOOK = 0.1


@dataclass(frozen=True)
class Burst:
    """So many of a kind: wide files of one run, runs with hostile schemas, runs that ask SQL at once.

    The last are the tools of runs alone: so many whole runs would measure the machine.
    """

    files: int = 0
    schemas: int = 0
    queries: int = 0


@dataclass
class Figures:
    """What was seen beside a burst."""

    quiet: float
    beside: float
    silent: float
    worker_mib: float
    children_mib: float
    children: int
    ended: int
    failed: list[str]

    @property
    def faults(self) -> list[str]:
        """What must not be."""
        found = {
            f"the honest run took {self.beside / self.quiet:.2f} times as long": self.beside > SLOWER * self.quiet,
            f"the Worker had {self.worker_mib:.0f} MiB": self.worker_mib > WORKER_MIB,
            f"the event loop was silent for {self.silent:.2f} s": self.silent > SILENCE,
        }
        return [words for words, holds in found.items() if holds] + self.failed[:3]

    def __str__(self) -> str:
        return (
            f"honest run {self.quiet:.1f} s alone, {self.beside:.1f} s beside it; event loop silent for "
            f"{self.silent:.2f} s at most; Worker {self.worker_mib:.0f} MiB, its {self.children} child processes "
            f"{self.children_mib:.0f} MiB at most; {self.ended} runs of the burst ended meanwhile"
        )


class Watch:
    """The largest memory of this process and of its child processes that parse."""

    def __init__(self) -> None:
        self.worker = self.children = 0.0
        self.count = 0

    async def look(self) -> None:
        """Looks until it is cancelled."""
        while True:
            worker, sizes = await asyncio.to_thread(_memory)
            self.worker = max(self.worker, worker)
            self.children = max(self.children, sum(sizes))
            self.count = max(self.count, len(sizes))
            await asyncio.sleep(_LOOK)


def _memory() -> tuple[float, list[float]]:
    """Returns the MiB of this process, and of each of its children that serves a module."""
    own, sizes = psutil.Process(), list[float]()
    for child in own.children():
        with contextlib.suppress(psutil.Error):
            if "served" in " ".join(child.cmdline()):
                sizes.append(child.memory_info().rss / MIB)
    return own.memory_info().rss / MIB, sizes


class Scene:
    """A Worker with a scripted model, and runs on it."""

    def __init__(self, client: Client, model: ScriptedModel, store: ArtifactStore, folder: Path) -> None:
        self._client, self._model, self._store, self._folder = client, model, store, folder
        self._count = 0
        self._cache = FileCache(folder / "of-others")

    async def honest(self) -> float:
        """Returns the seconds of a run that asks for a figure of a file of its own, with a form for its answer."""
        self._count += 1
        run_id = f"honest-{self._count}"
        began = time.monotonic()
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        result = await self._run(run_id, {"a.csv": f"a,b\n{self._count},2\n".encode()}, slow, answer_schema=schema)
        assert result.status == "completed", result
        return time.monotonic() - began

    async def _run(self, run_id: str, files: dict[str, bytes], calls: Callable[[Reply], Reply], **fields: Any) -> Any:
        folder = self._folder / run_id
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        ref = await put_files(self._store, found_files([folder]))

        def turns(step: Step) -> Reply:
            if step.number == 1:
                return calls(tools(("list_tables", {})))
            if step.number == 2:
                return calls(tools(("query_data", {"sql": "SELECT count(*) FROM a"})))
            return calls(text("There is 1 row in the table a.\n\nConfidence: 0.9\nLimitations: none"))

        words = json.dumps(
            {"answer": "There is 1 row [t1].", "confidence": 0.9, "contradictions": [], "answer_json": {"n": 1}}
        )
        self._model.play(
            run_id,
            script(calls(plan({"id": "t1", "role": "analyst"})), {"t1": turns}, calls(text(words))),
        )
        attached = [{"name": "files", "ref": ref, "media_type": MANIFEST_TYPE}] if files else []
        return await runs.run(self._client, run_id, "default", attachments=attached, **fields)

    async def _asks(self, run_id: str) -> None:
        """Asks what a run asks of a file of its own, three times."""
        file = self._folder / f"{run_id}.csv"
        file.write_text(f"a,b\n{run_id},q\n")
        reports = await self._cache.reports([local_file("a.csv", file)], run_id, copy_file)
        for _ in range(_QUERIES):
            found = await TableStore(reports).query("SELECT count(*), sum(hash(range)) FROM range(300000), a", run_id)
            assert found["rows"][0][0] == "300000", found

    def burst(self, burst: Burst, wide_files: bytes) -> list[asyncio.Task[Any]]:
        """Starts the runs of a burst."""
        made: list[Awaitable[Any]] = []
        if burst.files:
            made.append(self._run("wide", {"wide.zip": wide_files}, quick))
        for number in range(burst.schemas):
            name, schema = f"schema-{number}", hostile(number)
            made.append(self._run(name, {"a.csv": b"a,b\n1,q\n"}, quick, answer_schema=schema))
        made += [self._asks(f"query-{n}") for n in range(burst.queries)]
        return [asyncio.ensure_future(each) for each in made]


def quick(reply: Reply) -> Reply:
    """Answers at once."""
    return reply


def slow(reply: Reply) -> Reply:
    """Answers after the time that a model takes."""

    async def answered() -> Any:
        await asyncio.sleep(MODEL_SECONDS)
        return await reply()

    return answered


def wide(count: int) -> bytes:
    """Returns a zipped folder of tables of 40 columns, of which each cell is long and another one."""
    lines = [",".join(f"c{c}" for c in range(40))]
    # So long that 600 of them are just not too large unpacked.
    lines += [",".join(f"{r}-{c} ".ljust(300, "x") for c in range(40)) for r in range(140)]
    table = "\n".join([*lines, ""])
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for n in range(count):
            archive.writestr(f"f{n}.csv", table)
    return target.getvalue()


def hostile(number: int) -> dict[str, Any]:
    """A schema as long as it may be, each another one."""
    return {**anchored(limits.ANSWER_SCHEMA_BYTES - 100), "title": f"schema {number}"}


@contextlib.asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    """Gives a Worker with a server and a model of its own."""
    with tempfile.TemporaryDirectory(prefix="supervisor-bursts-") as name:
        folder = Path(name)
        async with own_server() as client, scripted_model() as model, contextlib.AsyncExitStack() as stack:
            settings = settings_for(model.url, folder / "artifacts")
            with patch.dict(os.environ, SUPERVISOR_CACHE_DIR=str(folder / "cache")):  # no other program's
                await stack.enter_async_context(serving(client, settings, strict_sandbox=False))
                yield Scene(client, model, await store_of(client, settings.artifacts_url), folder)


async def figures_of(scene: Scene, burst: Burst, honest: int = _HONEST) -> Figures:
    """Plays so many honest runs alone, and as many beside a burst."""
    await scene.honest()  # the first one starts the processes
    quiet = await _median(scene, honest)
    wide_files = await asyncio.to_thread(wide, burst.files)
    watch = Watch()
    looking = asyncio.create_task(watch.look())
    async with monitored() as monitor:
        tasks = scene.burst(burst, wide_files)
        beside = await _median(scene, honest)
        done = [task for task in tasks if task.done()]
        looking.cancel()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    errors = [error for task in done if (error := task.exception()) and not _is_refused(error)]
    failed = [_words(error) for error in errors]
    ended = [task.result() for task in done if not task.exception()]
    failed += [f"a run of the burst has gaps: {result.gaps}"[:300] for result in ended if result and result.gaps]
    return Figures(quiet, beside, monitor.longest, watch.worker, watch.children, watch.count, len(done), failed)


def _is_refused(error: BaseException) -> bool:
    """True if a run was refused: a hostile schema takes too long to check where all is busy."""
    return getattr(error.__cause__, "type", "") == ErrorKind.INVALID_REQUEST


def _words(error: BaseException) -> str:
    """Returns a line on a run of the burst that failed, with the cause that the run gave."""
    cause = error.__cause__ or error
    return f"a run of the burst failed: {cause!r}"[:300]


async def _median(scene: Scene, count: int) -> float:
    """Returns the median time of honest runs one after the other."""
    return sorted([await scene.honest() for _ in range(count)])[count // 2]
