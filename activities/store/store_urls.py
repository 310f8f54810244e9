"""The artifact store of a URL: a directory, or a bucket with a prefix."""

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from activities.store.artifacts import ArtifactStore, Seal, backend_message
from temporal_supervisor.supervision.base import limits, store_keys
from temporal_supervisor.supervision.base.trust import is_exposed

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_CONNECT_TIMEOUT = timedelta(seconds=5)
_RETRY_TIMEOUT = timedelta(seconds=15)  # all retries of one operation end before SETUP_TIMEOUT

_VARIABLES = "AWS_*, GOOGLE_* or AZURE_STORAGE_*"
_FIX = f"Check the bucket, AWS_ENDPOINT_URL (plain http needs AWS_ALLOW_HTTP=true), {_VARIABLES}"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_BUCKETS = "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_KINDS = f"a directory, file:///directory, {_BUCKETS}"


def open_store(url: str | Path, namespace: str = "", seal: Seal | None = None) -> ArtifactStore:
    """Opens the part of a store that belongs to a namespace, or all of it without one.

    `namespace` is an id of `runtime.connection`. `url` is a directory, file://, s3://bucket/prefix,
    gs://bucket/prefix or az://container/prefix. Credentials and endpoints come from the environment
    (AWS_*, GOOGLE_*, AZURE_*). Raises ValueError if the URL names no store.
    """
    text = str(url)
    folder = store_keys.encode(namespace) if namespace else ""
    parts = urlsplit(text)
    if "://" in text and parts.scheme != "file":
        path = f"{parts.path.rstrip('/')}/{quote(folder)}".rstrip("/")
        return _remote_store(parts._replace(path=path), seal)
    if parts.scheme == "file":
        text = "" if parts.netloc not in ("", "localhost") else unquote(parts.path)
    return _local_store(text, folder, seal)


def _local_store(directory: str, folder: str, seal: Seal | None) -> ArtifactStore:
    if not directory.strip():
        raise ValueError(f"the artifact store's URL names no directory: name {_KINDS}")
    root = Path(directory).expanduser().absolute() / folder
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"'{root}' can't hold the artifact store ({error.strerror})"
        here = f"let user {os.getuid()} write there"
        elsewhere = "or name another place in SUPERVISOR_ARTIFACTS_URL"
        raise ValueError(f"{problem}: {here}, {elsewhere}") from None
    fix = "Check that the directory exists, is writable and has space left"
    return ArtifactStore(LocalStore(root), str(root), fix, root, seal)


def _remote_store(parts: SplitResult, seal: Seal | None) -> ArtifactStore:
    shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path.rstrip('/')}"
    if parts.scheme not in ("s3", "gs", "az"):
        raise ValueError(f"'{shown}' is no artifact store: name {_KINDS}")
    if parts.username is not None or parts.query or parts.fragment:
        problem = f"the URL of '{shown}' holds more than a bucket and a prefix"
        raise ValueError(f"{problem}: credentials go into variables")
    client: ClientConfig = {
        "allow_http": parts.scheme == "s3" and _may_use_http(),
        "connect_timeout": _CONNECT_TIMEOUT,
        "timeout": limits.STORE_REQUEST_TIMEOUT,
    }
    retries: RetryConfig = {
        "max_retries": limits.STORE_REQUEST_RETRIES,
        "retry_timeout": _RETRY_TIMEOUT,
    }
    try:
        objects = from_url(parts.geturl(), client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise ValueError(f"artifact store {shown}: {backend_message(error)}. {_FIX}") from None
    return ArtifactStore(objects, shown, _FIX, seal=seal)


def _may_use_http() -> bool:
    """True if the user allows plain http, or it does not leave this machine."""
    allowed = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    endpoints = [os.environ.get(name, "") for name in _ENDPOINTS]
    return allowed or not any(map(is_exposed, endpoints))
