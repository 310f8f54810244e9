"""The body of a request, in the form that its model accepts.

A prefix is cached up to a breakpoint, of which a request may have four. One is on the system block,
which follows the tools: worker agents of a role share all of that. Two more are on the last two
user messages. The older of them is where the previous call had its last breakpoint, so its entry is
found however many blocks the turn between them added; a single breakpoint looks back over 20 blocks
only. A call that nothing continues writes no entry of its own.

JSON is asked for in one of two ways: `format` (the API constrains the text), or `text` (in words,
by a filled-in form, because small models copy a schema).
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from activities.model.port import CacheUse, ModelRequest
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.replies.filled_form import filled_form

_SCHEMA_OPTIONAL = 24  # parameters of a schema that may be left out: the API compiles no more
_SCHEMA_UNIONS = 16  # and those of several types

Rung = Literal["format", "text"]

_FORM_WORDS = "Reply with one JSON object and nothing else, filled in like this:\n"
_TEXT_WORDS = "Answer with one JSON object and nothing else. It must fit this JSON schema:\n"
_DEFAULT = re.compile(r"\{default: [^{}]*+\}")  # as the SDK writes it into a description
_TAIL_MARKS = 2
_MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
# A model's own default may be to think unseen.
_THINKING: JsonObject = {"type": "adaptive", "display": "summarized"}
# "claude-opus-5-5", "claude-haiku-5", "claude-3.5"; not "gpt-5".
_NAME = re.compile(r"claude-(?:[a-z]+-)?(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?(?!\d)")
_ADAPTIVE_SINCE = (4, 6)
# The most output of models since a version; those before count as unknown.
_OUTPUT_SINCE = (((5, 0), 128_000), ((4, 5), 64_000), ((4, 0), 32_000))


def _compiles(schema: JsonObject) -> bool:
    """True if the API compiles the schema: it limits optional fields and those of several types."""
    optional = unions = 0
    for part in _parts(schema):
        fields = part.get("properties") or {}
        optional += len(fields.keys() - set(part.get("required") or []))
        unions += "anyOf" in part or isinstance(part.get("type"), list)
    return optional <= _SCHEMA_OPTIONAL and unions <= _SCHEMA_UNIONS


def lean(schema: Any) -> Any:
    """Returns a schema without parts that are useless to a model: titles, defaults, class names."""
    if isinstance(schema, list):
        return [lean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    useless = ("title", "description") if "properties" in schema else ("title",)
    return {
        name: lean(value)
        for name, value in schema.items()
        if not isinstance(value, str) or (name not in useless and not _DEFAULT.fullmatch(value))
    }


def _parts(value: object) -> Iterator[JsonObject]:
    """Yields every object inside a schema, itself and its definitions included."""
    if isinstance(value, dict):
        yield value
        value = [*value.values()]
    for part in value if isinstance(value, list) else []:
        yield from _parts(part)


@dataclass(frozen=True)
class EndpointProfile:
    """The parts of a request that an endpoint supports for a model.

    `thinking` is adaptive thinking with a visible summary; `eager_input_streaming` streams tool
    arguments as they are written; `server_tools` are run by the provider. `most_output` is the
    maximum of output tokens, None if unknown.
    """

    thinking: bool = False
    eager_input_streaming: bool = False
    server_tools: bool = False
    effort: bool = False
    cache_control: bool = True
    most_output: int | None = None


def profile_of(
    model: str,
    without: Iterable[str] = (),
    most_output: int | None = None,
) -> EndpointProfile:
    """Returns the profile of a model, by the provider's name or a gateway's; settings override."""
    match = _NAME.search(model)
    version = (int(match["major"]), int(match["minor"] or 0)) if match else (0, 0)
    most = next((tokens for since, tokens in _OUTPUT_SINCE if version >= since), None)
    profile = EndpointProfile()
    if most is not None:
        profile = EndpointProfile(
            thinking=version >= _ADAPTIVE_SINCE,
            eager_input_streaming=True,
            server_tools=True,
            effort=version >= _ADAPTIVE_SINCE,
        )
    return replace(profile, most_output=most_output or most, **dict.fromkeys(without, False))


def is_known(model: str) -> bool:
    """True if the name of a model tells the support of its endpoint."""
    return profile_of(model).most_output is not None


def request_body(
    request: ModelRequest,
    profile: EndpointProfile,
    rung: Rung,
    *,
    shows_form: bool = False,
) -> JsonObject:
    """Returns the body; `rung` is the way to ask for JSON.

    With `shows_form`, for small models, the form is in the prompt even where the API has it.
    """
    # A model whose limit is unknown may refuse what is above it. A reply that is cut is asked for
    # again with more room.
    unknown = max(1, round(request.max_tokens * limits.UNKNOWN_OUTPUT_SHARE))
    most = min(request.max_tokens, profile.most_output or unknown)
    body: JsonObject = {
        "model": request.model,
        "max_tokens": min(most, request.room or most),
        "system": request.system,
        "messages": request.messages,
    }

    if request.tools:
        eager = profile.eager_input_streaming
        body["tools"] = [_tool_definition(tool, eager) for tool in request.tools]
        if request.concludes:
            body["tool_choice"] = {"type": "none"}

    if request.effort is not None and profile.effort:
        body["output_config"] = {"effort": request.effort}
    schema = request.output_schema
    if schema is not None:
        constrained = rung == "format" and _compiles(schema)
        if constrained:
            format_ = {"type": "json_schema", "schema": schema}
            body["output_config"] = {**body.get("output_config", {}), "format": format_}
        if shows_form or not constrained:
            body |= _asking_in_words(schema, body["system"], body["messages"])

    if profile.thinking:
        body["thinking"] = _THINKING
    return _with_breakpoints(body, request.cache if profile.cache_control else "none")


def _asking_in_words(schema: JsonObject, system: str, messages: list[JsonObject]) -> JsonObject:
    """Returns system text and messages that ask for JSON in words.

    The form is at the end, which models follow best. A schema without a form is added to the system
    text.
    """
    form = filled_form(schema)
    if form is None:
        return {"system": f"{system}\n\n{_TEXT_WORDS}{json.dumps(schema, ensure_ascii=False)}"}
    *before, last = messages
    asked = {"type": "text", "text": f"{_FORM_WORDS}{form}"}
    return {"messages": [*before, {**last, "content": [*last["content"], asked]}]}


def _tool_definition(tool: JsonObject, eager: bool) -> JsonObject:
    """Returns a tool's definition for the API; with `eager` its arguments are streamed as written.

    A tool of the provider has no schema.
    """
    if "input_schema" not in tool:
        return tool
    definition = {**tool, "input_schema": lean(tool["input_schema"])}
    if eager:
        definition["eager_input_streaming"] = True
    return definition


def _with_breakpoints(body: JsonObject, use: CacheUse) -> JsonObject:
    """Returns a copy of the body with its breakpoints; the shared blocks stay unchanged."""
    marked = dict(body)
    if use != "none":
        marked["system"] = [{"type": "text", "text": body["system"], **_MARK}]
    if use == "conversation":
        of_user = [at for at, message in enumerate(body["messages"]) if message["role"] == "user"]
        marked["messages"] = list(body["messages"])
        for at in of_user[-_TAIL_MARKS:]:
            message = body["messages"][at]
            *before, last = message["content"]
            marked["messages"][at] = {**message, "content": [*before, {**last, **_MARK}]}
    return marked
