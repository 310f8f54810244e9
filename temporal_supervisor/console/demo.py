"""The command `demo`: a server, a model, a Worker and one run on the bundled data.

The run is followed live. With ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL it uses that model, otherwise
the stand-in model.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import typer

from temporal_supervisor.console.base.command import (
    FAILED,
    Access,
    CommandFailed,
    endpoint,
    perform,
    web_address,
)
from temporal_supervisor.console.base.terminal import console, print_err, print_out
from temporal_supervisor.console.page.page_serving import address_of, listening, page_beside
from temporal_supervisor.console.run.request_options import parsed_plan, read_text_file
from temporal_supervisor.console.view.answer_text import answer_report
from temporal_supervisor.console.view.event_lines import now_line
from temporal_supervisor.console.view.follow import follow
from temporal_supervisor.console.view.live_view import Screen
from temporal_supervisor.console.view.model_ways import model_notes
from temporal_supervisor.runs import Run
from temporal_supervisor.runtime.local_models import find_local_model, take_local_model
from temporal_supervisor.runtime.process import INTERRUPTED, cache_dir, exit_now, keep_files_private
from temporal_supervisor.runtime.server.embedded_server import EmbeddedServer, read_record
from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from temporal_supervisor.runtime.settings import load_settings
from temporal_supervisor.supervision.contract.request import parse_request
from temporal_supervisor.supervision.contract.status import Status

GOAL = (
    "How did life expectancy in Rwanda and Botswana change from 1952 to 2007, "
    "and what explains the setbacks? Write a short report."
)
TEAM = "almanac"
_ROOT = Path(__file__).resolve().parents[2]
# The demo's Worker and stand-in model: 2 s on a quiet machine, a minute beside a local model.
_START_WAIT = timedelta(minutes=3)
_STOP_WAIT = timedelta(seconds=5)  # they have nothing in flight when the demo ends
_POLL = timedelta(milliseconds=100)  # until a started process says that it is ready
_FOLLOWING = "Ctrl-C ends the demo"
_ENDED = "all that it had started is stopped"
_TERMINATED = 128 + signal.SIGTERM  # as a shell reports it
_STANDIN = "it extracts, it does not reason"


class Termination:
    """SIGTERM to this process, which cancels a task as Ctrl-C does, so that its blocks clean up."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.came = False
        self._task = task
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)

    def _end(self) -> None:
        if self.came:
            return  # a second one would cut the cleaning short
        self.came = True
        self._task.cancel()


async def demo(wanted: dict[str, Any], access: Access) -> int:
    """Starts server, model and Worker, runs the goal, prints the answer and ends what it started.

    Returns the run's exit code, or the code for Ctrl-C or SIGTERM.
    """
    me = asyncio.current_task()
    assert me is not None
    termination = Termination(me)
    code = INTERRUPTED
    with contextlib.suppress(asyncio.CancelledError):
        code = await _run_to_answer(wanted, access)
    if not termination.came:
        return code
    print_err(f"SIGTERM ended the demo: {_ENDED}")
    return _TERMINATED


async def _run_to_answer(wanted: dict[str, Any], access: Access) -> int:
    """Starts everything that the run needs, and follows it.

    Returns its exit code.
    """
    request = parse_request(wanted)
    cache = cache_dir()
    async with contextlib.AsyncExitStack() as stack:
        listener = stack.enter_context(listening("127.0.0.1", None))
        print_out(f"page    {address_of(listener)}   to ask, watch, decide and read in a browser")
        server = EmbeddedServer(db=cache / "temporal.db")
        info = await stack.enter_async_context(server)
        origin = "it was running already" if server.joined else f"process {info.pid}"
        print_out(f"server  {info.address}, {origin}")
        print_out(f"web ui  {info.ui or 'none: the running server is headless'}")
        access.address = info.address
        environ = {**os.environ, "TEMPORAL_ADDRESS": info.address}
        if address := endpoint(access.settings):
            told = (
                f"the stand-in model at {address}: {_STANDIN}"
                if access.settings.model == "standin"
                else address
            )
            print_out(f"model   {told}")
        else:
            words = [
                "-m",
                "temporal_supervisor.standin",
                "--port",
                "0",
                "--ledger",
                str(cache / "standin.jsonl"),
            ]
            standin = Served(
                "the stand-in model", words, os.environ, cache / "standin.log", "http://"
            )
            url = (await stack.enter_async_context(standin)).line.rpartition(" ")[2]
            environ |= {"ANTHROPIC_BASE_URL": url, "SUPERVISOR_MODEL": "standin"}
            print_out(f"model   the stand-in model at {url}: {_STANDIN}")
            print_out("        set ANTHROPIC_API_KEY for a real one")
            if found := await asyncio.to_thread(find_local_model):
                print_out(f"        {found.description}: --local uses it")
        worker = await stack.enter_async_context(
            KeptWorker(environ, cache / "worker.log", print_out)
        )
        print_out(f"worker  process {worker.pid}, log {worker.log}")
        print_out(f"        kill it: kill -9 {worker.pid}   (another one takes over)")
        client = await access.client()
        await stack.enter_async_context(page_beside(access, listener))
        run = await Run.start(client, request)
        return await _watch(run, access, worker)


