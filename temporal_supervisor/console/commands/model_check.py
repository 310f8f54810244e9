"""The rows of `doctor` on the model endpoint: its lists, small requests, one real call."""

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from activities.model.port import ModelFailure
from temporal_supervisor.console.base.check_rows import CheckRow
from temporal_supervisor.console.base.command import endpoint
from temporal_supervisor.console.base.terminal import safe_line
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.setting_checks import wrong_path
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.contract.request import RunRequest
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, trait_phrases

if TYPE_CHECKING:
    from activities.model.anthropic_model import AnthropicModel

_PATIENCE = timedelta(seconds=60)  # for what an endpoint says of itself, behind running calls
_LIST_TIME = timedelta(seconds=5)  # of a list, which no model has to work for
_CALL_TIME = timedelta(minutes=3)  # of a call of a few tokens; a model may have to be loaded
_STANDIN = "the stand-in model, which extracts and does not reason"
_PROMPT_WORDS = 400  # enough that reading them takes longer than the way there
_WRITTEN_TOKENS = 24
_SMALL_WINDOW = 8192  # below it a plan, a turn's tool outputs and the answer hardly fit
_WINDOW_OPTIONS = "Ollama by OLLAMA_CONTEXT_LENGTH=32768, llama.cpp by -c, vLLM by --max-model-len"

# What a supervised run of three subtasks read anew and wrote, of 26,300 tokens in 15 calls: the
# demo's goal with a model of 1.5 billion parameters behind a cache.
_RUN_READS = 10_000
_RUN_WRITES = 1500
_DEADLINE_SHARE = 0.8  # of the deadline that such a run may take: others have more subtasks


@dataclass(frozen=True)
class _Speed:
    """The speed of a model in tokens per second."""

    reads: float
    writes: float

    @property
    def run(self) -> timedelta:
        """The duration of a run of three subtasks with one call at a time."""
        return timedelta(seconds=_RUN_READS / self.reads + _RUN_WRITES / self.writes)


async def model_rows(settings: Settings) -> AsyncIterator[CheckRow]:
    """Yields rows on the endpoint in the settings."""
    address = endpoint(settings)
    if address is None:
        text = "this environment names no model, so Workers started in it can't make model calls"
        fix = (
            "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, "
            "where Workers run"
        )
        yield CheckRow("warning", "model", text, fix)
        return
    path = wrong_path(settings)
    if path:
        yield CheckRow("problem", "model", path.problem, path.fix)
        return

    from activities.model.anthropic_model import (
        AnthropicModel,
    )  # loads the provider's SDK: a second

    try:
        model = AnthropicModel(**settings.endpoint_options())
    except ValueError as error:
        yield CheckRow("problem", "model", str(error))
        return
    try:
        async for row in _endpoint_rows(settings, model, address):
            yield row
    finally:
        await model.close()


async def _endpoint_rows(
    settings: Settings,
    model: "AnthropicModel",
    address: str,
) -> AsyncIterator[CheckRow]:
    """Yields rows on an endpoint, up to the first problem."""
    if settings.model == "standin":
        yield await _standin_row(model, address)
        return

    unreachable = await _unreachable_row(settings, model, address)
    if unreachable:
        yield unreachable
        return

    facts = await _endpoint_facts(settings, model)
    unlisted = _unlisted_row(settings, facts)
    if unlisted:
        yield unlisted
        return

    name = _small_model(settings, facts)
    called = await _try_call(settings, model, address, name)
    yield called
    if called.level != "ok" or not settings.anthropic_base_url:
        return

    for row in _traits_rows(facts, name):
        yield row
    speed = await _speed_row(model, name)
    if speed:
        yield speed


async def _unreachable_row(
    settings: Settings,
    model: "AnthropicModel",
    address: str,
) -> CheckRow | None:
    """Returns the problem of an endpoint that is away or rejects the credential."""
    try:
        await model.request_json("/v1/models", None, _LIST_TIME)
    except ModelFailure as failure:
        if failure.kind in (ErrorKind.PROVIDER_UNREACHABLE, ErrorKind.PROVIDER_AUTHENTICATION):
            return _failure_row(settings, address, failure)
    return None


async def _try_call(
    settings: Settings,
    model: "AnthropicModel",
    address: str,
    name: str,
) -> CheckRow:
    """Makes one real call, of one token, and returns its row."""
    started = time.monotonic()
    try:
        await model.request_json("/v1/messages", _call_body(name, "Say yes.", 1), _CALL_TIME)
    except ModelFailure as failure:
        return _failure_row(settings, address, failure)
    took = time.monotonic() - started
    text = f"{address} answers as {name}, after {took:.1f} s, as seen from here"
    return CheckRow("ok", "model", text)


async def _endpoint_facts(settings: Settings, model: "AnthropicModel") -> EndpointFacts:
    """Asks the endpoint for its abilities."""
    from activities.model.endpoint_probe import ENDPOINTS_FILE, EndpointMemory, EndpointProbe

    memory = EndpointMemory(cache_dir() / ENDPOINTS_FILE)
    asked = model if settings.asks_endpoint else None
    probe = EndpointProbe(asked, settings.chosen_models, memory)
    probe.start(lambda facts: None)
    try:
        return await probe.facts(_PATIENCE)
    finally:
        await probe.stop()


async def _standin_row(model: "AnthropicModel", address: str) -> CheckRow:
    try:
        await model.request_json("/v1/models", None, limits.CONNECT_TIMEOUT)
    except ModelFailure as failure:
        if failure.kind is ErrorKind.PROVIDER_UNREACHABLE:
            fix = "start it, or correct ANTHROPIC_BASE_URL"
            return CheckRow("problem", "model", f"{_STANDIN}, at {address} can't be reached", fix)
    return CheckRow("warning", "model", f"{_STANDIN}, at {address} answers, as seen from here")


