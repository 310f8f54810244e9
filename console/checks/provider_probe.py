"""Questions to the model endpoint that cost nothing: is it there, what does it say of a model."""

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from console import console_limits
from runtime.settings import Settings
from supervision.trust import is_loopback

PROVIDER = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
UNANSWERED = (OSError, http.client.HTTPException, ValueError)
"""What a question ends with that gets no answer."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is not carried to where a redirect points."""

    def redirect_request(self, *_: object) -> None:
        """Returns None: the redirect is the answer."""


@dataclass(frozen=True)
class Reply:
    """The status of a reply, and its JSON object: empty if it was none."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)


def ask_for_models(settings: Settings) -> Reply:
    """Asks for the list of models. Raises UNANSWERED."""
    return _get(settings, "/v1/models?limit=1")


def ask_about(settings: Settings, model: str) -> Reply:
    """Asks what the list of models says of one. Raises UNANSWERED."""
    return _get(settings, f"/v1/models/{quote(model, safe='')}")


def _get(settings: Settings, path: str) -> Reply:
    base = (settings.anthropic_base_url or PROVIDER).rstrip("/")
    request = urllib.request.Request(f"{base}{path}", headers={"anthropic-version": _API_VERSION})
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
            return Reply(int(reply.status), _json(reply.read(console_limits.PROBE_BYTES)))
    except urllib.error.HTTPError as answer:
        with answer:
            return Reply(answer.code, _json(answer.read(console_limits.PROBE_BYTES)))


def _json(data: bytes) -> dict[str, Any]:
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
