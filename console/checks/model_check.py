"""The model endpoint as `doctor` sees it: whether it answers, and what it says of each model that is configured."""

import asyncio
import time
import urllib.error
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from activities.model.request.refused_parts import Part, denied
from console import console_limits
from console.access import endpoint
from console.checks.check_row import CheckRow
from console.checks.provider_probe import UNANSWERED, Reply, ask_about, ask_for_models
from runtime.settings import Settings
from supervision.contract.model_choice import chain_of
from supervision.text import clean, one_line

_STANDIN = "the stand-in model, which extracts and does not reason"
_ABILITIES = {Part.FORMAT: "structured outputs", Part.EFFORT: "effort", Part.THINKING: "thinking"}


async def model_rows(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields whether the model endpoint of this environment answers, then what it says of the configured models."""
    address = endpoint(settings)
    if address is None:
        yield CheckRow(
            "warning",
            "model",
            "this environment names no model, so Workers started in it can't make model calls",
            "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run",
        )
        return
    row = await _endpoint_row(settings, address)
    yield row
    if row.level == "ok":
        for listed in await _listed_rows(settings):
            yield listed


async def _endpoint_row(settings: Settings, address: str) -> CheckRow:
    name = f"{_STANDIN}, at {address}" if settings.model == "standin" else address
    begun = time.monotonic()
    try:
        status = (await asyncio.to_thread(ask_for_models, settings)).status
    except UNANSWERED as error:
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


async def _listed_rows(settings: Settings) -> list[CheckRow]:
    """Returns a row for each model of which the endpoint says something."""
    users = _configured(settings)
    replies = await asyncio.gather(*(_asked(settings, model) for model in users))
    rows = [_listed_row(model, users[model], reply) for model, reply in zip(users, replies, strict=True) if reply]
    told = [row for row in rows if row is not None]
    if told:
        return told
    return [CheckRow("ok", "models", f"the endpoint does not say what {', '.join(users)} can do")]


def _configured(settings: Settings) -> dict[str, list[tuple[str, str]]]:
    """Returns the models that are configured, with who uses each and where that is written."""
    from activities.teams.team_mentions import named_models  # loads the tools' libraries: 0.3 s for some commands only

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


async def _asked(settings: Settings, model: str) -> Reply | None:
    try:
        return await asyncio.to_thread(ask_about, settings, model)
    except UNANSWERED:
        return None


def _listed_row(model: str, users: list[tuple[str, str]], reply: Reply) -> CheckRow | None:
    name = f"{model}, for {', '.join(who for who, _ in users)}"
    fix = f"name another one: {', '.join(where for _, where in users)}"
    error = reply.body.get("error")
    if reply.status == 404 and isinstance(error, dict) and error.get("type") == "not_found_error":
        return CheckRow("problem", "models", f"{name}: the provider has no model of that name", fix)
    if reply.status != 200 or not reply.body.keys() & {"lifecycle", "capabilities", "max_input_tokens"}:
        return None
    lifecycle, retires = reply.body.get("lifecycle"), _date(reply.body.get("retires_at"))
    if lifecycle == "retired":
        return CheckRow("problem", "models", f"{name}: retired, the provider serves it no more", fix)
    said = "; ".join([*_sizes(reply.body), *_lacking(reply.body)])
    if lifecycle == "deprecated" or retires:
        when = f"it retires on {retires}" if retires else "it is to be retired"
        return CheckRow("warning", "models", f"{name}: {when}" + (f"; {said}" if said else ""), fix)
    return CheckRow("ok", "models", f"{name}: {said or 'the provider serves it'}")


def _sizes(listed: dict[str, Any]) -> list[str]:
    taken, written = listed.get("max_input_tokens"), listed.get("max_tokens")
    words = [f"takes {taken:,} tokens"] if type(taken) is int else []
    return [*words, f"writes {written:,}"] if type(written) is int else words


def _lacking(listed: dict[str, Any]) -> list[str]:
    parts = denied(listed)
    missing = [words for part, words in _ABILITIES.items() if part in parts]
    return [f"without {', '.join(missing)}: calls do without"] if missing else []


def _date(value: object) -> str | None:
    try:
        return datetime.fromisoformat(value).date().isoformat() if isinstance(value, str) else None
    except ValueError:
        return None


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(cause, TimeoutError):
        return f"no answer within {console_limits.PROBE_TIMEOUT.total_seconds():g} s"
    return f"it can't be reached ({one_line(clean(str(cause)), console_limits.FOLLOW_LINE_CHARS)})"
