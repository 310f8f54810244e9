"""The model endpoint as `doctor` sees it: whether it answers, and what it says of each model that is configured.

The questions cost nothing: they are about the list of models.
"""

import asyncio
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from activities.model.request.endpoint_profile import profile_of
from console.command import endpoint
from runtime.settings import Settings
from supervision.base import limits
from supervision.base.text import clean, one_line
from supervision.base.trust import is_loopback
from supervision.contract.model_choice import chain_of

_PROVIDER = "https://api.anthropic.com"
_API_VERSION = "2023-06-01"
_TIMEOUT = timedelta(seconds=3)  # a provider's list of models comes in well under a second
_REPLY_BYTES = 64 * 1024  # what it says of one model is 2 KB
_REASON_CHARS = 240
_UNANSWERED = (OSError, http.client.HTTPException, ValueError)
_STANDIN = "the stand-in model, which extracts and does not reason"
_STRUCTURED = ("structured_outputs", "supported")  # abilities as the API's list of models has them
_ABILITIES = {"effort": ("effort", "supported"), "thinking": ("thinking", "types", "adaptive", "supported")}

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True)
class CheckRow:
    """The state of one thing that a run needs."""

    level: Level
    name: str
    text: str
    fix: str = ""


async def model_rows(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields whether the model endpoint of this environment answers, then what it says of the configured models."""
    address = endpoint(settings)
    if address is None:
        text = "this environment names no model, so Workers started in it can't make model calls"
        fix = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run"
        yield CheckRow("warning", "model", text, fix)
        return
    row = await _endpoint_row(settings, address)
    yield row
    if row.level != "ok":
        return
    users = _configured(settings)
    replies = await asyncio.gather(*(_asked(settings, model) for model in users))
    rows = [_listed_row(settings, model, users[model], *reply) for model, reply in zip(users, replies, strict=True)]
    nothing = CheckRow("ok", "models", f"the endpoint does not say what {', '.join(users)} can do")
    for listed in [row for row in rows if row] or [nothing]:
        yield listed


async def _endpoint_row(settings: Settings, address: str) -> CheckRow:
    name = f"{_STANDIN}, at {address}" if settings.model == "standin" else address
    begun = time.monotonic()
    try:
        status, _ = await asyncio.to_thread(_get, settings, "/v1/models?limit=1")
    except _UNANSWERED as error:
        where = "start it, or correct ANTHROPIC_BASE_URL" if settings.anthropic_base_url else "check the network"
        return CheckRow("problem", "model", f"{name}: {_reason(error)}", where)
    took = f"{(time.monotonic() - begun) * 1000:.0f} ms"
    if status in (401, 403):
        fix = "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run"
        return CheckRow("problem", "model", f"{name}: it refuses the credential ({status})", fix)
    if status >= 500:
        return CheckRow("warning", "model", f"{name}: it answers with {status}", "runs wait for it and go on then")
    if settings.model == "standin":
        return CheckRow("warning", "model", f"{name}; it answers in {took}")
    return CheckRow("ok", "model", f"{name} answers in {took}, as seen from here")


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(cause, TimeoutError):
        return f"no answer within {_TIMEOUT.total_seconds():g} s"
    return f"it can't be reached ({one_line(clean(str(cause)), _REASON_CHARS)})"


def _configured(settings: Settings) -> dict[str, list[tuple[str, str]]]:
    """Returns the models that are configured, with who uses each and where that is written."""
    from activities.teams.team_files import named_models  # loads the tools' libraries: 0.3 s for some commands only

    users: dict[str, list[tuple[str, str]]] = {}
    for setting, variable, who in (
        (settings.supervisor_model, "SUPERVISOR_SUPERVISOR_MODEL", "supervisors"),
        (settings.worker_model, "SUPERVISOR_WORKER_MODEL", "worker agents"),
    ):
        for model in chain_of(setting):
            users.setdefault(model, []).append((who, variable))
    for model, roles in named_models(settings.teams_folders).items():
        users.setdefault(model, []).extend((role, f"`model` of the role {role}") for role in roles)
    return users


def _listed_row(
    settings: Settings, model: str, users: list[tuple[str, str]], status: int, listed: dict[str, Any]
) -> CheckRow | None:
    """Returns what the endpoint says of a model; None if it says nothing."""
    name = f"{model}, for {', '.join(who for who, _ in users)}"
    fix = f"name another one: {', '.join(where for _, where in users)}"
    if status == 404 and _read(listed, ("error", "type")) == "not_found_error":
        return CheckRow("problem", "models", f"{name}: the provider has no model of that name", fix)
    if status != 200 or not listed.keys() & {"lifecycle", "capabilities", "max_input_tokens"}:
        return None
    lifecycle, retires = listed.get("lifecycle"), _date(listed.get("retires_at"))
    if lifecycle == "retired":
        return CheckRow("problem", "models", f"{name}: retired, the provider serves it no more", fix)
    taken, written = listed.get("max_input_tokens"), listed.get("max_tokens")
    sizes = [f"takes {taken:,} tokens"] if type(taken) is int else []
    sizes += [f"writes {written:,}"] if type(written) is int else []
    if lifecycle == "deprecated" or retires:
        when = f"it retires on {retires}" if retires else "it is to be retired"
        return CheckRow("warning", "models", f"{name}: {'; '.join([when, *sizes])}", fix)
    if needed := _needed(settings, model, listed):
        text = f"{name}: {'; '.join(['it takes less than requests hold', *sizes])}"
        return CheckRow("warning", "models", text, f"set {', '.join(needed)} where Workers run")
    return CheckRow("ok", "models", f"{name}: {'; '.join(sizes) or 'the provider serves it'}")


def _needed(settings: Settings, model: str, listed: dict[str, Any]) -> list[str]:
    """Returns the settings that leave out of requests what the list of models says that a model does not take."""
    from activities.model.prompt_fit import KnownWindows  # loads the price list: for some commands only

    able, profile = listed.get("capabilities"), profile_of(model, settings.model_without, settings.model_max_tokens)
    needed = []
    if settings.model_structured == "format" and _read(able, _STRUCTURED) is False:
        needed.append("SUPERVISOR_MODEL_STRUCTURED=tool")
    if lacks := [part for part, path in _ABILITIES.items() if getattr(profile, part) and _read(able, path) is False]:
        needed.append(f"SUPERVISOR_MODEL_WITHOUT={','.join([*settings.model_without, *lacks])}")
    taken, written = listed.get("max_input_tokens"), listed.get("max_tokens")
    if type(taken) is int and taken < KnownWindows(settings.model_window).of(model):
        needed.append(f"SUPERVISOR_MODEL_WINDOW={model}={taken}")
    usual = limits.TURN_MAX_TOKENS
    if type(written) is int and written < min(usual, profile.most_output or usual * limits.UNKNOWN_OUTPUT_SHARE):
        needed.append(f"SUPERVISOR_MODEL_MAX_TOKENS={written}")
    return needed


def _read(value: object, path: tuple[str, ...]) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _date(value: object) -> str | None:
    try:
        return datetime.fromisoformat(value).date().isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key is not carried to where a redirect points."""

    def redirect_request(self, *_: object) -> None:
        """Returns None: the redirect is the answer."""


async def _asked(settings: Settings, model: str) -> tuple[int, dict[str, Any]]:
    """Returns what the list of models says of one; status 0 if there is no answer."""
    try:
        return await asyncio.to_thread(_get, settings, f"/v1/models/{quote(model, safe='')}")
    except _UNANSWERED:
        return 0, {}


def _get(settings: Settings, path: str) -> tuple[int, dict[str, Any]]:
    """Returns the status of a reply and its JSON object, empty if it was none. Raises _UNANSWERED."""
    base = (settings.anthropic_base_url or _PROVIDER).rstrip("/")
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
        reply = opener.open(request, timeout=_TIMEOUT.total_seconds())
    except urllib.error.HTTPError as answer:
        reply = answer
    with reply:
        data = reply.read(_REPLY_BYTES)
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        read = {}
    return int(reply.status), read if isinstance(read, dict) else {}
