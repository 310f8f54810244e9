"""Where a request gets its cache breakpoints, at most four in all.

A prefix is cached up to a breakpoint. One stands on the system block, which tools precede: worker agents of a role
share all of that. Two more stand on the last two messages of the user's side. The older of them is where the call
before this one had its last breakpoint, so its entry is found however many blocks the turn between them added; a
breakpoint alone looks back over 20 blocks only. A call that nothing continues writes no entry of its own.
"""

from typing import Any

from activities.model.port import CacheUse, Json

_TAIL_MARKS = 2


def marked(body: Json, use: CacheUse, *, long: bool) -> Json:
    """Returns the request body with its breakpoints; `long` keeps entries for an hour instead of five minutes."""
    if use == "none":
        return body
    mark: Json = {"cache_control": {"type": "ephemeral", **({"ttl": "1h"} if long else {})}}
    extended = _with_prefix(body, mark)
    if use == "conversation":
        extended["messages"] = _with_tail(body["messages"], mark)
    return extended


def shared_prefix(body: Json) -> list[Any]:
    """Returns what a request shares with others of its role: tools and system."""
    return [body.get("tools") or [], body.get("system") or ""]


def _with_prefix(body: Json, mark: Json) -> Json:
    if body.get("system"):
        return {**body, "system": [{"type": "text", "text": body["system"], **mark}]}
    if tools := body.get("tools"):
        return {**body, "tools": [*tools[:-1], {**tools[-1], **mark}]}
    return dict(body)


def _with_tail(messages: list[Json], mark: Json) -> list[Json]:
    of_user = [at for at, message in enumerate(messages) if message["role"] == "user" and message["content"]]
    extended = list(messages)
    for at in of_user[-_TAIL_MARKS:]:
        extended[at] = _with_mark(messages[at], mark)
    return extended


def _with_mark(message: Json, mark: Json) -> Json:
    """Returns a copy: the blocks belong to the conversation, whose entries are shared."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [*blocks[:-1], {**blocks[-1], **mark}]}
