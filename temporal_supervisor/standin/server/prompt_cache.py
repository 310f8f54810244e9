"""The prompt cache as the API bills it: prefixes up to breakpoints, written once, readable soon.

A request is read as blocks: tools, system, messages. An entry is written at each breakpoint
(`cache_control`) whose prefix is long enough; a breakpoint finds the longest entry at itself or up
to 20 blocks before it.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from temporal_supervisor.standin.server.api_reply import token_count
from temporal_supervisor.standin.server.api_request import ApiRequest, blocks_of
from temporal_supervisor.supervision.base.json_object import JsonObject

_LOOKBACK = 20  # blocks before a breakpoint at which an entry is found
_LEAST = 512  # tokens of the shortest prefix that is cached for the default models
_NOT_CONTENT = ("cache_control", "eager_input_streaming")


@dataclass(frozen=True)
class _Block:
    """A request up to the end of one block, which has a breakpoint or not."""

    digest: str
    tokens: int
    is_marked: bool


@dataclass(frozen=True)
class CacheBill:
    """A request's input, divided as it is paid.

    `marks` are the breakpoints that are written once the reply begins.
    """

    total: int
    read: int
    written: int
    marks: list[_Block]

    def usage(self, output_tokens: int) -> JsonObject:
        """Returns the usage of the whole call."""
        return {
            "input_tokens": self.total - self.read - self.written,
            "cache_creation_input_tokens": self.written,
            "cache_read_input_tokens": self.read,
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }


class PromptCache:
    """The entries of all models, by digest. They do not expire: a run reads them within minutes."""

    def __init__(self) -> None:
        self._entries = set[str]()

    def bill(self, request: ApiRequest) -> CacheBill:
        """Returns the bill of a request that arrives now."""
        blocks = list(_blocks(request))
        marks = [
            at for at, block in enumerate(blocks) if block.is_marked and block.tokens >= _LEAST
        ]
        at = max((self._longest_entry(blocks, mark) for mark in marks), default=-1)
        read = blocks[at].tokens if at >= 0 else 0
        written = max((blocks[mark].tokens - read for mark in marks if mark > at), default=0)
        return CacheBill(blocks[-1].tokens, read, written, [blocks[mark] for mark in marks])

    def begin_reply(self, bill: CacheBill) -> None:
        """Writes the entries: before the reply begins they can't be read."""
        self._entries.update(block.digest for block in bill.marks)

    def _longest_entry(self, blocks: list[_Block], mark: int) -> int:
        """Returns the place of the longest entry that a breakpoint finds, -1 if it finds none."""
        places = range(mark, max(-1, mark - _LOOKBACK - 1), -1)
        return next((at for at in places if blocks[at].digest in self._entries), -1)


def _blocks(request: ApiRequest) -> Iterator[_Block]:
    hashed, size = hashlib.sha256(request.model.encode()), 0
    for head, block in _parts(request.body):
        text = _canonical(
            {k: v for k, v in block.items() if k not in _NOT_CONTENT and v is not None}
        )
        hashed.update(f"{head}{text}".encode("utf-8", "surrogatepass"))
        size += len(text)
        yield _Block(hashed.hexdigest(), token_count(size), bool(block.get("cache_control")))


def _parts(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yields each block with what it depends on beside the blocks before it."""
    settings = _canonical([body.get(name) for name in ("tool_choice", "thinking", "output_config")])
    yield from (("tool", tool) for tool in body.get("tools") or [])
    texts = [("system", body.get("system") or [])]
    texts += [(message["role"] + settings, message["content"]) for message in body["messages"]]
    for head, content in texts:
        yield from ((head, block) for block in blocks_of(content))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
