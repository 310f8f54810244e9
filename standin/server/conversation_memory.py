"""The memory of conversations: whether they only grow."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from standin.server.api_reply import ApiReply
from standin.server.api_request import ApiRequest, Json

_THINKING = ("thinking", "redacted_thinking")
_BEGINNING = 200  # characters of a tool's result that a client keeps
_CONVERSATIONS = 5000  # whose past is checked; older ones are forgotten


@dataclass(frozen=True)
class Prefix:
    """The start of a request: a digest of it and how many characters it has."""

    digest: str
    size: int


def prefixes(request: ApiRequest) -> list[Prefix]:
    """Returns system and tools, then a longer prefix per message; neighbours of one role count as one message."""
    head = [request.model, request.system, _blocks(request.body.get("tools") or []), request.schema]
    hashed, size, starts = hashlib.sha256(), 0, list[Prefix]()
    for part in [head, *([m["role"], _blocks(m["content"])] for m in _merged(request.messages))]:
        text = _canonical(part)
        hashed.update(text.encode("utf-8", "surrogatepass"))
        size += len(text)
        starts.append(Prefix(hashed.hexdigest(), size))
    return starts


class ConversationMemory:
    """Bounded memory of requests and replies; the oldest conversations are forgotten first."""

    def __init__(self) -> None:
        # digests of pasts, and the numbers of the replies that were given here: others come from another server
        self._conversations: OrderedDict[tuple[str, str], set[str | int]] = OrderedDict()

    def changed(self, workflow_id: str, request: ApiRequest) -> bool:
        """True if a conversation that goes on differs from its known past; unknown ones never do.

        What came after the beginning of a tool's result may be left out, and thinking with it: thinking that is sent
        must follow exactly what it followed when it was written.
        """
        pasts, known = _pasts(request), self._conversations.get(_key(workflow_id, request), set())
        last = max((at for at in range(len(pasts)) if at in known), default=None)
        if last is None or pasts[last] in known:
            return False
        thoughts = [at for at, message in enumerate(_replies(request)[: last + 1]) if _thinks(message)]
        return _pasts(_bare(request))[last] not in known or any(pasts[at] not in known for at in thoughts)

    def remember(self, workflow_id: str, request: ApiRequest, reply: ApiReply) -> None:
        """Keeps the request and its reply."""
        key = _key(workflow_id, request)
        answered = replace(request, messages=[*request.messages, {"role": "assistant", "content": reply.content}])
        pasts = _pasts(answered)
        self._conversations.setdefault(key, set()).update(pasts, _pasts(_bare(answered)), [len(pasts) - 1])
        self._conversations.move_to_end(key)
        while len(self._conversations) > _CONVERSATIONS:
            self._conversations.popitem(last=False)


def _key(workflow_id: str, request: ApiRequest) -> tuple[str, str]:
    first = _canonical(_blocks(request.messages[0]["content"]))
    return workflow_id, hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()


def _pasts(request: ApiRequest) -> list[str]:
    """The digests of the request up to each of its replies."""
    ends = zip(_merged(request.messages), prefixes(request)[1:], strict=True)
    return [prefix.digest for message, prefix in ends if message["role"] == "assistant"]


def _replies(request: ApiRequest) -> list[Json]:
    return [message for message in _merged(request.messages) if message["role"] == "assistant"]


def _thinks(message: Json) -> bool:
    return any(block.get("type") in _THINKING for block in message["content"])


def _bare(request: ApiRequest) -> ApiRequest:
    """Returns the request without thinking, and with no more than the beginnings of tools' results."""
    bare = [
        {**m, "content": [_begun(b) for b in m["content"] if b.get("type") not in _THINKING]} for m in request.messages
    ]
    return replace(request, messages=bare)


def _begun(block: Json) -> Json:
    content = block.get("content")
    return {**block, "content": content[:_BEGINNING]} if isinstance(content, str) else block


def _merged(messages: list[Json]) -> list[Json]:
    merged: list[Json] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1] = {"role": message["role"], "content": [*merged[-1]["content"], *message["content"]]}
        else:
            merged.append(message)
    return merged


def _blocks(content: list[Json]) -> list[Json]:
    """Returns blocks without cache marks, which move, and nulls, which clients add."""
    return [{k: v for k, v in block.items() if k != "cache_control" and v is not None} for block in content]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
