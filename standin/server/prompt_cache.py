"""The prompt cache as the API bills it: prefixes up to breakpoints, written once, readable a moment later.

A request is read as blocks: tools, system, messages. An entry is written at each breakpoint (`cache_control`) whose
prefix is long enough; a breakpoint finds the longest entry at itself or up to 20 blocks before it.
"""

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from standin.server.api_reply import tokens
from standin.server.api_request import ApiRequest, Json

_ENTRIES = 50_000  # ~10 MB; the oldest are forgotten first
_LOOKBACK = 20  # blocks before a breakpoint at which an entry is found
_LEAST: tuple[tuple[str, int], ...] = (  # the shortest prefix that is cached, by model
    ("*-5-5*", 512), ("claude-opus-5*", 512), ("claude-fable-5*", 512), ("claude-mythos-5*", 512),
    ("claude-haiku-4-5*", 4096), ("claude-opus-4-[56]*", 4096), ("claude-opus-4-7*", 2048), ("*", 1024),
)  # fmt: skip
_SECONDS = {"5m": 300.0, "1h": 3600.0}
_NOT_CONTENT = ("cache_control", "eager_input_streaming")


@dataclass(frozen=True)
class _Block:
    """A request up to the end of one block; `mark` is the lifetime of its breakpoint, if it has one."""

    digest: str
    tokens: int
    mark: str | None


@dataclass
class _Entry:
    lifetime: float
    expires_at: float


@dataclass(frozen=True)
class CacheBill:
    """A request's input, divided as it is paid; `marks` are the breakpoints written once the reply begins."""

    total: int
    read: int
    written: dict[str, int]
    marks: list[_Block]

    def usage(self, output_tokens: int) -> Json:
        """Returns the usage of the whole call."""
        written = sum(self.written.values())
        return {
            "input_tokens": self.total - self.read - written,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.read,
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": self.written[ttl] for ttl in _SECONDS},
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }


class PromptCache:
    """The entries of all models. `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def bill(self, request: ApiRequest) -> CacheBill:
        """Returns the bill of a request that arrives now; what it reads lives on."""
        blocks, least = _blocks(request), _least(request.model)
        marks = [at for at, block in enumerate(blocks) if block.mark and block.tokens >= least]
        at = max((self._found(blocks, mark) for mark in marks), default=-1)
        read = blocks[at].tokens if at >= 0 else 0
        paid, written = read, dict.fromkeys(_SECONDS, 0)
        for mark in (blocks[mark] for mark in marks if mark > at):
            written[mark.mark or "5m"] += mark.tokens - paid
            paid = mark.tokens
        return CacheBill(blocks[-1].tokens, read, written, [blocks[mark] for mark in marks])

    def begin_reply(self, bill: CacheBill) -> None:
        """Writes the entries: before the reply begins nobody can read them."""
        for block in bill.marks:
            lifetime = _SECONDS[block.mark or "5m"]
            self._entries[block.digest] = _Entry(lifetime, self._clock() + lifetime)
            self._entries.move_to_end(block.digest)
        while len(self._entries) > _ENTRIES:
            self._entries.popitem(last=False)

    def _found(self, blocks: list[_Block], mark: int) -> int:
        """Returns the place of the longest entry that a breakpoint finds, -1 if it finds none."""
        now = self._clock()
        for at in range(mark, max(-1, mark - _LOOKBACK - 1), -1):
            entry = self._entries.get(blocks[at].digest)
            if entry and entry.expires_at > now:
                entry.expires_at = now + entry.lifetime
                return at
        return -1


def _blocks(request: ApiRequest) -> list[_Block]:
    parts = list(_parts(request.body))
    marks = [_lifetime(block) for _, block in parts]
    if (whole := _lifetime(request.body)) is not None:
        marks[-1] = marks[-1] or whole
    hashed, size, blocks = hashlib.sha256(request.model.encode()), 0, list[_Block]()
    for (head, block), mark in zip(parts, marks, strict=True):
        text = _canonical({k: v for k, v in block.items() if k not in _NOT_CONTENT and v is not None})
        hashed.update(f"{head}{text}".encode("utf-8", "surrogatepass"))
        size += len(text)
        blocks.append(_Block(hashed.hexdigest(), tokens(size), mark))
    return blocks


def _parts(body: Json) -> Iterator[tuple[str, Json]]:
    """Yields each block with what it depends on beside the blocks before it."""
    for tool in body.get("tools") or []:
        yield "tool", tool
    system = body.get("system") or []
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield "system", block
    settings = _canonical([body.get(name) for name in ("tool_choice", "thinking", "output_config")])
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield f"{message['role']}{settings}", block


def _lifetime(block: Json) -> str | None:
    control = block.get("cache_control")
    return str(control.get("ttl") or "5m") if control else None


def _least(model: str) -> int:
    return next(least for pattern, least in _LEAST if fnmatch(model, pattern))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
