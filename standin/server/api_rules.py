"""What the real API refuses with 400, so that a client that does it fails here as well."""

from fnmatch import fnmatch
from typing import Any

_Json = dict[str, Any]

_MARKS = 4  # breakpoints of one request
_WITHOUT_SAMPLING = ("claude-*-5-5", "claude-fable-5*")
_NOTES_BY_SYSTEM = ("claude-opus-5*", "claude-opus-4-8*", "claude-fable-5-[1-9]*", "claude-mythos-5-[1-9]*")


def refusal(model: str, body: _Json, messages: list[_Json]) -> str | None:
    """Returns why the API refuses the request, None if it takes it."""
    return _pairs(messages) or _sampling(model, body) or _cache_marks(body, messages) or _notes(model, messages)


def choice(body: _Json) -> str:
    """Returns the type of `tool_choice`."""
    return str((body.get("tool_choice") or {}).get("type", "auto"))


def _pairs(messages: list[_Json]) -> str | None:
    for at, message in enumerate(messages[:-1]):
        called = {b["id"] for b in message["content"] if message["role"] == "assistant" and b.get("type") == "tool_use"}
        given = {b.get("tool_use_id") for b in messages[at + 1]["content"] if b.get("type") == "tool_result"}
        if missing := ", ".join(sorted(called - given)):
            return f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}"
    return None


def _sampling(model: str, body: _Json) -> str | None:
    if not any(fnmatch(model, pattern) for pattern in _WITHOUT_SAMPLING):
        return None
    if name := next((name for name in ("temperature", "top_p", "top_k") if name in body), None):
        return f"{name} is not supported by {model}"
    if choice(body) in ("any", "tool") and "haiku" not in model:
        return f"tool_choice: forced tool use is not supported by {model}"
    return None


def _cache_marks(body: _Json, messages: list[_Json]) -> str | None:
    system = body.get("system")
    blocks = [body, *(body.get("tools") or []), *(system if isinstance(system, list) else [])]
    marks = sum("cache_control" in block for part in (blocks, *(m["content"] for m in messages)) for block in part)
    if marks > _MARKS:
        return f"A maximum of {_MARKS} blocks with cache_control may be provided. Found {marks}."
    return None


def _notes(model: str, messages: list[_Json]) -> str | None:
    roles = [*(message["role"] for message in messages), "assistant"]
    notes = [at for at, role in enumerate(roles) if role == "system"]
    if notes and model.startswith("claude-") and not any(fnmatch(model, pattern) for pattern in _NOTES_BY_SYSTEM):
        return "role 'system' is not supported on this model"
    for at in notes:
        if at == 0 or (roles[at - 1], roles[at + 1]) != ("user", "assistant"):
            return f"messages.{at}: a system message must follow a user message and end its turn"
    return None
