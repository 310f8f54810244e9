"""Our Workers inside your own Worker process, as a plugin of temporalio.

    worker = Worker(client, task_queue="mine", workflows=[Briefing], plugins=[SupervisorPlugin()])

`Client.connect(..., plugins=[SupervisorPlugin()])` adds it to all Workers of the client.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from importlib import metadata
from typing import Literal

import temporalio.client
import temporalio.worker
from temporalio.client import Client, ClientConfig, WorkflowHistory
from temporalio.service import ConnectConfig, ServiceClient
from temporalio.service import __version__ as sdk_version
from temporalio.worker import (
    Replayer,
    ReplayerConfig,
    Worker,
    WorkerConfig,
    WorkflowReplayResult,
)

from temporal_supervisor.own_packages import require_our_packages
from temporal_supervisor.runtime.payloads import converter_with
from temporal_supervisor.runtime.setting_checks import start_warnings
from temporal_supervisor.runtime.settings import Settings, load_settings

Role = Literal["workflows", "model", "tools", "outward"]
ALL_ROLES: tuple[Role, ...] = ("workflows", "model", "tools", "outward")
_OUR_PACKAGES = ("workflows", "activities", "worker_main")
_SDK_SHUTDOWN = timedelta(seconds=60)  # the SDK's default for what plugins do after a Worker's end
_PROCESS = "run a Worker as a process of its own instead: `temporal-supervisor worker`"
_NO_MODEL = (
    "no model to call: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint. "
    "Without a key, SupervisorPlugin(standin=True) brings the stand-in model along, which looks up "
    f"values and sentences and does not reason. Or {_PROCESS}, and give this plugin the roles "
    "without 'model'"
)

log = logging.getLogger(__name__)


class PluginUnusable(RuntimeError):
    """The plugin can't serve runs in this process; the message has the remedy."""


class SupervisorPlugin(temporalio.client.Plugin, temporalio.worker.Plugin):
    """Serves runs with our Workers while Workers of this process run.

    Our Workers have their own queues, data converter, workflow runner and shutdown time, and use
    your client's connection; your Worker is unchanged. `settings` default to those of
    `temporal-supervisor worker`: `SUPERVISOR_*`, `ANTHROPIC_*`. `roles` are the parts to serve.
    With `standin` the stand-in model runs in this process and takes the place of any other, so no
    key is needed. Several Workers with one plugin share one set of ours, from the start of the
    first to the end of the last.

    The constructor raises PluginUnusable without a model to call, or if the installed temporalio is
    not the version that workflows are tested with. It raises OtherPackage if the program has its
    own packages `workflows` or `activities`, and ValueError for wrong settings.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        roles: Sequence[Role] = ALL_ROLES,
        standin: bool = False,
    ) -> None:
        require_our_packages(*_OUR_PACKAGES)
        pinned = _pinned_sdk()
        if pinned is not None and sdk_version != pinned:
            raise PluginUnusable(
                f"temporalio is {sdk_version}, and the workflows need {pinned}: {_PROCESS}, in an "
                "environment of its own"
            )
        self._settings = settings or load_settings()
        self._roles = tuple(roles)
        self._standin = standin
        if "model" in self._roles and not (standin or self._settings.has_model):
            raise PluginUnusable(_NO_MODEL)
        self._running = 0  # Workers of the program
        self._turn = asyncio.Lock()
        self._stop = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """Returns the configuration unchanged."""
        return config

    async def connect_service_client(
        self,
        config: ConnectConfig,
        next: Callable[[ConnectConfig], Awaitable[ServiceClient]],  # noqa: A002 - the SDK's name
    ) -> ServiceClient:
        """Returns the connection unchanged."""
        return await next(config)

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Returns the configuration with time for our Workers to finish their calls.

        Without it the SDK cancels them after a minute, and calls already paid for are lost.
        """
        if config.get("plugin_shutdown_timeout") == _SDK_SHUTDOWN:
            config["plugin_shutdown_timeout"] = None
        return config

    async def run_worker(
        self,
        worker: Worker,
        next: Callable[[Worker], Awaitable[None]],  # noqa: A002 - the SDK's name
    ) -> None:
        """Runs a Worker together with ours."""
        await self._enter(worker.client)
        try:
            await next(worker)
        finally:
            await self._leave()

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Returns the configuration unchanged."""
        return config

    def run_replayer(
        self,
        replayer: Replayer,
        histories: AsyncIterator[WorkflowHistory],
        next: Callable[  # noqa: A002 - the SDK's name
            [Replayer, AsyncIterator[WorkflowHistory]],
            AbstractAsyncContextManager[AsyncIterator[WorkflowReplayResult]],
        ],
    ) -> AbstractAsyncContextManager[AsyncIterator[WorkflowReplayResult]]:
        """Replays as if there were no plugin."""
        return next(replayer, histories)

    async def _enter(self, client: Client) -> None:
        """Starts our Workers with the first Worker of the program."""
        async with self._turn:
            if self._serving is None:
                self._serving = await self._started(client)
            self._running += 1

    async def _leave(self) -> None:
        """Stops our Workers with the last Worker of the program, and raises their error."""
        async with self._turn:
            self._running -= 1
            if self._running > 0 or self._serving is None:
                return
            serving, self._serving = self._serving, None
            self._stop.set()
            await serving

    async def _started(self, client: Client) -> "asyncio.Task[None]":
        """Starts our Workers and returns their task once they serve.

        Raises the error with which they failed.
        """
        self._stop, ready = asyncio.Event(), asyncio.Event()
        # A task of its own: an error of ours must not cancel a Worker of the program.
        serving = asyncio.create_task(self._serve(client, ready))
        is_ready = asyncio.create_task(ready.wait())
        await asyncio.wait([serving, is_ready], return_when=asyncio.FIRST_COMPLETED)
        is_ready.cancel()
        if serving.done():
            serving.result()
        return serving

    async def _serve(self, client: Client, ready: asyncio.Event) -> None:
        from worker_main import serving  # loads all that a Worker needs: for this only

        ours = Client(
            client.service_client,
            namespace=client.namespace,
            data_converter=converter_with(self._settings.keys),
        )
        try:
            async with (
                self._with_model() as settings,
                serving(ours, settings, self._roles, strict_sandbox=False),
            ):
                for warning in start_warnings(settings, os.environ):
                    log.warning(warning)
                ready.set()
                await self._stop.wait()
        except Exception:
            if ready.is_set():  # else the program's Worker fails with it
                log.exception("the Workers of temporal-supervisor ended; yours continue")
            raise

    @asynccontextmanager
    async def _with_model(self) -> AsyncIterator[Settings]:
        """Yields the settings with a model to call; the stand-in runs here."""
        if not self._standin:
            yield self._settings
            return
        # Loads the stand-in: for this option only.
        from temporal_supervisor.standin.extract.kind_of_call import think
        from temporal_supervisor.standin.server.app import BrainServer, serving

        async with serving(BrainServer(think)) as url:
            chosen = {"anthropic_base_url": url, "model": "standin"}
            yield self._settings.model_copy(update=chosen)


def _pinned_sdk() -> str | None:
    """Returns the version of temporalio that this package requires; None if unknown."""
    try:
        needs = metadata.requires("temporal-supervisor") or []
    except metadata.PackageNotFoundError:
        return None
    pins = [need.partition("==")[2] for need in needs if need.startswith("temporalio==")]
    return pins[0] if pins else None
