"""The project's Workers for cases: impatient, with a model that costs no HTTP, stopped and started meanwhile."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

import worker_main
from activities.model import gate
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.supervision.base import limits
from tests.machine.quick_model import QuickModel
from tests.scripted_model import ScriptedModel
from tests.serving import address_of, settings_for

STOP_WAIT = 90.0
"""Seconds for Workers to stop: it takes a minute now and then."""

_MS = timedelta(milliseconds=1)
IMPATIENT = {
    "ATTEMPT_PAUSE": 0 * _MS,
    "MODEL_RETRY_INITIAL": 50 * _MS,
    "MODEL_RETRY_MAX": 200 * _MS,
    "BREAKER_COOLDOWN": 500 * _MS,
    "BREAKER_COOLDOWN_MAX": 2000 * _MS,
    "CIRCUIT_RETRY_BELOW": 400 * _MS,
    "PROVIDER_PAUSE": 500 * _MS,
    "PROVIDER_PAUSE_MAX": 1000 * _MS,
    "PACE_MAX": 1000 * _MS,
    "ROLE_BREAKER_COOLDOWN": 100 * _MS,
    "ROLE_REST_TOTAL": 2000 * _MS,
    "GRACEFUL_SHUTDOWN": 0 * _MS,
}
"""Limits whose size is nothing that a rule depends on, small enough for a run to end in seconds."""
GATE = {"GATE_WAIT": 300 * _MS}
"""The same of the gate before the provider."""


@contextlib.contextmanager
def impatient(cached_workflows: int, quick: ScriptedModel | None = None) -> Iterator[None]:
    """Sets the limits to IMPATIENT for the time of the block.

    Calls of the `quick` model cost no HTTP. Workflows run without the sandbox, as in production:
    other tests show what it forbids.
    """
    changes = {**IMPATIENT, "CACHED_WORKFLOWS": cached_workflows}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setattr(limits, name, value)
        for name, wait in GATE.items():
            patch.setattr(gate, name, wait)
        # Else the SDK interrupts workflows that a busy machine lets wait for two seconds, and some never go on.
        patch.setenv("TEMPORAL_DEBUG", "1")
        if quick is not None:
            patch.setattr(worker_main, "model_endpoint", lambda settings: QuickModel(quick))
        logging.disable(logging.CRITICAL)  # the SDK logs a traceback of each failed attempt, which takes its time
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)


class ReplacedWorkers(contextlib.AbstractAsyncContextManager["ReplacedWorkers"]):
    """The project's Workers in this process; `count` counts model calls, at some of which they are replaced."""

    def __init__(self, client: Client, model: ScriptedModel, artifacts: Path, restarts: tuple[int, ...]) -> None:
        self._client = client
        self._settings = settings_for(model.url, artifacts, notify="true" if restarts else None)  # a command
        self._restarts = list(restarts)
        self._calls = 0
        self._due = asyncio.Event()
        self._stopping: list[asyncio.Task[Any]] = []
        self.restarted = False

    async def __aenter__(self) -> "ReplacedWorkers":
        self._serving: Any = self._new()
        await self._serving.__aenter__()
        self._nemesis = asyncio.create_task(self._replace())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._nemesis.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._nemesis
        stopping = [asyncio.create_task(self._serving.__aexit__(None, None, None)), *self._stopping]
        async with asyncio.timeout(STOP_WAIT):
            await asyncio.gather(*stopping)

    def count(self) -> None:
        """Counts a model call."""
        self._calls += 1
        if self._restarts and self._calls >= self._restarts[0]:
            self._restarts.pop(0)
            self._due.set()

    @contextlib.asynccontextmanager
    async def _new(self) -> AsyncIterator[None]:
        """The Workers of a process, with a connection of their own."""
        own = await connect(address=address_of(self._client))
        async with worker_main.serving(own, self._settings, attributes=[], strict_sandbox=False):
            yield

    async def _replace(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            self.restarted = True
            # Not one after the other: a Worker that stops takes a minute now and then, and its runs would stand still.
            self._stopping.append(asyncio.create_task(self._serving.__aexit__(None, None, None)))
            self._serving = self._new()
            await self._serving.__aenter__()
