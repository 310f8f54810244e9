"""Conversations: append-only chains of stored objects, one for each model call.

A conversation's head is the key of its last entry. An entry holds the messages that its call added, the model's reply
and the keys of its ancestors, so that a cold process reads them all at once. The provider's JSON passes through
unchanged; outputs of tools are stored apart and put in place on the way to the model.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Generic, TypeVar

from cachetools import LRUCache

from activities.contracts.turn_contracts import ToolResultRef
from activities.model.conversation_view import ConversationView
from activities.model.port import Json, ModelMessage
from activities.store.artifacts import ArtifactChanged, ArtifactStore
from supervision.base import limits
from supervision.contract.base import Model
from supervision.contract.model_choice import Effort
from supervision.contract.usage import Usage

_ENTRY_CACHE_BYTES = 64 * 1024 * 1024  # parsed conversation entries kept in a process

T = TypeVar("T")


class Opening(Model):
    """The parts that all calls of a conversation share; `output_schema` asks for JSON text.

    The effort is one of them: with another one the API forgets the messages that it has cached.
    """

    system: str
    model: str
    effort: Effort | None = None
    tools: list[Json] = []
    output_schema: Json | None = None


class Entry(Model):
    """One model call: the messages that it added to the conversation, and the reply.

    Only the first entry has an opening. `ancestors` are the keys of all entries before it, oldest first. In
    `input`, the new user messages, a tool_result block has `content_ref`, a key, in place of `content`, and the
    `sources` and `artifacts` that the tool named, which the model does not get. `view` says
    what of the conversation the call showed the model. `spent` is what failed attempts at this call had cost, `at`
    when the answer was stored, as ISO 8601.
    """

    opening: Opening | None = None
    ancestors: list[str] = []
    input: list[Json]
    reply: ModelMessage
    view: ConversationView = ConversationView()
    spent: Usage = Usage()
    at: str | None = None


@dataclass(frozen=True)
class Conversation:
    """A conversation up to the call `head`: its entries, oldest first, and the messages that each added, whole."""

    opening: Opening
    entries: list[Entry]
    inputs: list[list[Json]]
    head: str

    @property
    def ancestors(self) -> list[str]:
        """The keys of all entries before `head`."""
        return list(self.entries[-1].ancestors)

    @property
    def message_id(self) -> str:
        """The provider's name of the last reply."""
        return self.entries[-1].reply.message_id

    @property
    def view(self) -> ConversationView:
        """How the last call showed the conversation."""
        return self.entries[-1].view

    @property
    def messages(self) -> list[Json]:
        """All messages, with whole tool outputs."""
        messages = []
        for entry, added in zip(self.entries, self.inputs, strict=True):
            messages += [dict(message) for message in added]
            if entry.reply.content:
                messages.append({"role": "assistant", "content": [dict(block) for block in entry.reply.content]})
        return messages


@dataclass(frozen=True)
class _Cached(Generic[T]):
    value: T
    size: int


_Cache = LRUCache[str, _Cached[T]]


def _cache(capacity: int) -> _Cache[T]:
    return LRUCache(capacity, getsizeof=lambda cached: cached.size)


