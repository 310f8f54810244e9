"""Questions to an endpoint about itself: its models, their windows, its support for requests.

Many servers accept parts of the Messages API and ignore them silently, so they are tried, with
requests of a few tokens. Lists and windows are read where each server keeps them; sources are in
docs/operate.md. Missing answers stay unknown: nothing here raises an error.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from activities.model.port import ModelEndpoint, ModelFailure
from activities.model.request_body import is_known
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.provider.endpoint_facts import (
    NAMES_KEPT,
    EndpointFacts,
    ModelTraits,
)

_LIST_TIME = timedelta(seconds=5)  # of a list: no model has to work for it
# Of a request of a few tokens: it waits behind running ones, and a model may be loaded.
_CALL_TIME = timedelta(minutes=3)
_LONG_TIME = timedelta(minutes=10)  # of the long prompt: it is read at 8 tokens a second at least

_FEW_TOKENS = 60  # enough for a short JSON object, and to see that a greeting is none
_COLOURS = ("red", "green")
_FORM: JsonObject = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": [*_COLOURS]},
        "number": {"type": "integer"},
    },
    "required": ["colour", "number"],
    "additionalProperties": False,
}
_TOOL: JsonObject = {
    "name": "report_colour",
    "description": "Reports a colour.",
    "input_schema": {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
    },
}
_GREETING = "Say good morning."
_THINKING_TOKENS = 1024  # the least that the API takes

DEFAULT_WINDOW = 4096  # Ollama's on most machines
# A word is a token: with the template around it more than that window, less than the next size.
_LONG_WORDS = 4600
_CUT_SHARE = 0.95  # of them that are read if nothing was cut
# A line of the parameters that Ollama lists: "num_ctx    8192".
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})", re.MULTILINE)

NOT_YET = (
    ErrorKind.PROVIDER_UNREACHABLE,
    ErrorKind.PROVIDER_ERROR,
    ErrorKind.OVERLOADED,
    ErrorKind.IDLE_TIMEOUT,
)
"""Failures of an endpoint that starts, or loads its model."""


async def list_models(endpoint: ModelEndpoint) -> EndpointFacts:
    """Returns the names of the models with their windows, as far as the endpoint lists them.

    `asked` is False if it does not answer.
    """
    try:
        reply = await endpoint.request_json("/v1/models", None, _LIST_TIME)
    except ModelFailure as failure:
        return EndpointFacts(address=endpoint.endpoint, asked=failure.kind not in NOT_YET)
    entries = [entry for entry in _list(reply.get("data")) if isinstance(entry.get("id"), str)]
    shown = entries[:NAMES_KEPT]
    windows = {entry["id"]: _window_in(entry) for entry in shown}
    is_llama_cpp = any(entry.get("owned_by") == "llamacpp" for entry in entries)
    return EndpointFacts(
        address=endpoint.endpoint,
        asked=True,
        names=[entry["id"] for entry in shown],
        models={name: ModelTraits(window=window) for name, window in windows.items() if window},
        slots=await _slots(endpoint) if is_llama_cpp else None,
    )


async def probe_traits(
    endpoint: ModelEndpoint,
    model: str,
    known: ModelTraits,
) -> AsyncIterator[ModelTraits]:
    """Yields the traits of a model after each request that tests one; `known` ones are not tested.

    The provider's own models are known by their names.
    """
    traits = known
    yield traits
    if is_known(model):
        return
    for name, find_out in _QUESTIONS.items():
        if getattr(traits, name) is None:
            traits = traits.model_copy(update={name: await find_out(endpoint, model)})
            yield traits


async def probe_window(endpoint: ModelEndpoint, model: str) -> int | None:
    """Returns DEFAULT_WINDOW if a slightly longer prompt is cut or refused; None if it is read."""
    words = "Reply with the word yes.\n\n" + " tree" * _LONG_WORDS
    body = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": words}]}
    try:
        reply = await endpoint.request_json("/v1/messages", body, _LONG_TIME)
    except ModelFailure as failure:
        return DEFAULT_WINDOW if failure.kind is ErrorKind.CONTEXT_OVERFLOW else None
    read = tokens_read(reply)
    return DEFAULT_WINDOW if 0 < read < _LONG_WORDS * _CUT_SHARE else None


def tokens_read(reply: JsonObject) -> int:
    """Returns the endpoint's count of the prompt's tokens; 0 if it does not count."""
    usage = reply.get("usage")
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(count for count in counts if isinstance(count, int))


async def _keeps_to_schemas(endpoint: ModelEndpoint, model: str) -> bool | None:
    form = {"type": "json_schema", "schema": _FORM}
    reply = await _probe(endpoint, model, output_config={"format": form})
    if not isinstance(reply, dict):
        return reply
    try:
        value = json.loads(_text(reply))
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("colour") in _COLOURS


async def _calls_a_tool(endpoint: ModelEndpoint, model: str) -> bool | None:
    choice = {"type": "tool", "name": _TOOL["name"]}
    reply = await _probe(endpoint, model, tools=[_TOOL], tool_choice=choice)
    if not isinstance(reply, dict):
        return reply
    return any(block.get("type") == "tool_use" for block in _blocks(reply))


async def _thinks(endpoint: ModelEndpoint, model: str) -> bool | None:
    thinking = {"type": "enabled", "budget_tokens": _THINKING_TOKENS}
    reply = await _probe(endpoint, model, thinking=thinking)
    if not isinstance(reply, dict):
        return reply
    has_block = any(block.get("type") == "thinking" for block in _blocks(reply))
    return has_block or _text(reply).startswith("<think")


async def _probe(endpoint: ModelEndpoint, model: str, **parts: Any) -> JsonObject | bool | None:
    """Sends a greeting with some parts of a request.

    Returns the reply, or False if they are refused. None if there is no reply.
    """
    greeting = {"role": "user", "content": _GREETING}
    body = {"model": model, "max_tokens": _FEW_TOKENS, "messages": [greeting], **parts}
    try:
        return await endpoint.request_json("/v1/messages", body, _CALL_TIME)
    except ModelFailure as failure:
        refused = failure.kind in (ErrorKind.PROVIDER_REJECTED, ErrorKind.MODEL_NOT_SERVED)
        return False if refused else None


async def _slots(endpoint: ModelEndpoint) -> int | None:
    """Returns the number of calls that llama.cpp's server handles at once."""
    return _number((await _page(endpoint, "/props")).get("total_slots"))


