"""Prints how long it takes until each screen says what a run stands still for.

Run as `python -m tests.console.measure_standstills`.
Measured inside one process from the moment that the fault bites; the start of a command comes on top.
"""

import asyncio
import contextlib
import io
import os
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

from rich.console import Console
from temporalio.client import Client

from console.command import Access
from console.commands.doctor import server_rows
from console.commands.report_commands import status_report
from console.demo import KeptWorker, stand_in
from console.run.run_handle import RunHandle
from console.run.start_run import start
from console.view.follow import RunPoller
from console.view.live_view import Screen
from runtime.connection import connect
from runtime.process import exit_now
from runtime.server.embedded_server import EmbeddedServer
from standin.server.app import TOKEN_VARIABLE
from supervision.contract.request import parse_request
from tests.console.conftest import GOAL, Model
from tests.waiting import until

PATIENCE = 40.0
Show = Callable[[], Awaitable[str]]


async def status_of(run: RunHandle) -> str:
    text = io.StringIO()
    (await status_report(run, Access(_client=run.client))).show(Console(file=text, width=400))
    return text.getvalue()


async def doctor_of(client: Client) -> str:
    return "\n".join([f"{row.text} {row.fix}" async for row in server_rows(client, None, [])])


def following(run: RunHandle) -> Show:
    """Returns what `follow` has shown so far; each call is one round."""
    text = io.StringIO()
    poller, screen = RunPoller(run), Screen(Console(file=text, width=400))

    async def show() -> str:
        with contextlib.suppress(Exception):
            for line in await poller.poll():
                screen.log(line)
        screen.show(poller.picture)
        return text.getvalue()

    return show


async def seconds_until(show: Show, words: tuple[str, ...], begun: float) -> float | None:
    """Returns the seconds from `begun` until a screen has one of the words."""
    while time.time() - begun < PATIENCE:
        try:
            text = await show()
        except Exception:  # the screen of this moment is none
            text = ""
        if any(word in text for word in words):
            return time.time() - begun
        await asyncio.sleep(0.5)
    return None


async def row(name: str, run: RunHandle, words: tuple[str, ...], begun: float) -> None:
    """Prints how long the three screens take."""
    screens: list[Show] = [lambda: status_of(run), following(run), lambda: doctor_of(run.client)]
    took = await asyncio.gather(*(seconds_until(show, words, begun) for show in screens))
    shown = " | ".join("never" if seconds is None else f"{seconds:.1f}" for seconds in took)
    sys.stdout.write(f"| {name} | {shown} |\n")
    sys.stdout.flush()


async def open_run(client: Client, run_id: str, **fields: object) -> RunHandle:
    return await start(client, parse_request({"goal": GOAL, **fields}), run_id)


async def phase_or_running(run: RunHandle, reached: Callable[[str, int], bool]) -> None:
    async def there() -> bool:
        try:
            status = await run.status()
        except Exception:
            return False
        return reached(status.phase, status.counts.running)

    await until(there, 90)


async def main() -> None:
    """Runs the cases one after the other."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = await stack.enter_async_context(EmbeddedServer(shared=False, headless=True))
        token = os.environ[TOKEN_VARIABLE] = uuid4().hex
        model = Model(await stack.enter_async_context(stand_in(folder)), token)
        artifacts = folder / "artifacts"
        environ = {
            **os.environ,
            **{"TEMPORAL_ADDRESS": server.address, "ANTHROPIC_BASE_URL": model.url, "SUPERVISOR_MODEL": "standin"},
            "SUPERVISOR_ARTIFACTS_URL": str(artifacts),
        }
        worker = await stack.enter_async_context(KeptWorker(environ, folder / "worker.log", lambda _: None))
        client = await connect(address=server.address)
        sys.stdout.write("| stands still for | `status` | `follow` | `doctor` |\n|---|---|---|---|\n")
        cases = {"planning": "plan.*", "a turn": "turn.*", "review": "review.*", "synthesis": "synthesis.*"}
        phases = {"planning": "planning", "a turn": "executing", "review": "validating", "synthesis": "synthesizing"}
        for name, call in cases.items():
            run_id = f"down-{name.replace(' ', '-')}"
            await model.fails(f"{run_id}*/{call}", status=529, type="overloaded_error", message="too many")
            run = await open_run(client, run_id)
            await phase_or_running(run, lambda phase, _, name=name: phase == phases[name])  # type: ignore[misc]
            await row(f"a provider, in {name}", run, ("for the model provider",), time.time())
            await run.handle.terminate()
            await model.usual()
        role = {"name": "far", "description": "Works far away.", "system_prompt": "Answer.", "pool": "east"}
        team = {"name": "spread", "generalist": "far", "roles": [role]}
        run = await open_run(client, "pool", team=team, strategy="route")
        await phase_or_running(run, lambda _, running: running > 0)
        await row("a pool without a Worker", run, ("pool east",), time.time())
        await run.handle.terminate()

        await model.fails("store/t1*", delay_ms=1500)
        run = await open_run(client, "store")
        await phase_or_running(run, lambda _, running: running > 0)
        artifacts.rename(folder / "aside")
        artifacts.write_text("in the way")
        await row("a store that is away", run, ("the artifact store",), time.time())
        artifacts.unlink()
        (folder / "aside").rename(artifacts)
        await run.handle.terminate()

        await model.fails("killed*/turn.1", delay_ms=60_000)
        run = await open_run(client, "killed")
        await phase_or_running(run, lambda _, running: running > 1)
        os.kill(worker.pid, signal.SIGKILL)
        await row("a killed Worker", run, ("waits for a Worker", "wait for a Worker", "which is silent"), time.time())


if __name__ == "__main__":
    asyncio.run(main())
    sys.stdout.flush()
    exit_now(0)
