"""The model endpoint as `doctor` sees it: whether it answers, and what it says of each model that is configured."""

import asyncio
import time
import urllib.error
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from activities.model.request.endpoint_profile import profile_of
from console import console_limits
from console.access import endpoint
from console.checks.check_row import CheckRow
from console.checks.provider_probe import UNANSWERED, Reply, ask_about, ask_for_models
from runtime.settings import Settings
from supervision import limits
from supervision.contract.model_choice import chain_of
from supervision.text import clean, one_line

_STANDIN = "the stand-in model, which extracts and does not reason"
_STRUCTURED = ("structured_outputs", "supported")  # abilities as the API's list of models has them
_ABILITIES = {"effort": ("effort", "supported"), "thinking": ("thinking", "types", "adaptive", "supported")}


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
    rows = [
        _listed_row(settings, model, users[model], reply) for model, reply in zip(users, replies, strict=True) if reply
    ]
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


def _listed_row(settings: Settings, model: str, users: list[tuple[str, str]], reply: Reply) -> CheckRow | None:
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
    said = "; ".join(_sizes(reply.body))
    if lifecycle == "deprecated" or retires:
        when = f"it retires on {retires}" if retires else "it is to be retired"
        return CheckRow("warning", "models", f"{name}: {when}" + (f"; {said}" if said else ""), fix)
    if needed := _needed(settings, model, reply.body):
        return CheckRow(
            "warning",
            "models",
            f"{name}: it takes less than requests hold" + (f"; {said}" if said else ""),
            f"set {', '.join(needed)} where Workers run",
        )
    return CheckRow("ok", "models", f"{name}: {said or 'the provider serves it'}")


def _sizes(listed: dict[str, Any]) -> list[str]:
    taken, written = listed.get("max_input_tokens"), listed.get("max_tokens")
    words = [f"takes {taken:,} tokens"] if type(taken) is int else []
    return [*words, f"writes {written:,}"] if type(written) is int else words


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


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ConnectionRefusedError):
        return "the connection is refused"
    if isinstance(cause, TimeoutError):
        return f"no answer within {console_limits.PROBE_TIMEOUT.total_seconds():g} s"
    return f"it can't be reached ({one_line(clean(str(cause)), console_limits.FOLLOW_LINE_CHARS)})"
