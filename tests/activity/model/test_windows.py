"""Calls that are fitted into their model's window: what is sent and stored, and what a refusal leads to."""

from functools import partial
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.contracts.turn_contracts import ToolResultRef
from activities.model.anthropic_model import AnthropicModel
from activities.model.conversation import Conversation, Entry, Opening, tool_results
from activities.model.journalled_call import Answered, CallOptions
from activities.model.port import ModelMessage, ModelUsage, Window, user_message
from activities.model.prompt_fit import NextPrompt
from temporal_supervisor.runtime.settings import Settings, load_settings
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.activity.supervising import Desk
from tests.scripted_model import Reply, status, text

MODEL = "a-small-model"
TOOLS: list[JsonObject] = [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
OPENING = Opening(system="You look.", model=MODEL, tools=TOOLS)
OPTIONS = CallOptions(cache="conversation")
LONG = "a row of pears, and " * 1000  # 20,000 characters: about 5,700 tokens
REFUSAL = status(400, "invalid_request_error", "prompt is too long: 16000 tokens > 15000 maximum")


def looks(turn: int) -> Reply:
    """A reply that thinks and calls a tool."""
    use = {"type": "tool_use", "id": f"c{turn}", "name": "look", "input": {}}
    thought = {"type": "thinking", "thinking": f"before call {turn}", "signature": "c2ln"}

    async def reply() -> ApiReply:
        return ApiReply([thought, use], "tool_use")  # its tokens are counted from the texts

    return reply


class Talk:
    """A conversation with a model of a window of 18,000 tokens, one call after the other."""

    def __init__(self, desk: Desk, window: int | None = 18_000) -> None:
        self.desk = desk
        self.answered: Answered | None = None
        desk.windows.update({"*": window} if window else {})

    async def begin(self, prompt: Any = "Look.") -> Answered:
        """Makes the first call."""
        begin = partial(self.desk.calls.begin, await self.desk.new_call("turn.1"), OPENING, prompt)
        self.answered = await self.desk.do(begin, OPTIONS)
        return self.answered

    async def go_on(self, *outputs: str) -> Answered:
        """Answers the calls of the last reply and makes the next call."""
        assert self.answered is not None
        head, uses = self.answered.head, self.answered.message.tool_uses()
        refs = [await self.desk.store.put_output(self.desk.run_id, output.encode()) for output in outputs]
        results = [ToolResultRef(call_id=use["id"], ref=ref) for use, ref in zip(uses, refs, strict=True)]
        added = [self.desk.calls.conversations.tool_result_message(results)]
        go_on = partial(self.desk.calls.follow_up, await self.desk.new_call("turn.2"), head, added)
        self.answered = await self.desk.do(go_on, OPTIONS)
        return self.answered

    @property
    def sent(self) -> list[JsonObject]:
        """The messages of the last request, without marks of the cache."""
        messages: list[JsonObject] = self.desk.asked[-1].step.body["messages"]
        return [
            {**m, "content": [{k: v for k, v in block.items() if k != "cache_control"} for block in m["content"]]}
            for m in messages
        ]

    def of(self, kind: str) -> list[JsonObject]:
        """The blocks of that kind in the last request."""
        return [block for m in self.sent for block in m["content"] if block["type"] == kind]


async def test_old_outputs_and_the_thinking_after_them_give_way_and_the_store_keeps_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SMALL_WINDOW_TOKENS", 0)  # outputs are shown as to any model
    desk.say(*[looks(n) for n in range(1, 6)])
    talk = Talk(desk)
    await talk.begin()
    for _ in range(2):
        await talk.go_on(LONG)
        assert [block["content"] for block in talk.of("tool_result")] == [LONG[:20_000]] * len(talk.of("tool_result"))
    assert [block["thinking"] for block in talk.of("thinking")] == ["before call 1", "before call 2"]
    answered = await talk.go_on(LONG)  # 16,000 tokens of outputs, where 14,400 are for the prompt
    lengths = [len(block["content"]) for block in talk.of("tool_result")]
    assert (lengths[0] < 700, *lengths[1:]) == (True, 20_000, 20_000)
    assert 'read_output with output "1-1" and offset 450' in talk.of("tool_result")[0]["content"]
    assert talk.of("thinking") == [], "what was thought is bound to what came before it"
    assert [block["id"] for block in talk.of("tool_use")] == [b["tool_use_id"] for b in talk.of("tool_result")]
    assert answered.view.cleared == 1
    cleared = talk.sent
    await talk.go_on("short")
    assert talk.sent[: len(cleared)] == cleared, "between clearings a conversation only grows"
    assert [block["thinking"] for block in talk.of("thinking")] == ["before call 4"]
    inputs = (await desk.calls.conversations.load(answered.head)).inputs
    assert [block["content"] for added in inputs for block in tool_results(added)] == [LONG] * 3


@pytest.mark.parametrize(
    "refusal",
    [
        REFUSAL,
        status(413, "request_too_large", "Request exceeds the maximum size"),
        status(400, "invalid_request_error", "This model's maximum context length is 15000 tokens. You sent more."),
    ],
)
async def test_a_refused_conversation_is_cleared_and_sent_again_in_the_same_attempt(desk: Desk, refusal: Reply) -> None:
    desk.say(looks(1), looks(2), refusal, text("done"))
    talk = Talk(desk, window=100_000)
    await talk.begin()
    await talk.go_on(LONG)
    answered = await talk.go_on(LONG)
    assert answered.message.text() == "done"
    assert len(desk.asked) == 4
    assert [len(block["content"]) > 1000 for block in talk.of("tool_result")] == [False, True]
    entry = await desk.calls.conversations.entry(answered.head)
    assert (entry.view.cleared, entry.view.thinking_removed_before) == (1, 2)


async def test_a_conversation_that_is_refused_again_fails_for_good(desk: Desk) -> None:
    desk.say(looks(1), REFUSAL)
    talk = Talk(desk)
    await talk.begin()
    for outputs, requests in ((LONG, 3), ("short", 5)):  # once without outputs, once without thinking
        with pytest.raises(ApplicationError) as caught:
            await talk.go_on(outputs)
        assert (caught.value.type, caught.value.non_retryable) == ("ContextOverflow", True)
        assert len(desk.asked) == requests


async def test_a_first_prompt_is_written_again_with_less_room_once(desk: Desk) -> None:
    rooms: list[int] = []

    async def write(tokens: int) -> str:
        rooms.append(tokens)
        return f"Look at {tokens} tokens."

    desk.say(REFUSAL, text("done"), REFUSAL)
    talk = Talk(desk, window=40_000)
    assert (await talk.begin(write)).message.text() == "done"
    assert rooms[0] == 20_000
    assert rooms[1] < rooms[0] / 2
    assert talk.sent[0]["content"][0]["text"] == f"Look at {rooms[1]} tokens."
    for prompt, requests in ((write, 4), ("always the same", 5)):
        with pytest.raises(ApplicationError) as caught:
            await talk.begin(prompt)
        assert caught.value.type == "ContextOverflow"
        assert len(desk.asked) == requests


@pytest.mark.parametrize(
    ("counted", "seen", "cleared"),
    [
        (8_700, 2, 0),  # with the new output 14,400
        (13_000, 1, 1),  # then 13,300: nine tenths of what a prompt should have are no reason to hide what is new
        (13_800, 0, 1),  # it fits without the new output alone
        (40_000, 3, 3),  # too long in any case, but by much less
        (20_000, 1, 1),
        (20_000, 0, 0),
    ],
)
async def test_a_clearing_frees_much_and_spares_new_outputs_where_it_can(counted: int, seen: int, cleared: int) -> None:
    def output() -> list[JsonObject]:
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": LONG}]}]

    inputs = [[user_message("Look.")], *(output() for _ in range(seen))]
    usage = ModelUsage(input_tokens=counted)
    reply = ModelMessage(content=[{"type": "text", "text": "?"}], stop_reason="x", usage=usage, model="")
    past = Conversation(OPENING, [Entry(input=added, reply=reply) for added in inputs], inputs, "head")
    window = Window(1_000_000, long_context_threshold=14_500)
    assert (await NextPrompt(window, past, [], output()).first_draft()).view.cleared == cleared


def test_settings_go_before_the_list() -> None:
    endpoint = AnthropicModel(windows={"mine": 32_768, "claude-opus*": 500_000})
    models = ("mine", "claude-opus-5-5", "anthropic/claude-haiku-4-5", "odd")
    assert [endpoint.window(model).tokens for model in models] == [
        *(32_768, 500_000, 200_000),
        limits.UNKNOWN_WINDOW_TOKENS,
    ]
    mine, haiku = endpoint.window("mine"), endpoint.window("claude-haiku-5-5")
    assert mine.prompt_tokens == 16_384
    assert haiku.target < 100_000, "longer prompts cost five times as much"
    assert haiku.tokens == 1_000_000
    assert (mine.target, mine.reply_tokens(30_000)) == (26_214, 2_768)
    assert mine.reply_tokens(40_000) == limits.LEAST_OUTPUT_TOKENS


@pytest.mark.parametrize(
    ("value", "windows"),
    [("200000", {"*": 200_000}), ("mine=32768, qwen*=131072", {"mine": 32_768, "qwen*": 131_072}), ("", {})],
)
def test_windows_are_set_for_all_models_or_by_name(
    monkeypatch: pytest.MonkeyPatch, value: str, windows: dict[str, int]
) -> None:
    monkeypatch.setenv("SUPERVISOR_MODEL_WINDOW", value)
    assert Settings(_env_file=None).model_window == windows
    monkeypatch.setenv("SUPERVISOR_MODEL_WINDOW", "mine=large")
    with pytest.raises(ValueError, match="name=tokens"):
        Settings(_env_file=None)
    monkeypatch.setenv("SUPERVISOR_MODEL_WINDOW", "mine=١٢")
    with pytest.raises(ValueError, match=r"^SUPERVISOR_MODEL_WINDOW\.mine: Input should be a valid integer"):
        load_settings()
