"""Checks of file permissions and endpoints, and removal of credentials from texts."""

import base64
import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

_ROOT = 0
_LEAST_CHARS = 12  # a shorter key may be an ordinary word, as for endpoints that need none


def distrust(status: os.stat_result, me: int) -> str | None:
    """Returns the reason for the user `me` to distrust a file or folder.

    None if only `me` and root can change it.
    """
    if status.st_uid not in (me, _ROOT):
        return f"it belongs to the user with number {status.st_uid}"
    return "others can write to it" if _others_may(status, stat.S_IWGRP, stat.S_IWOTH) else None


def is_readable_by_others(status: os.stat_result) -> bool:
    """True if other users of the machine can read the file or list the folder."""
    return _others_may(status, stat.S_IRGRP | stat.S_IXGRP, stat.S_IROTH | stat.S_IXOTH)


def _others_may(status: os.stat_result, by_group: int, by_all: int) -> bool:
    """True if one of these permissions is set.

    A group whose id equals the file's user id counts as private to that user, as many systems set
    it up.
    """
    return bool(status.st_mode & (by_all | (by_group if status.st_gid != status.st_uid else 0)))


def unshared(file: object, status: os.stat_result, me: int, *, secret: bool = False) -> None:
    """Raises ValueError if other users can write to a file, or read a `secret` one."""
    if why := distrust(status, me) or (
        "others can read it" if secret and is_readable_by_others(status) else None
    ):
        raise ValueError(
            f"{file} is not read: {why}; make it yours alone, as with `chmod 600 {file}`"
        )


def is_exposed(url: str) -> bool:
    """True if data sent to this URL travels unencrypted to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """True if traffic to `host` never leaves this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_http(url: str, *, secret: bool) -> str | None:
    """Returns the problem with the URL of a tool server; None if it has none.

    A URL whose headers have a `secret` must be encrypted.
    """
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # of urlsplit, or of the port
        is_http = False
    if not is_http:
        return f"url: '{url}' is not an http or https URL"
    if not parts.hostname or parts.username is not None:
        return "url: it must name a host, and no user or password: a secret goes into headers"
    if secret and is_exposed(url):
        return (
            f"url: plain http to '{parts.hostname}' would send its headers unencrypted: use https"
        )
    return None


def host_and_port(url: str) -> str:
    """Returns `host:port` of a model endpoint, such as `api.anthropic.com:443`.

    Raises ValueError for anything but an http or https URL.
    """
    with contextlib.suppress(ValueError, KeyError):
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        if parts.hostname:
            return f"{parts.hostname}:{port}"
    raise ValueError("ANTHROPIC_BASE_URL is not an http or https URL of a host")


class Credentials:
    """Credentials to be removed from texts, plain and in base64.

    Credentials shorter than `least` characters are ignored, as they may be ordinary words.
    """

    def __init__(self, secrets: Iterable[str] = (), least: int = _LEAST_CHARS) -> None:
        self._forms = {
            form for secret in secrets if len(secret) >= least for form in _forms(secret)
        }

    def withheld(self, text: str) -> str:
        """Returns a text or JSON in which each credential is replaced by "[secret]"."""
        for form in self._forms:
            text = text.replace(form, "[secret]")
        return text


NO_CREDENTIALS = Credentials()


def _forms(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    # Base64 of a longer text, in which the secret begins at any of three places.
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(bytes(before) + secret.encode()).decode()
            # Others depend on the neighbours.
            yield whole[-(-before * 4 // 3) : (before + len(secret)) * 4 // 3]