def _small_model(settings: Settings, facts: EndpointFacts) -> str:
    """Returns the model of worker agents, the smaller of the two."""
    only = None if settings.chosen_models else facts.only_name
    return only or settings.worker_model[0]


def _unlisted_row(settings: Settings, facts: EndpointFacts) -> CheckRow | None:
    """Returns the problem of configured models that the endpoint does not list."""
    if not facts.names or (facts.only_name and not settings.chosen_models):
        return None
    models = dict.fromkeys([*settings.supervisor_model, *settings.worker_model])
    unlisted = [name for name in models if name not in facts.names]
    if not unlisted:
        return None
    lacks = "has several models, and none is named: it lists no"
    if settings.chosen_models:
        lacks = "lists no model"
    text = f"{facts.address} {lacks} {', '.join(unlisted)}; it has {facts.shown_names()}"
    fix = "set SUPERVISOR_SUPERVISOR_MODEL and SUPERVISOR_WORKER_MODEL to one of them"
    return CheckRow("problem", "models", text, fix)


def _failure_row(settings: Settings, address: str, failure: ModelFailure) -> CheckRow:
    """Returns the row of a failed call, with the remedy."""
    text = safe_line(f"{address}: {failure.message}", limits.PARAGRAPH_BYTES)
    match failure.kind:
        case ErrorKind.PROVIDER_UNREACHABLE:
            text = f"{address} can't be reached"
            fix = "check the network"
            if settings.anthropic_base_url:
                fix = "start it, or correct ANTHROPIC_BASE_URL"
        case ErrorKind.PROVIDER_AUTHENTICATION | ErrorKind.PROVIDER_BILLING:
            fix = "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run"
        case ErrorKind.MODEL_NOT_SERVED:
            fix = "correct the name of the model, or ANTHROPIC_BASE_URL"
        case ErrorKind.IDLE_TIMEOUT:
            text = (
                f"{address} gave no answer of one token within {_CALL_TIME.total_seconds():.0f} s"
            )
            fix = "it loads its model, or serves others: runs wait until it answers"
        case ErrorKind.RATE_LIMITED | ErrorKind.OVERLOADED | ErrorKind.PROVIDER_ERROR:
            return CheckRow("warning", "model", text, "runs wait until it answers")
        case _:
            fix = "check ANTHROPIC_BASE_URL"
    return CheckRow("problem", "model", text, fix)


def _traits_rows(facts: EndpointFacts, name: str) -> Iterator[CheckRow]:
    """Yields rows on the model's abilities and their consequences."""
    traits = facts.traits(name)
    _, *phrases = trait_phrases(name, traits)
    if facts.slots:
        phrases.append(f"{facts.slots} calls at a time")
    if traits.forced_tools is False:
        phrases.append("calls of tools are read from the text where it writes none")
    yield CheckRow("ok", "what it takes", ", ".join(phrases))

    if traits.window is not None and traits.window < _SMALL_WINDOW:
        window = f"a window of {traits.window:,} tokens is too small for most runs"
        text = f"{window}, and what is longer may be cut unseen"
        yield CheckRow("warning", "window", text, f"give it a larger one: {_WINDOW_OPTIONS}")


async def _speed_row(model: "AnthropicModel", name: str) -> CheckRow | None:
    """Returns a row with the duration of a run at this speed; None without a measurement."""
    try:
        speed = await _measure_speed(model, name)
    except ModelFailure:
        return None

    deadline = RunRequest(goal="?").deadline
    has = f"{deadline.total_seconds() / 60:.0f} min that a run has by default"
    takes = f"{max(1, round(speed.run.total_seconds() / 60))} min"
    rates = f"it reads {speed.reads:,.0f} and writes {speed.writes:,.1f} tokens a second now"
    text = f"{rates}: a run of three subtasks takes about {takes}"
    if speed.run <= deadline * _DEADLINE_SHARE:
        return CheckRow("ok", "speed", f"{text}, of {has}")
    hours = max(1, round(3 * speed.run.total_seconds() / 3600))
    fix = f"start runs with --deadline {hours}h, or use a smaller model"
    return CheckRow("warning", "speed", f"{text}, longer than the {has}", fix)


async def _measure_speed(model: "AnthropicModel", name: str) -> _Speed:
    """Measures the speed by two calls: a prompt that no cache has, and a short text.

    Raises ModelFailure.
    """
    from activities.model.endpoint_questions import tokens_read

    prompt = f"{secrets.token_hex(8)}{' tree' * _PROMPT_WORDS}\nSay yes."
    reply, took = await _time_call(model, _call_body(name, prompt, 1))
    reads = (tokens_read(reply) or _PROMPT_WORDS) / took

    writing = _call_body(name, "Count from 1 to 40.", _WRITTEN_TOKENS)
    reply, took = await _time_call(model, writing)
    usage = reply.get("usage")
    written = usage.get("output_tokens") if isinstance(usage, dict) else None
    return _Speed(reads, (written or _WRITTEN_TOKENS) / took)


async def _time_call(
    model: "AnthropicModel",
    body: dict[str, object],
) -> tuple[dict[str, object], float]:
    """Makes a call, and returns its reply and the seconds that it took."""
    started = time.monotonic()
    reply = await model.request_json("/v1/messages", body, _CALL_TIME)
    return reply, max(time.monotonic() - started, 1e-3)


def _call_body(name: str, text: str, tokens: int) -> dict[str, object]:
    """Returns the request of a call with one message."""
    messages = [{"role": "user", "content": text}]
    return {"model": name, "max_tokens": tokens, "messages": messages}
