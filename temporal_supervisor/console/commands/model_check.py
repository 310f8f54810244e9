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

# What a supervised run of three subtasks read anew and wrote, of 26,300 tokens in 15 calls: the demo's goal with a
# model of 1.5 billion parameters behind a cache.
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
        fix = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for a compatible endpoint, where Workers run"
        yield CheckRow("warning", "model", text, fix)
        return
    if path := wrong_path(settings):
        yield CheckRow("problem", "model", path.problem, path.fix)
        return
    from activities.model.anthropic_model import AnthropicModel  # loads the provider's SDK: a second

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
    if settings.model == "standin":
        yield await _standin_row(model, address)
        return
    if unreachable := await _unreachable_row(settings, model, address):
        yield unreachable
        return
    facts = await _facts(settings, model)
    if unlisted := _unlisted_row(settings, facts):
        yield unlisted
        return
    name = _small_model(settings, facts)
    called = await _try_call(settings, model, address, name)
    yield called
    if called.level != "ok" or not settings.anthropic_base_url:
        return
    for row in _traits_rows(facts, name):
        yield row
    if (speed := await _speed_row(model, name)) is not None:
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


async def _try_call(settings: Settings, model: "AnthropicModel", address: str, name: str) -> CheckRow:
    """Makes one real call, of one token, and returns its row."""
    started = time.monotonic()
    try:
        await model.request_json("/v1/messages", _call_body(name, "Say yes.", 1), _CALL_TIME)
    except ModelFailure as failure:
        return _failure_row(settings, address, failure)
    took = time.monotonic() - started
    return CheckRow("ok", "model", f"{address} answers as {name}, after {took:.1f} s, as seen from here")


async def _facts(settings: Settings, model: "AnthropicModel") -> EndpointFacts:
    from activities.model.endpoint_probe import ENDPOINTS_FILE, EndpointMemory, EndpointProbe

    memory = EndpointMemory(cache_dir() / ENDPOINTS_FILE)
    probe = EndpointProbe(model if settings.asks_endpoint else None, settings.chosen_models, memory)
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
    which = "lists no model" if settings.chosen_models else "has several models, and none is named: it lists no"
    text = f"{facts.address} {which} {', '.join(unlisted)}; it has {facts.shown_names()}"
    fix = "set SUPERVISOR_SUPERVISOR_MODEL and SUPERVISOR_WORKER_MODEL to one of them"
    return CheckRow("problem", "models", text, fix)


def _failure_row(settings: Settings, address: str, failure: ModelFailure) -> CheckRow:
    """Returns the row of a failed call, with the remedy."""
    text = safe_line(f"{address}: {failure.message}", limits.PARAGRAPH_BYTES)
    match failure.kind:
        case ErrorKind.PROVIDER_UNREACHABLE:
            text = f"{address} can't be reached"
            fix = "start it, or correct ANTHROPIC_BASE_URL" if settings.anthropic_base_url else "check the network"
        case ErrorKind.PROVIDER_AUTHENTICATION | ErrorKind.PROVIDER_BILLING:
            fix = "check ANTHROPIC_API_KEY and what the key may do, here and where Workers run"
        case ErrorKind.MODEL_NOT_SERVED:
            fix = "correct the name of the model, or ANTHROPIC_BASE_URL"
        case ErrorKind.IDLE_TIMEOUT:
            text = f"{address} gave no answer of one token within {_CALL_TIME.total_seconds():.0f} s"
            fix = "it loads its model, or serves others: runs wait until it answers"
        case ErrorKind.RATE_LIMITED | ErrorKind.OVERLOADED | ErrorKind.PROVIDER_ERROR:
            return CheckRow("warning", "model", text, "runs wait until it answers")
        case _:
            fix = "check ANTHROPIC_BASE_URL"
    return CheckRow("problem", "model", text, fix)


def _traits_rows(facts: EndpointFacts, name: str) -> Iterator[CheckRow]:
    """Yields rows on the model's abilities and their consequences."""
    traits = facts.traits(name)
    _, *words = trait_phrases(name, traits)
    slots = [f"{facts.slots} calls at a time"] if facts.slots else []
    calls = ["calls of tools are read from the text where it writes none"] if traits.forced_tools is False else []
    yield CheckRow("ok", "what it takes", ", ".join([*words, *slots, *calls]))
    if traits.window is not None and traits.window < _SMALL_WINDOW:
        text = f"a window of {traits.window:,} tokens is too small for most runs, and what is longer may be cut unseen"
        fix = "give it a larger one: Ollama by OLLAMA_CONTEXT_LENGTH=32768, llama.cpp by -c, vLLM by --max-model-len"
        yield CheckRow("warning", "window", text, fix)


async def _speed_row(model: "AnthropicModel", name: str) -> CheckRow | None:
    """Returns a row with the duration of a run at this speed; None without a measurement."""
    try:
        speed = await _measure_speed(model, name)
    except ModelFailure:
        return None
    deadline = RunRequest(goal="?").deadline
    minutes = max(1, round(speed.run.total_seconds() / 60))
    rates = f"it reads {speed.reads:,.0f} and writes {speed.writes:,.1f} tokens a second now"
    text = f"{rates}: a run of three subtasks takes about {minutes} min"
    if speed.run <= deadline * _DEADLINE_SHARE:
        return CheckRow("ok", "speed", f"{text}, of {deadline.total_seconds() / 60:.0f} min that a run has by default")
    longer = f"--deadline {max(1, round(3 * speed.run.total_seconds() / 3600))}h"
    text = f"{text}, longer than the {deadline.total_seconds() / 60:.0f} min that a run has by default"
    return CheckRow("warning", "speed", text, f"start runs with {longer}, or use a smaller model")


async def _measure_speed(model: "AnthropicModel", name: str) -> _Speed:
    """Measures the speed by two calls: a prompt that no cache has, and a short text.

    Raises ModelFailure.
    """
    prompt = f"{secrets.token_hex(8)}{' tree' * _PROMPT_WORDS}\nSay yes."
    reply, took = await _time_call(model, _call_body(name, prompt, 1))
    from activities.model.endpoint_questions import tokens_read

    reads = (tokens_read(reply) or _PROMPT_WORDS) / took
    reply, took = await _time_call(model, _call_body(name, "Count from 1 to 40.", _WRITTEN_TOKENS))
    usage = reply.get("usage")
    written = usage.get("output_tokens") if isinstance(usage, dict) else None
    return _Speed(reads, (written or _WRITTEN_TOKENS) / took)


async def _time_call(model: "AnthropicModel", body: dict[str, object]) -> tuple[dict[str, object], float]:
    started = time.monotonic()
    reply = await model.request_json("/v1/messages", body, _CALL_TIME)
    return reply, max(time.monotonic() - started, 1e-3)


def _call_body(name: str, text: str, tokens: int) -> dict[str, object]:
    return {"model": name, "max_tokens": tokens, "messages": [{"role": "user", "content": text}]}
