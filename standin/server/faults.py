"""Scripted behaviour: the faults and replies that a configuration asks for, request by request."""

import json
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from standin.server.api_reply import ApiReply, json_reply, limited, output_tokens, text_reply, tool_block
from standin.server.api_request import Json
from standin.server.api_rules import RequestLimit
from supervision.contract.base import StrictModel

_WINDOWS = {"claude-[23]*": 200_000, "claude-*-4-[0-5]*": 200_000, "*": 1_000_000}
_REFUSED = {"type": "refusal", "category": None, "explanation": "scripted"}


class SseFault(StrictModel):
    """An `error` event in the stream, after so many events."""

    type: str = "overloaded_error"
    message: str = "scripted"
    after: int = 1


class Fault(StrictModel):
    """What goes wrong with a reply, or the reply itself. Several may be combined; times are in milliseconds.

    `cut_after` drops the connection after so many events, `eof_after` ends the stream cleanly there,
    `stall_after` falls silent there, for `stall_ms` or until the client leaves. `garbage` is a body that no client
    understands.
    """

    status: int | None = None
    type: str | None = None
    message: str = "scripted"
    details: dict[str, Any] | None = None
    headers: dict[str, str] = {}
    body: str | None = None
    delay_ms: float = 0
    chunk_delay_ms: float | None = None
    cut_after: int | None = None
    eof_after: int | None = None
    stall_after: int | None = None
    stall_ms: float | None = None
    pings: bool = False
    sse_error: SseFault | None = None
    garbage: str | None = Field(default=None, pattern="^(html|empty|json|broken_json)$")
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None
    reply: dict[str, Any] | str | None = None
    reply_text: str | None = None
    reply_json: Any = None
    replies: list[dict[str, Any] | str] = []

    @property
    def breaks(self) -> bool:
        """True if the client gets no whole message."""
        stalled = self.stall_after if self.stall_ms is None else None
        return any(one is not None for one in (self.cut_after, self.eof_after, stalled, self.sse_error, self.garbage))


class RequestPattern(StrictModel):
    """Which requests: globs on the call header and the model; the first `times` after the first `after`."""

    call: str = "*"
    model: str = "*"
    times: int | None = None
    after: int = 0


class FaultRule(StrictModel):
    """A fault for the requests that match."""

    match: RequestPattern = RequestPattern()
    fault: Fault


class ServerConfig(StrictModel):
    """The whole configuration. `append_only` refuses conversations whose past has changed.

    `windows` are the tokens that models take at once, by name or pattern, before those of the API's own models.
    `models` are further fields of the list of models, by name or pattern; null is a model that the list does not have.
    """

    latency_ms: float | None = None
    chunk_delay_ms: float = 0
    delta_chars: int = Field(default=24, ge=1)  # of text in one stream event: small, so that streams have many
    append_only: bool = True
    require_key: str | None = None
    limit: RequestLimit | None = None
    windows: dict[str, int] = {}
    models: dict[str, dict[str, Any] | None] = {}
    rules: list[FaultRule] = []

    def listed(self, model: str) -> Json | None:
        """Returns what the list of models has of this one."""
        further = next((fields for name, fields in self.models.items() if fnmatchcase(model, name)), {})
        if further is None:
            return None
        own = {"type": "model", "id": model, "display_name": model, "max_input_tokens": self.window(model)}
        return {**own, "lifecycle": "active", **further}

    def window(self, model: str) -> int:
        """Returns how many tokens a prompt and its reply may have together."""
        known = (*self.windows.items(), *_WINDOWS.items())
        return next(tokens for name, tokens in known if fnmatchcase(model, name))


class BadConfig(ValueError):
    """A configuration that is not understood."""


def parse_config(data: str | bytes) -> ServerConfig:
    """Returns the configuration in `data`; BadConfig says what is wrong with it."""
    try:
        return ServerConfig.model_validate(json.loads(data))
    except ValidationError as error:
        first = error.errors()[0]
        raise BadConfig(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except ValueError as error:
        raise BadConfig(f"not JSON: {error}") from error


@dataclass
class FaultScript:
    """A configuration in use: counts which rules have matched; read again when its file has changed."""

    path: Path | None = None
    config: ServerConfig = field(default_factory=ServerConfig)
    usual_latency_ms: float = 0
    _matches: dict[int, int] = field(default_factory=dict)
    _stamp: tuple[int, int] = (0, 0)

    @property
    def latency_ms(self) -> float:
        """The wait before each reply."""
        return self.usual_latency_ms if self.config.latency_ms is None else self.config.latency_ms

    def refresh(self) -> None:
        """Reads the file if it has changed. Raises BadConfig and OSError; then the old one stays in use."""
        if self.path is None:
            return
        stat = self.path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        if stamp != self._stamp:
            self._stamp = stamp
            self.replace(parse_config(self.path.read_bytes()))

    def replace(self, config: ServerConfig) -> None:
        """Puts another configuration in force, all counters at zero."""
        self.config = config
        self._matches.clear()

    def fault(self, call: str, model: str) -> Fault | None:
        """The fault of the first rule that matches and is not used up; of `replies` the one whose turn it is."""
        for at, rule in enumerate(self.config.rules):
            if not (fnmatchcase(call, rule.match.call) and fnmatchcase(model, rule.match.model)):
                continue
            count = self._matches[at] = self._matches.get(at, 0) + 1
            turn = count - rule.match.after
            if turn >= 1 and (rule.match.times is None or turn <= rule.match.times):
                replies = rule.fault.replies
                now = {"reply": replies[min(turn, len(replies)) - 1]} if replies else {}
                return rule.fault.model_copy(update=now)
        return None


def scripted(fault: Fault) -> ApiReply | None:
    """Returns the reply that a fault dictates, None if it dictates none."""
    if isinstance(fault.reply, str):
        return text_reply(fault.reply)
    if fault.reply is not None:
        return _verbatim(fault.reply)
    if fault.reply_text is not None:
        return text_reply(fault.reply_text)
    return json_reply(fault.reply_json) if fault.reply_json is not None else None


def altered(reply: ApiReply, fault: Fault) -> ApiReply:
    """Returns the reply with the fault's stop reason: a refusal is empty, `max_tokens` keeps the first half."""
    if fault.stop_reason is None:
        return reply
    if fault.stop_reason == "refusal":
        return ApiReply([], "refusal", fault.stop_details or _REFUSED)
    if fault.stop_reason == "max_tokens":
        return limited(reply, max(1, output_tokens(reply) // 2))
    return replace(reply, stop_reason=fault.stop_reason, stop_details=fault.stop_details)


def _verbatim(reply: Json) -> ApiReply:
    if "reply_text" in reply:
        return text_reply(str(reply["reply_text"]))
    if "reply_json" in reply:
        return json_reply(reply["reply_json"])
    content = [_with_id(block) for block in reply.get("content", [])]
    calls = any(block.get("type") == "tool_use" for block in content)
    stop = reply.get("stop_reason", "tool_use" if calls else "end_turn")
    return ApiReply(content, stop, reply.get("stop_details"), reply.get("usage"))


def _with_id(block: Json) -> Json:
    needs = block.get("type") == "tool_use" and not block.get("id")
    return {**tool_block(block["name"], block.get("input", {})), **block} if needs else block
