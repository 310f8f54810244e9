"""The story of a run: conversations are told before the events that end them, each entry once."""

from pathlib import Path
from typing import Any

import pytest

from activities.model.conversation import ConversationStore, Entry, Opening
from activities.model.port import ModelMessage, ModelUsage, user_message
from activities.replies.agent_story import AgentStories
from activities.store.artifacts import ArtifactStore
from activities.store.store_urls import open_store
from temporal_supervisor.supervision.base.store_keys import call_key
from temporal_supervisor.supervision.contract.status import TraceEvent

RUN, UUID, SHA = "run-1", "01a2", "ab" * 32
FIRST, SECOND, THIRD = (call_key(RUN, UUID, f"{RUN}/t1/1", f"turn.{turn}", SHA) for turn in (1, 2, 3))
CALL = {"type": "tool_use", "id": "c1", "name": "count", "input": {"crop": "pears"}}


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}+00:00"


def ended(second: int, head: str, kind: str = "subtask_completed", subtask: str = "t1") -> TraceEvent:
    return TraceEvent(seq=second, at=at(second), type=kind, subtask_id=subtask, data={"turns": 2, "head": head})


def reply(*content: Any) -> ModelMessage:
    usage = ModelUsage(input_tokens=3, cache_read_tokens=4, output_tokens=5)
    return ModelMessage(content=list(content), stop_reason="end_turn", usage=usage, model="a-model")


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


@pytest.fixture
async def store(tmp_path: Path) -> ArtifactStore:
    """A store with a conversation of three turns, of which the third came after a review."""
    store = open_store(tmp_path)
    conversations = ConversationStore(store)
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "44 pears"}]}
    opening = Opening(system="", model="a-model")
    await conversations.save(FIRST, Entry(opening=opening, input=[user_message("?")], reply=reply(CALL), at=at(2)))
    told = [result, user_message("two turns are left")]
    await conversations.save(SECOND, Entry(ancestors=[FIRST], input=told, reply=reply(text("It is 44.")), at=at(3)))
    again = Entry(
        ancestors=[FIRST, SECOND], input=[user_message("in which year?")], reply=reply(text("1990")), at=at(7)
    )
    await conversations.save(THIRD, again)
    return store


async def test_a_conversation_is_told_before_the_event_that_ends_it(store: ArtifactStore) -> None:
    begun = TraceEvent(seq=1, at=at(1), type="subtask_started", subtask_id="t1")
    other = TraceEvent(seq=2, at=at(3), type="phase")
    events = await AgentStories(store).with_conversations([begun, other, ended(5, SECOND)])
    assert [(event.seq, event.type) for event in events] == [
        *((1, "subtask_started"), (2, "turn"), (3, "tool"), (4, "phase"), (5, "note"), (6, "turn")),
        (7, "subtask_completed"),
    ]
    assert events[1].data == {"turn": 1, "stop_reason": "end_turn", "preview": "", "tokens": 12, "model": "a-model"}
    called = {"name": "count", "arguments": '{"crop": "pears"}', "is_error": False, "preview": "44 pears"}
    assert events[2].data == called
    assert events[4].data == {"text": "two turns are left"}
    assert (events[5].data["turn"], events[5].data["preview"]) == (2, "It is 44.")
    assert events[6].data == {"turns": 2}


async def test_a_conversation_that_goes_on_is_told_from_where_it_ended(store: ArtifactStore) -> None:
    events = await AgentStories(store).with_conversations([ended(5, SECOND), ended(6, THIRD)])
    assert [event.type for event in events].count("turn") == 3
    assert [event.type for event in events][-3:] == ["note", "turn", "subtask_completed"]
    assert events[-2].at == at(6)  # a Worker's clock may be ahead of the server's


async def test_what_cannot_be_read_stays_named(store: ArtifactStore) -> None:
    gone = call_key(RUN, UUID, f"{RUN}/t1/1", "turn.9", SHA)
    (unread,) = await AgentStories(store).with_conversations([ended(5, gone)])
    assert unread.data["head"] == gone


async def test_a_nested_run_is_told_with_paths_of_subtasks(store: ArtifactStore) -> None:
    nested = "[" + ended(5, SECOND).model_dump_json() + "]"
    ref = await store.put_output(RUN, nested.encode())
    above = TraceEvent(seq=1, at=at(6), type="subtask_completed", subtask_id="t3", data={"trace_ref": ref})
    events = await AgentStories(store).with_conversations([above])
    assert [event.subtask_id for event in events] == ["t3/t1"] * 5 + ["t3"]
    assert events[-1].data == {}


async def test_a_call_that_was_written_as_text_is_told_as_such(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    written = reply({**CALL, "id": "written_1_ab"})
    opening = Opening(system="", model="a-model")
    await ConversationStore(store).save(FIRST, Entry(opening=opening, input=[], reply=written, at=at(2)))
    events = await AgentStories(store).with_conversations([ended(5, FIRST)])
    assert [event.type for event in events] == ["turn", "note", "tool", "subtask_completed"]
    assert events[1].data == {"text": "the call was written as text"}
