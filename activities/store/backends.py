"""The object store behind an artifact store's URL, and the messages of its failures."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from supervision.base import limits
from supervision.base.trust import is_loopback

_STORE_CONNECT_TIMEOUT = timedelta(seconds=5)
_STORE_RETRY_TIMEOUT = timedelta(seconds=15)  # all retries of one operation end before SETUP_TIMEOUT

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_FIXES = {
    "s3": "Check the bucket, AWS_ENDPOINT_URL, AWS_REGION and the AWS_* credentials",
    "gs": "Check the bucket and the GOOGLE_* credentials",
    "az": "Check the container and the AZURE_STORAGE_* account and credentials",
}
_KINDS = "a directory, file:///directory, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_SECRET_PARTS = re.compile(r"(?<=//)[^/@\s]*@|\?\S*")
_CODE = re.compile(r"<Code>(\w+)</Code>")


@dataclass(frozen=True)
class Backend:
    """An object store; `root` is its directory when it is local, `shown` its URL without anything secret."""

    objects: "ObjectStore"
    shown: str
    fix: str
    root: Path | None = None


def open_backend(url: str, folder: str = "") -> Backend:
    """Returns the object store at `url`, or a folder of it; a local one is made if need be. ValueError, OSError."""
    if "://" not in url:
        return _local(url, folder)
    parts = urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or len(parts.path) < 2:
            raise ValueError(f"'{url}' names no directory: write file:///directory")
        return _local(unquote(parts.path), folder)
    return _remote(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(folder)}".rstrip("/")))


def reason(error: Exception) -> str:
    """Returns the backend's message on one line, without its debug output and without anything secret.

    Raise the new error `from None`: the original one may quote signed URLs, and causes travel into history.
    """
    text = str(error)
    message = re.split(r"\n|[<{]", text, maxsplit=1)[0].strip(" :.")
    code = _CODE.search(text)
    return _SECRET_PARTS.sub("", message) + (f" ({code[1]})" if code else "")


def _local(directory: str, folder: str) -> Backend:
    if not directory.strip():
        raise ValueError(f"the artifact store's URL is empty: name {_KINDS}")
    root = Path(directory).expanduser().absolute() / folder
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"'{root}' can't hold the artifact store: it is a file, or below one") from None
    fix = "Check that the directory exists, is writable and has space left"
    return Backend(LocalStore(root), str(root), fix, root)


def _remote(parts: SplitResult) -> Backend:
    shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path.rstrip('/')}"
    if parts.scheme not in _FIXES:
        raise ValueError(f"'{shown}' is no artifact store: name {_KINDS}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"the URL of '{shown}' holds more than a bucket and a prefix: credentials go into variables")
    if not parts.netloc:
        raise ValueError(f"'{shown}' names no bucket")
    client: ClientConfig = {
        "connect_timeout": _STORE_CONNECT_TIMEOUT,
        "timeout": limits.STORE_REQUEST_TIMEOUT,
    }
    if parts.scheme == "s3" and _plain_http_allowed():
        client["allow_http"] = True
    retries: RetryConfig = {
        "max_retries": limits.STORE_REQUEST_RETRIES,
        "retry_timeout": _STORE_RETRY_TIMEOUT,
    }
    try:
        objects = from_url(parts.geturl(), client_options=client, retry_config=retries)
    except (BaseError, ValueError) as error:
        raise ValueError(f"artifact store {shown}: {reason(error)}. {_FIXES[parts.scheme]}") from None
    return Backend(objects, shown, _FIXES[parts.scheme])


def _plain_http_allowed() -> bool:
    """True if the S3 endpoint may be plain http: on loopback always, elsewhere only by AWS_ALLOW_HTTP."""
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    if endpoint.scheme != "http":
        return False
    if is_loopback(endpoint.hostname or "") or os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true"):
        return True
    raise ValueError(
        f"AWS_ENDPOINT_URL is plain http to '{endpoint.hostname}': use https, "
        "or set AWS_ALLOW_HTTP=true if the network between is yours"
    )
