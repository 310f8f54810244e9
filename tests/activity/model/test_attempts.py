"""One call as an activity makes it: the journal at every attempt, and what attempts hand on to each other."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.exceptions import ApplicationError

from activities.contracts.run_contracts import DependencyRef, RunRef, SubtaskBrief
from activities.contracts.turn_contracts import OtherQuery, ToolResultRef, TurnInput
from activities.model.conversation import Opening
from activities.model.journalled_call import ODD_REPLY_ATTEMPTS, Answered, CallOptions, ModelCalls, key_of
from activities.store.spending import DailySpend
from activities.store.store_urls import open_store
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import ModelServer, Reply
from tests.activity.model.test_anthropic_model import adapter
from tests.activity.supervising import Desk
from tests.activity.test_attempt_interceptor import Call
from tests.scripted_model import text

MODEL = "claude-haiku-5-5"
OPENING = Opening(system="You are brief.", model=MODEL)
HELLO = http.message(http.text("Hello"))
CUT = http.stream(http.start(), *http.block(0, http.text("word " * 70)), end=http.cut)


class Attempts:
    """The attempts at one call, each in a process of its own: nothing but the store and Temporal lasts."""

    def __init__(self, server: ModelServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.call = Call()

    async def make(self) -> Answered:
        """Makes the next attempt."""
        store = open_store(self.folder)
        run = RunRef(run_id="run", store_id=await store.begin(), first_run_id="first")
        asked = TURN.model_copy(update={"run": run})
        async with adapter(self.server) as model:
            calls = ModelCalls(model, store)
            return await self.call.attempt(partial(calls.begin, asked, OPENING, "Go.", CallOptions()))

    async def fail(self) -> ApplicationError:
        """Makes an attempt that fails."""
        with pytest.raises(ApplicationError) as caught:
            await self.make()
        return caught.value


@pytest.fixture
async def attempts(tmp_path: Path) -> AsyncIterator[Attempts]:
    async with http.model_server(HELLO) as server:
        yield Attempts(server, tmp_path)


async def test_a_block_of_an_odd_type_is_kept_as_it_came(attempts: Attempts) -> None:
    odd = {"type": "content_block_start", "index": 0, "content_block": {"type": ["odd"]}}
    end = {"type": "content_block_stop", "index": 0}
    attempts.server.reply = http.stream(http.start(), odd, end, *http.finish())
    assert (await attempts.make()).message.content == [{"type": ["odd"]}]


USE: dict[str, Any] = http.tool_use("t1", "add", {})
NULL_TEXT: list[dict[str, Any]] = [
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": None}},
    {"type": "content_block_stop", "index": 0},
]
UNREADABLE: list[tuple[str, Reply]] = [
    ("no id", http.message({**USE, "id": None}, stop_reason="tool_use")),
    ("one id twice", http.message(USE, USE, stop_reason="tool_use")),
    ("null for a text", http.stream(http.start(), *NULL_TEXT, *http.finish())),
]


@pytest.mark.parametrize("reply", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
async def test_an_answer_that_nobody_can_read_is_not_stored(attempts: Attempts, reply: Reply) -> None:
    attempts.server.reply = reply
    assert (await attempts.fail()).type == "BadResponse"
    attempts.server.reply = HELLO
    assert (await attempts.make()).message.text() == "Hello"


async def test_an_odd_reply_is_asked_for_again_twice_whichever_processes_ask(attempts: Attempts) -> None:
    attempts.server.reply = UNREADABLE[0][1]
    errors = [await attempts.fail() for _ in range(ODD_REPLY_ATTEMPTS)]
    assert [error.non_retryable for error in errors] == [False, False, True]


async def test_heartbeats_of_another_version_count_for_nothing(attempts: Attempts) -> None:
    attempts.server.reply = UNREADABLE[0][1]
    attempts.call.beats.append({"failures": "of another shape", "new": 1})
    assert (await attempts.fail()).type == "BadResponse"


async def test_what_failed_attempts_cost_is_part_of_the_answers_usage(attempts: Attempts) -> None:
    alone = (await attempts.make()).usage
    second = Attempts(attempts.server, attempts.folder / "x")
    second.server.reply = CUT
    for _ in range(2):
        await second.fail()
    second.server.reply = HELLO
    answered = await second.make()
    assert answered.usage.model_calls == 1
    assert answered.usage.input_tokens == 3 * alone.input_tokens
    assert answered.usage.output_tokens == alone.output_tokens + 2 * 100
    assert (answered.usage.usd or 0) > 2 * (alone.usd or 0)
    assert (await second.make()).usage == answered.usage


async def test_a_failure_costs_once_if_its_attempt_ends_before_the_days_spend_is_stored(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(*_: object) -> None:
        raise asyncio.CancelledError

    alone = (await attempts.make()).usage
    second = Attempts(attempts.server, attempts.folder / "x")
    second.server.reply = CUT
    with monkeypatch.context() as patch:
        patch.setattr(DailySpend, "add", stopped)
        with pytest.raises(asyncio.CancelledError):
            await second.make()
    second.server.reply = HELLO
    assert (await second.make()).usage.input_tokens == 2 * alone.input_tokens


RUN = RunRef(run_id="run", store_id="s", first_run_id="first", grant_ref="run/grant.1")
BRIEF = SubtaskBrief(plan_ref="run/plan", subtask_id="t1")
TURN = TurnInput(run=RUN, team_ref="run/team.1", role="reader", model="m", step="turn.1", max_tokens=1000)
OTHERWISE: dict[str, Any] = {
    "team_ref": "run/team.2",
    "role": "writer",
    "model": "n",
    "effort": "high",
    "step": "turn.2",
    "brief": BRIEF,
    "head": "run/first/run/turn.0/1",
    "results": [ToolResultRef(call_id="c1", ref="run/outputs/1")],
    "note": "two turns are left",
    "last": True,
    "max_turns": 7,
    "max_tokens": 1001,
    "anew_from": "run/first/run/turn.3/1",
    "another_query": 1,
    "others": [OtherQuery(head="run/first/run/query.1/1", result=ToolResultRef(call_id="c2"))],
}


def sha(turn: TurnInput) -> str:
    return key_of(turn, "run/t1/1").rpartition("/")[2]


def test_every_field_of_what_is_asked_is_part_of_its_name() -> None:
    assert OTHERWISE.keys() == TurnInput.model_fields.keys() - {"run"}
    names = {sha(TURN.model_copy(update={field: value})) for field, value in OTHERWISE.items()}
    assert len(names | {sha(TURN)}) == len(OTHERWISE) + 1


@pytest.mark.parametrize("field", RunRef.model_fields)
def test_the_run_is_no_part_of_what_is_asked_but_of_the_key(field: str) -> None:
    other = TURN.model_copy(update={"run": RUN.model_copy(update={field: "other"})})
    assert sha(other) == sha(TURN)
    one, two = (key_of(turn, "run/t1/1") for turn in (TURN, other))
    assert (one != two) == (field in ("run_id", "first_run_id"))


refs = st.builds(
    DependencyRef,
    subtask_id=st.text("t12", min_size=1),
    role=st.sampled_from(["reader", "writer"]),
    text_ref=st.sampled_from(["run/outputs/1", "run/outputs/2", "other/3"]),
    weight=st.floats(0, 1),
    complete=st.booleans(),
)


@given(st.lists(refs, max_size=30), st.text(st.characters(codec="utf-8")), st.none() | st.text("é数🦜"))
def test_an_input_read_from_history_asks_the_same(deps: list[DependencyRef], role: str, note: str | None) -> None:
    brief = BRIEF.model_copy(update={"dependencies": deps})
    turn = TURN.model_copy(update={"role": role, "note": note, "brief": brief})
    read = TurnInput.model_validate_json(turn.model_dump_json())
    assert sha(read) == sha(turn)


async def test_the_same_question_in_the_same_place_is_answered_from_the_journal(desk: Desk) -> None:
    desk.say(text("an answer"), text("another"))
    name, opening = await desk.new_call("plan.1.1"), Opening(system="s", model="m")

    async def ask(asked: TurnInput) -> Answered:
        return await desk.calls.begin(asked, opening, "goal", CallOptions())

    first, again = await desk.do(ask, name), await desk.do(ask, name)
    assert (again.head, again.usage, again.message.text()) == (first.head, first.usage, "an answer")
    assert len(desk.asked) == 1
    places = [
        (name.model_copy(update={"role": "other"}), desk.run_id),
        (name.model_copy(update={"step": "plan.1.2"}), desk.run_id),
        (name, f"{desk.run_id}/t1/1"),
    ]
    for number, (other, workflow_id) in enumerate(places, 2):
        assert (await desk.do(ask, other, workflow_id)).head != first.head
        assert len(desk.asked) == number
