"""The body of a request: what a call asks for, in the form that its model takes.

A prefix is cached up to a breakpoint, of which a request may have four. One stands on the system block, which tools
precede: worker agents of a role share all of that. Two more stand on the last two messages of the user's side. The
older of them is where the call before this one had its last breakpoint, so its entry is found however many blocks the
turn between them added; a breakpoint alone looks back over 20 blocks only. A call that nothing continues writes no
entry of its own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from activities.model import structured
from activities.model.port import CacheUse, Json, ModelRequest
from activities.model.structured import Rung
from supervision.base import limits

_TAIL_MARKS = 2
_MARK: Json = {"cache_control": {"type": "ephemeral"}}
_THINKING: Json = {"type": "adaptive", "display": "summarized"}  # a model's own default may be to think unseen
_NAME = re.compile(
    r"claude-(?:(?P<family>opus|sonnet|haiku|fable|mythos)-)?(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?(?!\d)"
)
_ADAPTIVE_SINCE = (4, 6)
_OUTPUT_SINCE = (
    ((5, 0), 128_000),
    ((4, 5), 64_000),
    ((4, 0), 32_000),
    ((3, 7), 64_000),
    ((3, 5), 8_192),
    ((0, 0), 4_096),
)


@dataclass(frozen=True)
class EndpointProfile:
    """The parts of a request that an endpoint takes for a model; a setting names those that it lacks.

    `thinking` is adaptive thinking with a visible summary; `eager_input_streaming` streams tool arguments as they are
    written; `server_tools` are run by the provider. `most_output` is None where it is unknown.
    """

    thinking: bool = False
    eager_input_streaming: bool = False
    server_tools: bool = False
    effort: bool = False
    cache_control: bool = True
    most_output: int | None = None


def profile_of(model: str, without: Iterable[str] = (), most_output: int | None = None) -> EndpointProfile:
    """Returns the profile of a model, named the provider's way or a gateway's (`anthropic/claude-...`).

    The parts of `without` are left out; `most_output` goes before what is known of the model.
    """
    known = _known(model)
    return replace(known, most_output=most_output or known.most_output, **dict.fromkeys(without, False))


@lru_cache(limits.KNOWN_MODELS)
def _known(model: str) -> EndpointProfile:
    match = _NAME.search(model)
    if match is None:
        return EndpointProfile()
    version = int(match["major"]), int(match["minor"] or 0)
    family = match["family"] or ""
    most = next(tokens for since, tokens in _OUTPUT_SINCE if version >= since)
    if family == "sonnet" and version in ((4, 0), (4, 6)):
        most = 64_000
    return EndpointProfile(
        thinking=version >= _ADAPTIVE_SINCE,
        eager_input_streaming=version >= (4, 0),
        server_tools=version >= (4, 0),
        effort=version >= ((4, 5) if family == "opus" else _ADAPTIVE_SINCE),
        most_output=most,
    )


def request_body(request: ModelRequest, profile: EndpointProfile, rung: Rung) -> Json:
    """Returns the body; `rung` is how JSON is asked for."""
    # A model whose limit is unknown may refuse what is above it. A reply that is cut is asked for again with more room.
    unknown = max(1, round(request.max_tokens * limits.UNKNOWN_OUTPUT_SHARE))
    most = min(request.max_tokens, profile.most_output or unknown)
    body: Json = {
        "model": request.model,
        "max_tokens": min(most, request.room or most),
        "messages": request.messages,
    }
    if request.system:
        body["system"] = request.system
    if request.tools:
        body["tools"] = [_sent(tool, profile.eager_input_streaming) for tool in request.tools]
        if request.concludes:
            body["tool_choice"] = {"type": "none"}
    if request.effort is not None and profile.effort:
        body["output_config"] = {"effort": request.effort}
    if request.output_schema is not None:
        body = structured.ask(body, request.output_schema, rung)
    if profile.thinking and (body.get("tool_choice") or {}).get("type") != "tool":  # the API refuses both at once
        body["thinking"] = _THINKING
    return _marked(body, request.cache if profile.cache_control else "none")


def _sent(tool: Json, eager: bool) -> Json:
    """Returns a tool's definition; with `eager` its arguments come as they are written, not one whole value at a time.

    A tool of the provider's own has no schema, and stays as it is.
    """
    if "input_schema" not in tool:
        return tool
    sent = {**tool, "input_schema": structured.lean(tool["input_schema"])}
    return {**sent, "eager_input_streaming": True} if eager else sent


def _marked(body: Json, use: CacheUse) -> Json:
    """Returns the request body with its breakpoints, as a copy: blocks belong to conversations, which are shared."""
    marked = dict(body)
    if use != "none" and body.get("system"):
        marked["system"] = [{"type": "text", "text": body["system"], **_MARK}]
    elif use != "none" and (tools := body.get("tools")):
        marked["tools"] = _with_mark(tools)
    if use == "conversation":
        of_user = [at for at, message in enumerate(body["messages"]) if message["role"] == "user"]
        marked["messages"] = list(body["messages"])
        for at in of_user[-_TAIL_MARKS:]:
            message = body["messages"][at]
            marked["messages"][at] = {**message, "content": _with_mark(message["content"])}
    return marked


def _with_mark(blocks: list[Json]) -> list[Json]:
    return [*blocks[:-1], {**blocks[-1], **_MARK}]
