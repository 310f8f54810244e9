"""The parts of a command: access, hints, exit codes, and errors as one sentence."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from getpass import getuser
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import ArtifactError, ArtifactStore, ArtifactUnavailable
from activities.store.store_urls import open_store
from temporal_supervisor.console.base.terminal import Report, print_err, safe_line
from temporal_supervisor.messages import NoRun, UpdateRefused
from temporal_supervisor.runtime.connection import ConnectionFailed, connect, namespace_id
from temporal_supervisor.runtime.process import INTERRUPTED, PROGRAM, run, shell_command
from temporal_supervisor.runtime.server.embedded_server import ServerFailed, read_record
from temporal_supervisor.runtime.server.temporal_binary import TemporalNotFound
from temporal_supervisor.runtime.settings import Settings, load_settings
from temporal_supervisor.runtime.telemetry import TRACES_LOST, configure
from temporal_supervisor.supervision.base.errors import SupervisionError
from temporal_supervisor.supervision.base.trust import is_loopback
from temporal_supervisor.supervision.contract.request import describe_errors

EXAMPLE_GOAL = "Which source of electricity grew most in Iowa from 2001 to 2017?"

tool_hints: ContextVar[Callable[..., str] | None] = ContextVar("tool_hints", default=None)
"""Turns the words of a command into the tool of an MCP client, which has no shell.

It returns an empty text where there is no such tool.
"""


def hint(*words: str, **environ: str) -> str:
    """Returns a command of this program with the present global options, for messages."""
    as_tool = tool_hints.get()
    if as_tool is not None:
        return as_tool(*words) or f"the shell command {shell_command(PROGRAM, words, **environ)}"

    connection = []
    if access.address:
        connection += ["--address", access.address]
    if access.namespace:
        connection += ["--namespace", access.namespace]
    if access.env_file:
        connection += ["--env-file", str(access.env_file)]
    return shell_command(PROGRAM, [*connection, *words], **environ)


DONE = 0
FAILED = 1
BAD_INPUT = 2
UNREACHABLE = 3
CANCELLED = 4
WAITS = 5

_SENTENCE_CHARS = 1500
_CLOUD = ".tmprl.cloud"


class CommandFailed(Exception):
    """The command ends with `code`; the message is one sentence with the remedy."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass
class Access:
    """The global options of the command line, and access to what they select.

    None means Temporal's own configuration.
    """

    address: str | None = None
    namespace: str | None = None
    env_file: Path | None = None
    debug: bool = False
    _client: Client | None = None
    _send_rest: Callable[[], bool] = lambda: True

    @cached_property
    def settings(self) -> Settings:
        """The settings of this process. Raises ValueError for a wrong variable."""
        return load_settings(self.env_file)

    async def store(self) -> ArtifactStore:
        """Returns the namespace's part of the store.

        Raises ValueError, ArtifactUnavailable or ConnectionFailed.
        """
        folder = await namespace_id(await self.client())
        return open_store(self.settings.artifacts_url, folder, self.settings.keys)

    async def store_or_none(self) -> ArtifactStore | None:
        """Returns the store; None if it can't be opened, as following a run needs none."""
        try:
            return await self.store()
        except (ArtifactUnavailable, ValueError):
            return None

    async def stores_with_end(self, run_id: str) -> list[ArtifactStore]:
        """Returns the parts of the store with the stored end of a run.

        Without the server, the run's namespace is unknown, so all parts are searched.
        """
        url = self.settings.artifacts_url
        folders = await open_store(url).folders()
        parts = [open_store(url, unquote(folder), self.settings.keys) for folder in folders]
        return [part for part in parts if await part.latest_ended(run_id) is not None]

    async def client(self) -> Client:
        """Returns a connected client, the same one each time.

        Raises ConnectionFailed without a usable server, and ValueError for unsupported trace
        settings.
        """
        if self._client is None:
            self._send_rest = configure(PROGRAM)
            self._client = await connect(
                address=self.address,
                namespace=self.namespace,
                keys=self.settings.keys,
            )
        return self._client

    def close(self) -> None:
        """Sends the remaining spans."""
        if not self._send_rest():
            print_err(TRACES_LOST)


