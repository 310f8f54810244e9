"""What the real API refuses, so that a client that does it fails here as well: with 400, and with 429 if asked to."""

import math
import re
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from typing import Any

from pydantic import Field

from supervision.contract.base import StrictModel

_Json = dict[str, Any]

_MARKS = 4  # breakpoints of one request
_OPTIONAL = 24  # parameters of one request's schemas that may be left out
_UNIONS = 16  # and those of several types
_NOTES_BY_SYSTEM = ("claude-opus-5*", "claude-opus-4-8*", "claude-fable-5-[1-9]*", "claude-mythos-5-[1-9]*")
_WITHOUT_ADAPTIVE = re.compile(r"claude-(3|instant|\w+-4-[0-5](\D|$)|\w+-4-\d{8})")


def refusal(model: str, body: _Json, messages: list[_Json]) -> str | None:
    """Returns why the API refuses the request, None if it takes it."""
    checks = (_old_habit(model, body), _cache_marks(body, messages), _notes(model, messages), _schema(body))
    return next((problem for problem in checks if problem), None)


def choice(body: _Json) -> str:
    """Returns the type of `tool_choice`."""
    return str((body.get("tool_choice") or {}).get("type", "auto"))


def _old_habit(model: str, body: _Json) -> str | None:
    if _WITHOUT_ADAPTIVE.match(model) and (body.get("thinking") or {}).get("type") == "adaptive":
        return "adaptive thinking is not supported on this model"
    if not (fnmatch(model, "claude-*-5-5") or fnmatch(model, "claude-fable-5*")):
        return None
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            return f"{name} is not supported by {model}"
    if choice(body) in ("any", "tool") and "haiku" not in model:
        return f"tool_choice: forced tool use is not supported by {model}"
    return None


def _cache_marks(body: _Json, messages: list[_Json]) -> str | None:
    system = body.get("system")
    blocks = [*(body.get("tools") or []), *(system if isinstance(system, list) else [])]
    blocks += [block for message in messages for block in message["content"]]
    marks = [mark.get("ttl", "5m") for block in [*blocks, body] if (mark := block.get("cache_control"))]
    if len(marks) > _MARKS:
        return f"A maximum of {_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
    if marks != sorted(marks):  # "1h" comes before "5m"
        return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    return None


def _notes(model: str, messages: list[_Json]) -> str | None:
    roles = [message["role"] for message in messages]
    if "system" not in roles:
        return None
    if model.startswith("claude-") and not any(fnmatch(model, pattern) for pattern in _NOTES_BY_SYSTEM):
        return "role 'system' is not supported on this model"
    for at, role in enumerate(roles):
        follows = roles[at + 1] if at + 1 < len(roles) else "assistant"
        if role == "system" and (at == 0 or roles[at - 1] != "user" or follows != "assistant"):
            return f"messages.{at}: a system message must follow a user message and end its turn"
    return None


def _schema(body: _Json) -> str | None:
    schemas = [((body.get("output_config") or {}).get("format") or {}).get("schema")]
    schemas += [tool.get("input_schema") for tool in body.get("tools") or [] if tool.get("strict")]
    parts = [part for schema in schemas for part in _parts(schema)]
    optional = sum(len(set(part.get("properties") or {}) - set(part.get("required") or [])) for part in parts)
    unions = sum("anyOf" in part or isinstance(part.get("type"), list) for part in parts)
    if optional > _OPTIONAL:
        return (
            f"Schemas contains too many optional parameters ({optional}), which would make grammar compilation "
            f"inefficient. Reduce the number of optional parameters in your tool schemas (limit: {_OPTIONAL})."
        )
    if unions > _UNIONS:
        return (
            f"Schemas contains too many parameters with union types ({unions} parameters with type arrays or "
            f"anyOf). Reduce the number of nullable or union-typed parameters (limit: {_UNIONS})."
        )
    return None


def _parts(schema: Any) -> Iterator[_Json]:
    """Yields every schema inside a schema, itself included."""
    if not isinstance(schema, dict):
        return
    yield schema
    named = [*(schema.get("properties") or {}).values(), *(schema.get("$defs") or {}).values()]
    for part in [*named, schema.get("items"), *(schema.get("anyOf") or [])]:
        yield from _parts(part)


class RequestLimit(StrictModel):
    """So many requests a minute, `burst_seconds` of them at once after a quiet time; refusals have `retry-after`."""

    per_minute: float = Field(gt=0)
    burst_seconds: float = Field(default=5, ge=0)


class RequestBucket:
    """The requests that may still come under a limit, which may change at any time; all models share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._level = math.inf
        self._at = clock()

    def take(self, limit: RequestLimit) -> float:
        """Returns 0 if a request may come now, else the seconds until one may."""
        now, rate = self._clock(), limit.per_minute / 60
        capacity = max(1.0, rate * limit.burst_seconds)
        self._level = min(capacity, self._level + (now - self._at) * rate)
        self._at = now
        if self._level < 1:
            return (1 - self._level) / rate
        self._level -= 1
        return 0.0
