"""The memory of conversations: whether they only grow."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from standin.server.api_reply import ApiReply
from standin.server.api_request import ApiRequest, Json

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
        self._conversations: OrderedDict[tuple[str, str], set[str]] = OrderedDict()

    def changed(self, workflow_id: str, request: ApiRequest) -> bool:
        """True if a conversation that goes on differs from its known past; unknown ones never do."""
        pasts = _pasts(request)
        known = self._conversations.get(_key(workflow_id, request))
        return bool(pasts) and known is not None and pasts[-1] not in known

    def remember(self, workflow_id: str, request: ApiRequest, reply: ApiReply) -> None:
        """Keeps the request and its reply."""
        key = _key(workflow_id, request)
        answered = replace(request, messages=[*request.messages, {"role": "assistant", "content": reply.content}])
        self._conversations.setdefault(key, set()).update(_pasts(answered))
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
