"""The access of a command to settings, Temporal server and artifact store, each opened when it is needed."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote, urlsplit

from temporalio.client import Client

from activities.store.artifacts import ArtifactStore, open_store
from console.terminal import print_err
from runtime.connection import connect
from runtime.paths import cache_dir
from runtime.server.server_record import read_record
from runtime.settings import Settings, load_settings
from runtime.telemetry import TRACES_LOST, Telemetry, configure

_CLOUD = ".tmprl.cloud"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass
class Access:
    """The global options of the command line; None means Temporal's own configuration."""

    address: str | None = None
    namespace: str | None = None
    env_file: Path | None = None

    @cached_property
    def settings(self) -> Settings:
        """The settings of this process. Raises ValueError if a variable is wrong."""
        return load_settings(self.env_file)

    @cached_property
    def store(self) -> ArtifactStore:
        """The artifact store. Raises ValueError or ArtifactUnavailable if it can't be opened."""
        return open_store(self.settings.artifacts_url)

    @cached_property
    def telemetry(self) -> Telemetry:
        """Tracing as `OTEL_*` configures it. Raises ValueError for an exporter that is not supported."""
        return configure("temporal-supervisor")

    async def client(self) -> Client:
        """Returns a connected client. Raises ConnectionFailed if there is no usable server."""
        return await connect(self.telemetry, address=self.address, namespace=self.namespace)

    def close(self) -> None:
        """Sends the remaining spans."""
        if "telemetry" in self.__dict__ and not self.telemetry.shutdown():
            print_err(TRACES_LOST)


def server_address(client: Client) -> str:
    """Returns the address that the client is connected to."""
    return client.service_client.config.target_host


def endpoint(settings: Settings) -> str | None:
    """Returns the model endpoint that the settings name, without credentials in its address; None if there is none."""
    if not settings.has_model:
        return None
    parts = urlsplit(settings.anthropic_base_url or "")
    if not parts.hostname:
        return "Anthropic, by key"
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def web_address(client: Client, run_id: str) -> str | None:
    """Returns the page of a run in the Web UI of the embedded server or of Temporal Cloud, else None."""
    address = server_address(client)
    page = f"namespaces/{quote(client.namespace, safe='')}/workflows/{quote(run_id, safe='')}"
    if address.partition(":")[0].endswith(_CLOUD):
        return f"https://cloud.temporal.io/{page}"
    embedded = read_record(cache_dir())
    if embedded and embedded.ui and _same(embedded.address, address):
        return f"{embedded.ui}/{page}"
    return None


def _same(address: str, other: str) -> bool:
    host, _, port = address.rpartition(":")
    other_host, _, other_port = other.rpartition(":")
    return port == other_port and (host == other_host or (host in _LOOPBACK and other_host in _LOOPBACK))
