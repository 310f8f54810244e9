"""The connection to Temporal: its own configuration, with the project's data converter."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import GrpcCompression, RPCError, RPCStatusCode

from temporal_supervisor.runtime.payloads import converter_with
from temporal_supervisor.runtime.process import PROGRAM, shell_command
from temporal_supervisor.runtime.server.embedded_server import PORT, read_record
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.trust import is_loopback

if TYPE_CHECKING:
    from temporal_supervisor.runtime.encryption import Keys

_CONNECT_RETRY = timedelta(seconds=1)
_NAMESPACE_TRIES = 3  # of five seconds each: beside four other programs one was not enough
_NO_ANSWER = (RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.UNAVAILABLE)

# the SDK gives the debug text of another language: these parts of it are stable, and are enough
_REASONS = re.compile(
    "connection refused|dns error|invalid uri|invalid target|certificate|tls|"
    "unauthenticated|permission ?denied",
    re.IGNORECASE,
)


class ConnectionFailed(Exception):
    """No usable Temporal server; the message has the tried address and the remedy."""


def target(address: str | None = None, namespace: str | None = None) -> dict[str, Any]:
    """Returns connection arguments.

    Explicit ones come first, then `TEMPORAL_*` and profiles, then a running embedded server.
    """
    try:
        config: dict[str, Any] = dict(ClientConfig.load_client_connect_config())
    except Exception as error:  # the SDK raises several kinds for a bad file or profile
        raise ConnectionFailed(f"Temporal's configuration can't be read: {error}") from error
    if address:
        config["target_host"] = address
    scheme, mark, place = str(config.get("target_host") or "").partition("://")
    if mark:
        helps = f"write {place.rstrip('/')}, leave out {scheme}://"
        raise ConnectionFailed(f"a Temporal server's address is host:port: {helps}")
    if namespace:
        config["namespace"] = namespace
    if not config.get("target_host"):
        embedded = read_record()
        config["target_host"] = embedded.address if embedded else f"localhost:{PORT}"
    if _is_here(config["target_host"]):
        # compression would be a twentieth of the CPU of Worker and server, for nothing
        config["grpc_compression"] = GrpcCompression.NONE
    return config


def _is_here(address: str) -> bool:
    return is_loopback(address.rpartition(":")[0].strip("[]"))


async def connect(
    *,
    address: str | None = None,
    namespace: str | None = None,
    wait: timedelta = timedelta(0),
    report: Callable[[str], None] = lambda _: None,
    keys: "Keys | None" = None,
) -> Client:
    """Returns a client of an existing namespace.

    It tries again for the time `wait`, and reports that once. Raises ConnectionFailed.
    """
    config = target(address, namespace)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait.total_seconds()
    is_reported = False
    while True:
        try:
            async with asyncio.timeout(limits.CONNECT_TIMEOUT.total_seconds()):
                client = await Client.connect(**config, data_converter=converter_with(keys))
                await namespace_id(client)
                return client
        except (RuntimeError, TimeoutError, RPCError) as error:
            problem = _explain(config["target_host"], error)
            if loop.time() >= until:
                raise ConnectionFailed(problem) from error
            if not is_reported:
                is_reported = True
                report(f"{problem}; trying again for {wait.total_seconds():g} s")
        await asyncio.sleep(_CONNECT_RETRY.total_seconds())


async def namespace_id(client: Client) -> str:
    """Returns the id of the client's namespace, which is unique among all servers.

    It is the namespace's name if the client may not describe the namespace.
    """
    try:
        return await _asked_namespace_id(client)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            server = f"the Temporal server at {client.service_client.config.target_host}"
            create = f"`temporal operator namespace create --namespace {client.namespace}`"
            raise ConnectionFailed(
                f"{server} has no namespace '{client.namespace}': "
                f"set TEMPORAL_NAMESPACE, or create it with {create}"
            ) from error
        if error.status not in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED):
            raise
        return client.namespace


async def _asked_namespace_id(client: Client) -> str:
    """Returns the server's reply; asks again if it is late.

    The server may be busy, or have just started.
    """
    request = DescribeNamespaceRequest(namespace=client.namespace)
    service = client.workflow_service
    tries = 0
    while True:
        tries += 1
        try:
            described = await service.describe_namespace(request, timeout=limits.CONNECT_TIMEOUT)
            return described.namespace_info.id
        except RPCError as error:
            if error.status not in _NO_ANSWER or tries == _NAMESPACE_TRIES:
                raise


def _explain(address: str, error: Exception) -> str:
    found = _REASONS.search(str(error))
    why = found[0].lower() if found else "it does not answer"
    if _is_here(address):
        helps = f"start one with {shell_command(PROGRAM, ['serve'])}, or set TEMPORAL_ADDRESS"
    else:
        helps = "is it up, and is TEMPORAL_ADDRESS right?"
    return f"no Temporal server at {address} ({why}): {helps}"