async def _watch(run: Run, access: Access, worker: "KeptWorker") -> int:
    """Follows the run and restarts a killed Worker; on a terminal all stays up afterwards."""
    web = web_address(run.client, run.id)
    print_out(f"run     {run.id}" + (f"\n        {web}" if web else ""))
    keeping = asyncio.create_task(worker.keep_running())
    screen_console = console()
    try:
        with Screen(screen_console, _FOLLOWING) as screen:
            worker.report = lambda text: screen.log(now_line(text, "head"))

            async def require_worker(_: Status | None) -> None:
                if keeping.done():
                    keeping.result()  # raises what ended it

            outcome = await follow(run, screen, await access.store(), web, require_worker)
        worker.report = print_out
        code = answer_report(run.id, outcome, web, model_notes(outcome)).print_to(screen_console)
        if screen_console.is_terminal:
            print_out("\npage, server, Web UI and worker stay up: Ctrl-C ends them")
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
        else:
            print_out("\nserver and worker were stopped, as there is no terminal")
        return code
    finally:
        keeping.cancel()


@dataclass
class Served:
    """A Python process for the time of a `with` block.

    The block begins when the process's `log` has a line with `ready`. Raises CommandFailed if there
    is none.
    """

    name: str
    words: list[str]
    environ: Mapping[str, str]
    log: Path
    ready: str
    line: str = field(default="", init=False)
    _process: asyncio.subprocess.Process = field(init=False)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Waits for the end of the process and returns its exit code."""
        return await self._process.wait()

    async def __aenter__(self) -> Self:
        paths = os.pathsep.join(filter(None, [str(_ROOT), self.environ.get("PYTHONPATH")]))
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *self.words,
                env={**self.environ, "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the command alone: it ends them in order
            )
        latest = time.monotonic() + _START_WAIT.total_seconds()
        try:
            while self._process.returncode is None and time.monotonic() < latest:
                lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines(
                    keepends=True
                )
                if line := next(
                    (line for line in lines if self.ready in line and line.endswith("\n")), ""
                ):
                    self.line = line.strip()
                    return self
                await asyncio.sleep(_POLL.total_seconds())
            alive = self._process.returncode is None
            seconds = _START_WAIT.total_seconds()
            late = f" within {seconds:.0f} s, the machine may be busy" if alive else ""
            raise CommandFailed(FAILED, f"{self.name} did not start{late}: {_last_line(self.log)}")
        except BaseException:
            await self.__aexit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Sends SIGTERM, then SIGKILL if the process does not end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_WAIT.total_seconds())
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """Sends SIGKILL, like a crash."""
        self._process.kill()
        await self._process.wait()


class KeptWorker(Served):
    """A Worker process that is restarted; `report` is called at every end and start."""

    def __init__(
        self, environ: Mapping[str, str], log: Path, report: Callable[[str], None]
    ) -> None:
        super().__init__("the worker", ["-m", "worker_main"], environ, log, "worker ready")
        self.report = report

    async def keep_running(self) -> None:
        """Starts another Worker whenever one is killed.

        Raises CommandFailed if one ends by itself.
        """
        while True:
            code = await self.wait()
            if code >= 0:
                raise CommandFailed(
                    FAILED, f"the worker ended with exit code {code}: {_last_line(self.log)}"
                )
            self.report(f"worker {self.pid} was killed (signal {-code}): starting another one")
            await self.__aenter__()
            self.report(
                f"worker {self.pid} is there (kill -9 {self.pid} for more); "
                "finished work is not repeated"
            )


def _wants_local() -> bool:
    """True if a person at a terminal chooses this machine's model server.

    If there is a key, the question is not asked.
    """
    if load_settings().has_model or not (console().is_terminal and sys.stdin.isatty()):
        return False
    found = find_local_model()
    return found is not None and typer.confirm(f"{found.description}. Use it?")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"it said nothing; its log is {log}"


def main(arguments: list[str] | None = None) -> None:
    """The command `temporal-supervisor demo`, and `make demo`, with the usual exit codes."""
    keep_files_private()
    parser = argparse.ArgumentParser(prog="temporal-supervisor demo", description=__doc__)
    parser.add_argument("--goal", default=GOAL, help="what to find out in the bundled data")
    parser.add_argument(
        "--team", default=TEAM, help="who finds it out, instead of the team with the bundled data"
    )
    parser.add_argument(
        "--plan", type=Path, help="a JSON file with a plan, as `run --plan` takes it"
    )
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    parser.add_argument(
        "--local", action="store_true", help="use the model server that runs on this machine"
    )
    parser.add_argument(
        "--standin", action="store_true", help="do not ask about a model server of this machine"
    )
    options = parser.parse_args(arguments)
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[
            name
        ]  # another cluster's configuration would redirect or encrypt the way to the demo's server
    os.environ["TEMPORAL_CONFIG_FILE"] = os.devnull
    access = Access(debug=options.debug)
    try:
        if options.local or (not options.standin and _wants_local()):
            print_out(take_local_model().description)
    except ValueError as error:
        parser.error(str(error))

    def begun() -> Coroutine[Any, Any, int]:
        if read_record() is None:
            find_temporal()  # before any event loop, so that Ctrl-C ends a build at once
        wanted: dict[str, Any] = {"goal": options.goal, "team": options.team}
        if options.plan:
            wanted["plan"] = parsed_plan(
                read_text_file(options.plan), str(options.plan)
            ).model_dump(mode="json")
        return demo(wanted, access)

    exit_now(perform(access, begun))


if __name__ == "__main__":
    main()
