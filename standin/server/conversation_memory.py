"""The memory of conversations: whether they only grow, and which prefixes a cache would hold."""

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from standin.server.api_reply import ApiReply, tokens
from standin.server.api_request import ApiRequest, Json

_CACHE_TOKENS = 512  # the smallest prefix that current models cache
_CACHED_PREFIXES = 50_000  # ~5 MB of digests
_CONVERSATIONS = 5000  # whose past is checked; older ones are forgotten


@dataclass(frozen=True)
class Prefix:
    """The start of a request: a digest of it and how many characters it has."""

    digest: str
    size: int


def prefixes(request: ApiRequest) -> list[Prefix]:
    """Returns system and tools, then a longer prefix per message; neighbours of one role count as one message."""
    head = [request.model, request.system, request.tools, request.schema]
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
        self._cached: OrderedDict[str, None] = OrderedDict()

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

    def usage(self, request: ApiRequest, output_tokens: int) -> Json:
        """Returns token counts; with cache control the longest known prefix is read and the rest written."""
        starts = prefixes(request)
        total = tokens(starts[-1].size)
        read = written = 0
        if request.cached and total >= _CACHE_TOKENS:
            read = max((tokens(start.size) for start in starts if start.digest in self._cached), default=0)
            read = read if read >= _CACHE_TOKENS else 0
            written = total - read
            for start in starts:
                self._cached[start.digest] = None
                self._cached.move_to_end(start.digest)
            while len(self._cached) > _CACHED_PREFIXES:
                self._cached.popitem(last=False)
        return {
            "input_tokens": total - read - written + (3 if written or read else 0),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }


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
