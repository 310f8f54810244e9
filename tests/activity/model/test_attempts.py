"""One call as an activity makes it: the journal at every attempt, and what attempts hand on to each other."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.contracts.run_contracts import RunRef
from activities.heartbeat import beating
from activities.model.conversation import ConversationStore, Opening
from activities.model.journalled_call import Answered, CallName, CallOptions, ModelCalls
from activities.store.artifacts import open_store
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import ModelServer, Reply
from tests.activity.model.test_anthropic_model import adapter

MODEL = "claude-haiku-5-5"
OPENING = Opening(system="You are brief.", model=MODEL)
HELLO = http.message(http.text("Hello"))
CUT = http.stream(http.start(), *http.block(0, http.text("word " * 70)), end=http.cut)


class Attempts:
    """The attempts at one call, each in a process of its own: nothing but the store and Temporal lasts."""

    def __init__(self, server: ModelServer, folder: Path) -> None:
        self.server = server
        self._folder = folder
        self._details: list[Any] = []

    async def make(self, attempt: int = 1) -> Answered:
        """Makes the next attempt; Temporal says that it is number `attempt`."""
        store = open_store(str(self._folder))
        environment = ActivityEnvironment()
        environment.on_heartbeat = lambda *details: self._details.__setitem__(slice(None), details)
        environment.info = dataclasses.replace(
            environment.info, activity_id="7", attempt=attempt, heartbeat_details=list(self._details)
        )
        async with adapter(self.server) as model:
            calls = ModelCalls(model, store, ConversationStore(store))
            run = RunRef(run_id="run", store_id=await store.identity(), first_run_id="first")
            name = CallName(run, "turn.1", "ab" * 32)

            async def begin() -> Answered:
                async with beating():
                    return await calls.begin(name, OPENING, "Go.", CallOptions(1000))

            answered = await environment.run(begin)
        assert isinstance(answered, Answered)
        return answered

    async def fail(self, attempt: int = 1) -> ApplicationError:
        """Makes an attempt that fails."""
        with pytest.raises(ApplicationError) as caught:
            await self.make(attempt)
        return caught.value


@pytest.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    async with http.model_server(HELLO) as server:
        yield Attempts(server, tmp_path)


async def test_a_stored_answer_is_never_asked_for_again_whatever_the_attempts_number(attempts: Attempts) -> None:
    first = await attempts.make(1)
    for attempt in (2, 1):  # `temporal activity reset` counts anew
        again = await attempts.make(attempt)
        assert (again.head, again.usage, again.message.text()) == (first.head, first.usage, "Hello")
    assert len(attempts.server.requests) == 1


USE: dict[str, Any] = http.tool_use("t1", "add", {})
NULL_TEXT: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": None}},
    {"type": "content_block_stop", "index": 0},
]
UNREADABLE: list[tuple[str, Reply]] = [
    ("no id", http.message({**USE, "id": None}, stop_reason="tool_use")),
    ("no name", http.message({**USE, "name": None}, stop_reason="tool_use")),
    ("a number for a name", http.message({**USE, "name": 7}, stop_reason="tool_use")),
    ("one id twice", http.message(USE, USE, stop_reason="tool_use")),
    ("null for a text", http.stream(http.start(), *NULL_TEXT, *http.finish())),
]


@pytest.mark.parametrize("reply", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
async def test_an_answer_that_nobody_can_read_is_not_stored(attempts: Attempts, reply: Reply) -> None:
    attempts.server.reply = reply
    assert (await attempts.fail()).type == "BadResponse"
    attempts.server.reply = HELLO
    assert (await attempts.make(2)).message.text() == "Hello"


async def test_what_failed_attempts_cost_is_part_of_the_answers_usage(attempts: Attempts) -> None:
    alone = (await attempts.make()).usage
    (attempts._folder).joinpath("x").mkdir()
    second = Attempts(attempts.server, attempts._folder / "x")
    second.server.reply = CUT
    for number in (1, 2):
        await second.fail(number)
    second.server.reply = HELLO
    answered = await second.make(3)
    assert answered.usage.model_calls == 1
    assert answered.usage.input_tokens == 3 * alone.input_tokens
    assert answered.usage.output_tokens == alone.output_tokens + 2 * 100
    assert (answered.usage.usd or 0) > 2 * (alone.usd or 0)
    assert (await second.make(4)).usage == answered.usage


async def test_heartbeats_that_nobody_understands_are_a_fresh_start(attempts: Attempts) -> None:
    attempts._details[:] = [{"failures": "many", "spent": 7}]
    assert (await attempts.make(2)).usage.model_calls == 1
