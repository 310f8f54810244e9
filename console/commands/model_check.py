"""The model endpoint as `doctor` sees it: it is asked for its list of models, which costs nothing."""

import asyncio
import http.client
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from console import console_limits
from console.access import endpoint
from console.commands.check_row import CheckRow
from runtime.settings import Settings
from supervision.trust import is_loopback

_PROVIDER = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_STANDIN = "the stand-in model, which extracts and does not reason"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is not carried to where a redirect points."""

    def redirect_request(self, *_: object) -> None:
        """Returns None: the redirect is the answer."""


async def model_row(settings: Settings) -> CheckRow:
    """Returns whether the model endpoint of this environment answers, and takes its credential."""
    address = endpoint(settings)
    if address is None:
        return CheckRow(
            "warning",
            "model",
            "this environment names no model, so Workers started in it can't make model calls",
            "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run",
        )
    name = f"{_STANDIN}, at {address}" if settings.model == "standin" else address
    begun = time.monotonic()
    try:
        status = await asyncio.to_thread(_status, settings)
    except (OSError, http.client.HTTPException, ValueError) as error:
        where = "start it, or correct ANTHROPIC_BASE_URL" if settings.anthropic_base_url else "check the network"
        return CheckRow("problem", "model", f"{name}: {_reason(error)}", where)
    milliseconds = f"{(time.monotonic() - begun) * 1000:.0f} ms"
    if status in (401, 403):
        return CheckRow(
            "problem",
            "model",
            f"{name}: it refuses the credential ({status})",
            "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run",
        )
    if status >= 500:
        return CheckRow("warning", "model", f"{name}: it answers with {status}", "runs wait for it and go on then")
    if settings.model == "standin":
        return CheckRow("warning", "model", f"{name}; it answers in {milliseconds}")
    return CheckRow("ok", "model", f"{name} answers in {milliseconds}, as seen from here")


def _status(settings: Settings) -> int:
    """Returns the status of one GET request. Raises OSError if there is no answer."""
    base = (settings.anthropic_base_url or _PROVIDER).rstrip("/")
    request = urllib.request.Request(f"{base}/v1/models?limit=1", headers={"anthropic-version": _API_VERSION})
    parts = urlsplit(base)
    private = parts.scheme == "https" or is_loopback(parts.hostname or "") or settings.model_plain_http
    if settings.model != "standin" and private:
        if key := settings.secret("anthropic_api_key"):
            request.add_header("x-api-key", key)
        elif token := settings.secret("anthropic_auth_token"):
            request.add_header("authorization", f"Bearer {token}")
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=console_limits.PROBE_TIMEOUT.total_seconds()) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(cause, TimeoutError):
        return f"no answer within {console_limits.PROBE_TIMEOUT.total_seconds():g} s"
    return f"it can't be reached ({cause})"