async def _window_elsewhere(endpoint: ModelEndpoint, model: str) -> int | None:
    """Returns the window by the server's own API, whichever that is."""
    for path, body, read in _OWN_APIS:
        sent = None if body is None else {**body, "model": model}
        window = read(await _page(endpoint, path, sent), model)
        if window:
            return window
    return None


async def _page(endpoint: ModelEndpoint, path: str, body: JsonObject | None = None) -> JsonObject:
    try:
        return await endpoint.request_json(path, body, _LIST_TIME)
    except ModelFailure:
        return {}


def _in_props(page: JsonObject, model: str) -> int | None:
    settings = page.get("default_generation_settings")
    return _number(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _in_ps(page: JsonObject, model: str) -> int | None:
    """Returns the actual window of a loaded model, which may be below its maximum."""
    for entry in _list(page.get("models")):
        if model in (entry.get("name"), entry.get("model")):
            return _number(entry.get("context_length"))
    return None


def _in_show(page: JsonObject, model: str) -> int | None:
    set_by_hand = _NUM_CTX.search(str(page.get("parameters", "")))
    return int(set_by_hand[1]) if set_by_hand else None


def _in_loaded_instances(page: JsonObject, model: str) -> int | None:
    for entry in _list(page.get("models")):
        for instance in _list(entry.get("loaded_instances")):
            config = instance.get("config")
            if model in (entry.get("key"), instance.get("id")) and isinstance(config, dict):
                return _number(config.get("context_length"))
    return None


def _in_model_info(page: JsonObject, model: str) -> int | None:
    for entry in _list(page.get("data")):
        info = entry.get("model_info")
        if entry.get("model_name") == model and isinstance(info, dict):
            return _number(info.get("max_input_tokens"))
    return None


_OWN_APIS: Sequence[tuple[str, JsonObject | None, Callable[[JsonObject, str], int | None]]] = (
    ("/props", None, _in_props),  # llama.cpp
    ("/api/ps", None, _in_ps),  # Ollama: models that are loaded
    ("/api/show", {}, _in_show),  # Ollama: what a Modelfile sets
    ("/api/v1/models", None, _in_loaded_instances),  # LM Studio
    ("/model/info", None, _in_model_info),  # LiteLLM
)


_QUESTIONS: Mapping[str, Callable[[ModelEndpoint, str], Awaitable[object]]] = {
    "schemas": _keeps_to_schemas,
    "forced_tools": _calls_a_tool,
    "thinking": _thinks,
    "window": _window_elsewhere,  # after the calls: Ollama says it of a model that is loaded
}
"""The test of each trait, the most important one first."""


def _window_in(entry: JsonObject) -> int | None:
    """Returns the window in an entry of a model list of llama.cpp, vLLM or the provider."""
    meta = entry.get("meta")
    of_slot = _number(meta.get("n_ctx")) if isinstance(meta, dict) else None
    return of_slot or _number(entry.get("max_model_len")) or _number(entry.get("max_input_tokens"))


def _number(value: object) -> int | None:
    """Returns a number that an endpoint gives; None for anything else that it may send."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < 10**9 else None


def _list(value: object) -> list[JsonObject]:
    """Returns the objects in a list; an endpoint may send anything else."""
    if not isinstance(value, list):
        return []
    return [part for part in value if isinstance(part, dict)]


def _blocks(reply: JsonObject) -> list[JsonObject]:
    return _list(reply.get("content"))


def _text(reply: JsonObject) -> str:
    texts = [block.get("text", "") for block in _blocks(reply) if block.get("type") == "text"]
    return "".join(map(str, texts)).strip()
