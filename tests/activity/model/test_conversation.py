"""Conversations in the store: unchanged JSON, one head for each call, cheap to load, small to keep."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.contracts.turn_contracts import ToolResultRef
from activities.model.conversation import (
    Conversation,
    ConversationStore,
    ConversationView,
    Entry,
    Opening,
    visible_messages,
)
from activities.model.port import ModelMessage, ModelUsage, user_message
from activities.store.artifacts import ArtifactChanged, ArtifactMissing, ArtifactStore
from activities.store.store_urls import open_store
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.store_keys import call_key

RUN = "supervise-how-did-sales-develop-4f2a"
UUID = "0190f6a2-7a1c-7c3e-9b58-1f0f3a6f7d10"
SHA = "ab" * 32
OPENING = Opening(
    system="You are an analyst.",
    model="a-model",
    tools=[{"name": "query", "input_schema": {"type": "object", "properties": {"limit": {"default": None}}}}],
)


def key_of(turn: int) -> str:
    return call_key(RUN, UUID, RUN, str(turn), SHA)


def reply(content: list[JsonObject], stop_reason: str = "tool_use") -> ModelMessage:
    usage = ModelUsage(input_tokens=3, output_tokens=5)
    return ModelMessage(content=content, stop_reason=stop_reason, usage=usage, model="a-model")


class Counting(ArtifactStore):
    """The real store, counting what is read from it."""

    def __init__(self, store: ArtifactStore) -> None:
        self.__dict__.update(store.__dict__)
        self.reads: list[str] = []

    async def find(self, key: str) -> bytes | None:
        self.reads.append(key)
        return await super().find(key)


async def talk(store: ArtifactStore, turns: int, output_chars: int = 5000) -> list[JsonObject]:
    """Stores a conversation as worker agents hold it; returns the messages that its last call should show."""
    conversations = ConversationStore(store)
    expected: list[JsonObject] = []
    new = [user_message("Which region grew most?")]
    shown = new
    for turn in range(1, turns + 1):
        past = await conversations.load(key_of(turn - 1)) if turn > 1 else None
        calls = [f"call_{turn}_{n}" for n in range(2)]
        thought = {"type": "thinking", "thinking": "Ümläute, 数", "signature": f"sig{turn}=="}
        uses = [{"type": "tool_use", "id": c, "name": "query", "input": {"limit": None, "share": 0.5}} for c in calls]
        answer = reply([thought, *uses])
        await conversations.save(
            key_of(turn),
            Entry(
                opening=None if past else OPENING,
                ancestors=[*past.last_entry.ancestors, past.head] if past else [],
                input=new,
                reply=answer,
            ),
        )
        expected += [*shown, {"role": "assistant", "content": answer.content}]
        texts = [f"{c}: ".ljust(output_chars, "é") for c in calls]
        refs = [await store.put_output(RUN, text.encode()) for text in texts]
        new = [
            conversations.tool_result_message(
                [ToolResultRef(call_id=c, ref=r) for c, r in zip(calls, refs, strict=True)]
            )
        ]
        blocks = [{"type": "tool_result", "tool_use_id": c, "content": t} for c, t in zip(calls, texts, strict=True)]
        shown = [{"role": "user", "content": blocks}]
    return expected


def whole(conversation: Conversation) -> list[JsonObject]:
    """The messages of a conversation that fits."""
    replies = [entry.reply.content for entry in conversation.entries]
    return visible_messages(conversation.inputs, replies, ConversationView())


def as_bytes(messages: list[JsonObject]) -> bytes:
    return json.dumps(messages, ensure_ascii=False).encode("utf-8", "surrogatepass")


async def test_a_cold_process_loads_forty_turns_byte_for_byte(tmp_path: Path) -> None:
    expected = await talk(open_store(tmp_path), turns=40)
    assert as_bytes(whole(await ConversationStore(open_store(tmp_path)).load(key_of(40)))) == as_bytes(expected)


async def test_an_entry_holds_of_each_call_before_it_only_what_tells_their_keys_apart(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await talk(store, turns=40, output_chars=100)
    twenty, forty = [len(await store.get(key_of(turn))) for turn in (20, 40)]
    assert forty - twenty < 20 * (len(SHA) + 10)


async def test_a_warm_process_reads_only_what_is_new(tmp_path: Path) -> None:
    await talk(open_store(tmp_path), turns=10)
    store = Counting(open_store(tmp_path))
    conversations = ConversationStore(store)
    first = await conversations.load(key_of(9))
    assert len(store.reads) == len(set(store.reads)) == 9 + 2 * 8
    store.reads.clear()
    assert whole(await conversations.load(key_of(10)))[: len(whole(first))] == whole(first)
    assert len(store.reads) == 1 + 2
    assert key_of(10) in store.reads


async def test_of_two_attempts_at_one_call_both_get_the_first_answer(store_url: str) -> None:
    stores = [ConversationStore(open_store(store_url)) for _ in range(4)]
    entries = [
        Entry(opening=OPENING, input=[user_message("?")], reply=reply([{"type": "text", "text": f"attempt {n}"}]))
        for n in range(4)
    ]
    saved = await asyncio.gather(*(s.save(key_of(1), e) for s, e in zip(stores, entries, strict=True)))
    assert all(entry == saved[0] for entry in saved)
    assert saved[0] in entries
    late = ConversationStore(open_store(store_url))
    assert await late.save(key_of(1), entries[3]) == saved[0] == await late.find(key_of(1))
    messages = whole(await late.load(key_of(1)))
    assert messages == [user_message("?"), {"role": "assistant", "content": saved[0].reply.content}]


async def test_all_calls_of_a_turn_are_answered_in_one_message_in_order(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    conversations = ConversationStore(store)
    good, bad = await store.put_output(RUN, b"42"), await store.put_output(RUN, b"no such table")
    results = [ToolResultRef(call_id="b", ref=good), ToolResultRef(call_id="a", ref=bad, is_error=True)]
    message = conversations.tool_result_message([*results, ToolResultRef(call_id="c", ref=good)])
    message["content"].append({"type": "text", "text": "Two turns are left."})
    assert [block.get("content_ref") for block in message["content"]] == [good, bad, good, None]
    (resolved,) = await conversations.resolve([message])
    assert resolved["content"] == [
        {"type": "tool_result", "tool_use_id": "b", "content": "42"},
        {"type": "tool_result", "tool_use_id": "a", "content": "no such table", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c", "content": "42"},
        {"type": "text", "text": "Two turns are left."},
    ]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters() | st.sampled_from("\ud800\udfff\x00\u2028é")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(value=st.dictionaries(st.text(max_size=8), json_values, max_size=4))
async def test_the_providers_json_passes_through_unchanged(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]
) -> None:
    directory = tmp_path_factory.mktemp("store")
    block = {"type": "tool_use", "id": "c", "name": "query", "input": value, "some_new_field": {"x": value}}
    entry = Entry(
        opening=OPENING, input=[{"role": "user", "content": [{"type": "later", "x": value}]}], reply=reply([block])
    )
    await ConversationStore(open_store(directory)).save(key_of(1), entry)
    loaded = await ConversationStore(open_store(directory)).load(key_of(1))
    assert as_bytes(whole(loaded)) == as_bytes([*entry.input, {"role": "assistant", "content": [block]}])


async def test_a_lost_part_of_a_conversation_is_named(tmp_path: Path) -> None:
    await talk(open_store(tmp_path), turns=5)
    (tmp_path / key_of(2)).unlink()
    with pytest.raises(ArtifactMissing) as caught:
        await ConversationStore(open_store(tmp_path)).load(key_of(5))
    assert key_of(2) in caught.value.message


@pytest.mark.parametrize("damage", [b"", b"\xff", b"{}", b"[]", b'{"ancestors": 3}', b'{"input": "x'])
async def test_a_damaged_entry_is_reported_not_believed(tmp_path: Path, damage: bytes) -> None:
    store = open_store(tmp_path)
    await store.put(key_of(1), damage)
    for doing in (ConversationStore(store).find(key_of(1)), ConversationStore(store).load(key_of(1))):
        with pytest.raises(ArtifactChanged, match=f"damaged object '{key_of(1)}'"):
            await doing