class ConversationStore:
    """Conversations in an artifact store; entries that were read stay in the process, up to `cache_bytes`.

    Entries are shared with that cache: read them, never change them. All methods raise as the store
    does, and ArtifactChanged for an object that is no entry.
    """

    def __init__(self, store: ArtifactStore, cache_bytes: int = _ENTRY_CACHE_BYTES) -> None:
        self._store = store
        self._entries: _Cache[Entry] = _cache(cache_bytes // 2)
        self._outputs: _Cache[str] = _cache(cache_bytes // 2)
        self._reading = asyncio.Semaphore(limits.STORE_READS)

    async def load(self, head: str) -> Conversation:
        """Returns the whole conversation with its tool outputs. Raises ArtifactMissing if a part of it is gone."""
        chain = await self.chain(head)
        if (opening := chain[0].opening) is None:
            raise ArtifactChanged(
                f"the conversation at '{head}' has no opening: its first entry belongs to another conversation"
            )
        resolved = iter(await self.resolve([message for entry in chain for message in entry.input]))
        inputs = [[next(resolved) for _ in entry.input] for entry in chain]
        return Conversation(opening, chain, inputs, head)

    async def chain(self, head: str) -> list[Entry]:
        """Returns the entries of the conversation, oldest first. Raises ArtifactMissing if one is gone."""
        last = await self.entry(head)
        ancestors = await self._read(last.ancestors, self._entries, _parse)
        return [*(ancestors[key] for key in last.ancestors), last]

    async def resolve(self, messages: list[Json]) -> list[Json]:
        """Returns a copy of `messages` with tool outputs in place of their references."""
        blocks = (block for message in messages for block in _blocks(message))
        texts = await self._read([b["content_ref"] for b in blocks if "content_ref" in b], self._outputs, _text)
        return [_with_outputs(message, texts) for message in messages]

    @staticmethod
    def tool_result_message(results: list[ToolResultRef]) -> Json:
        """Returns the one user message that answers all tool calls of a turn, in the given order."""
        return {"role": "user", "content": [_result_block(result) for result in results]}

    async def entry(self, key: str) -> Entry:
        """Returns the entry of that key. Raises ArtifactMissing if there is none."""
        return (await self._read([key], self._entries, _parse))[key]

    async def find(self, key: str) -> Entry | None:
        """Returns the entry of that key: the journal. None if that call's answer was never stored."""
        if (cached := self._entries.get(key)) is not None:
            return cached.value
        data = await self._store.find(key)
        return None if data is None else self._parsed(key, data, self._entries, _parse)

    async def save(self, key: str, entry: Entry) -> Entry:
        """Stores the entry. Returns the stored one, which is another attempt's if that came first."""
        data = _dump(entry)
        if await self._store.create(key, data):
            return self._parsed(key, data, self._entries, _parse)
        return await self.entry(key)

    async def _read(self, keys: Iterable[str], cache: _Cache[T], parse: Callable[[bytes], T]) -> dict[str, T]:
        async def read(key: str) -> T:
            if (cached := cache.get(key)) is not None:
                return cached.value
            async with self._reading:
                return self._parsed(key, await self._store.get(key), cache, parse)

        wanted = list(dict.fromkeys(keys))
        return dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True))

    def _parsed(self, key: str, data: bytes, cache: _Cache[T], parse: Callable[[bytes], T]) -> T:
        """Returns the parsed content of an object, which then stays in the cache."""
        try:
            value = parse(data)
        except (ValueError, KeyError, TypeError):
            raise ArtifactChanged(
                f"artifact store {self._store.url} holds a damaged object '{key}': restore it, or start a new run"
            ) from None
        with contextlib.suppress(ValueError):  # larger than the whole cache
            cache[key] = _Cached(value, len(data))
        return value


def _dump(entry: Entry) -> bytes:
    """Returns the stored form. Ancestors share a prefix; kept whole they would make long conversations quadratic."""
    document = entry.model_dump()
    shared = commonprefix(entry.ancestors)
    document["ancestors"] = {"shared": shared, "ends": [key[len(shared) :] for key in entry.ancestors]}
    # Neither pydantic's JSON mode nor strict UTF-8: they refuse or change lone surrogates, which models do send.
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _parse(data: bytes) -> Entry:
    document = json.loads(data.decode("utf-8", "surrogatepass"))
    ancestors = document["ancestors"]
    document["ancestors"] = [ancestors["shared"] + end for end in ancestors["ends"]]
    return Entry.model_validate(document)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _blocks(message: Json) -> Sequence[Json]:
    content = message["content"]
    return content if isinstance(content, list) else []


def _with_outputs(message: Json, texts: dict[str, str]) -> Json:
    if not isinstance(message["content"], list):
        return dict(message)
    return {**message, "content": [_with_output(block, texts) for block in message["content"]]}


def _with_output(block: Json, texts: dict[str, str]) -> Json:
    if "content_ref" not in block:
        return dict(block)
    renamed = {"content_ref": "content"}
    sent = {name: value for name, value in block.items() if name not in ("sources", "artifacts")}
    return {renamed.get(k, k): (texts[v] if k == "content_ref" else v) for k, v in sent.items()}


def _result_block(result: ToolResultRef) -> Json:
    content = {"content_ref": result.ref} if result.text is None else {"content": result.text}
    block: Json = {"type": "tool_result", "tool_use_id": result.call_id, **content}
    more = result.model_dump(include={"is_error", "sources", "artifacts"})
    return {**block, **{name: value for name, value in more.items() if value}}