access = Access()
"""As the options of this command line say."""


def perform(
    access: Access,
    work: Callable[[], Coroutine[Any, Any, Report | int]],
    *,
    as_json: bool = False,
) -> int:
    """Runs a command, prints its report and returns its exit code.

    A failure is printed as a sentence on standard error.
    """
    _without_logs(access.debug)
    try:
        done = run(work())
        return done.print_to(as_json=as_json) if isinstance(done, Report) else done
    except (Exception, KeyboardInterrupt) as error:
        failure = explain(error)
        if access.debug:
            print_err("".join(traceback.format_exception(error)))
        if failure.message:
            print_err(f"error: {safe_line(failure.message, _SENTENCE_CHARS)}")
        return failure.code
    finally:
        access.close()


def user_name() -> str:
    """Returns the system's name of the current user; "unknown" without one."""
    try:
        return getuser()
    except (KeyError, OSError):
        return "unknown"


def explain(error: BaseException) -> CommandFailed:
    """Returns the sentence and exit code for any error of a command."""
    text = str(error) or type(error).__name__
    match error:
        case CommandFailed():
            return error
        case NoRun(is_other=False):
            return CommandFailed(FAILED, f"{text}: {hint('list')} shows the runs")
        case RPCError():
            return _explain_rpc(error)
        case ValidationError():
            return CommandFailed(BAD_INPUT, describe_errors(error))
        case ConnectionFailed() | ArtifactUnavailable() | ServerFailed() | TemporalNotFound():
            return CommandFailed(UNREACHABLE, text)
        case BrokenPipeError():  # `trace | head`: the reader has what it wanted
            return CommandFailed(DONE, "")
        case ArtifactError() | UpdateRefused():
            return CommandFailed(FAILED, text)
        case SupervisionError() | ValueError() | OSError():
            return CommandFailed(BAD_INPUT, text)
        case asyncio.CancelledError() | KeyboardInterrupt():
            return CommandFailed(INTERRUPTED, "")
    helps = "run it again with --debug to see where"
    return CommandFailed(FAILED, f"something unexpected happened ({text}): {helps}")


_ON_STATE = (
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.ALREADY_EXISTS,
    RPCStatusCode.FAILED_PRECONDITION,
)


def _explain_rpc(error: RPCError) -> CommandFailed:
    if error.status is RPCStatusCode.INVALID_ARGUMENT:
        return CommandFailed(BAD_INPUT, f"the Temporal server refuses this: {error.message}")
    if error.status in _ON_STATE:
        return CommandFailed(FAILED, f"the Temporal server says: {error.message}")
    silent = f"the Temporal server does not answer ({error.message})"
    return CommandFailed(UNREACHABLE, f"{silent}: try again")


def _without_logs(debug: bool) -> None:
    """Keeps log lines of libraries off standard error: commands print one sentence."""
    if not debug:
        # without any handler Python would print them
        logging.getLogger().addHandler(logging.NullHandler())
    silent = Runtime(telemetry=TelemetryConfig(logging=None))
    Runtime.set_default(silent, error_if_already_set=False)


def server_address(client: Client) -> str:
    """Returns the address that the client is connected to."""
    return client.service_client.config.target_host


def endpoint(settings: Settings) -> str | None:
    """Returns the model endpoint in the settings, without credentials; None without one."""
    if not settings.has_model:
        return None
    parts = urlsplit(settings.anthropic_base_url or "")
    if not parts.hostname:
        return "Anthropic, by key"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"


def web_address(client: Client, run_id: str) -> str | None:
    """Returns the URL of a run in the Web UI, if there is one, else None.

    The embedded server and Temporal Cloud have one.
    """
    address = server_address(client)
    page = f"namespaces/{quote(client.namespace, safe='')}/workflows/{quote(run_id, safe='')}"
    if address.partition(":")[0].endswith(_CLOUD):
        return f"https://cloud.temporal.io/{page}"

    embedded = read_record()
    if embedded is None or not embedded.ui:
        return None
    host, _, port = address.rpartition(":")
    is_here = is_loopback(host.strip("[]")) and embedded.address.endswith(f":{port}")
    return f"{embedded.ui}/{page}" if is_here else None
