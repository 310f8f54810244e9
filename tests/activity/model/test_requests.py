"""The requests that are sent: what a model takes, what an endpoint refused, where the cache breakpoints stand."""

import asyncio
import json
from typing import Any

import pytest
from pydantic import Field

from activities.model.anthropic_model import AnthropicModel
from activities.model.port import CacheUse, ModelRequest, user_message
from activities.model.request_body import profile_of, request_body
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.replies.filled_form import filled_form
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange, Reply
from tests.activity.model.test_anthropic_model import IDLE, SCHEMA, answer, ask, fail


class Draft(Model):
    """A form with a field of each kind."""

    words: str
    more: list[str] = []
    choice: int | None = None
    rest: list[str] = Field(default_factory=list)


def test_a_form_asks_for_what_has_a_default_but_not_for_what_may_be_left_out() -> None:
    assert AnthropicModel().output_schema(Draft)["required"] == ["words", "more", "choice"]


THOUGHT: JsonObject = {"type": "thinking", "thinking": "", "signature": "c2ln"}
ADD: JsonObject = {"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}
OPUS, OLD, UNKNOWN = "claude-opus-5-5", "claude-haiku-4-5-20251001", "qwen3-coder"


SILENCE = IDLE.total_seconds() * 2.7  # as 4 minutes to the 90 seconds of the real limit


def silent(block: JsonObject, sign: bytes) -> Reply:
    """A reply whose first block opens, then says nothing for a while but `sign`, then comes at once."""
    opened, *rest = http.block(0, block)

    async def reply(exchange: Exchange) -> None:
        await http.stream(http.start(), opened, end=pause)(exchange)

    async def pause(exchange: Exchange) -> None:
        for _ in range(round(SILENCE / 0.1)):
            await exchange.chunk(sign)
            await asyncio.sleep(0.1)
        for event in [*rest, *http.block(1, http.text("done")), *http.finish()]:
            await exchange.chunk(http.sse(event))
        await http.eof(exchange)

    return reply


PING = http.sse({"type": "ping"})


@pytest.mark.parametrize(
    ("block", "sign"),
    [
        (THOUGHT, PING),
        (http.tool_use("t1", "write", {"text": "x" * 5000}), PING),
        (http.text(""), http.sse(http.delta(0, {"type": "text_delta", "text": "."}))),
    ],
    ids=["thinks", "writes", "slow text"],
)
async def test_a_stream_lives_as_long_as_its_open_block_gives_signs(block: JsonObject, sign: bytes) -> None:
    assert (await answer(silent(block, sign), idle_timeout=IDLE)).message.text().strip(".") == "done"


@pytest.mark.parametrize(
    ("model", "thinks", "effort", "most_output"),
    [
        ("claude-opus-5-5", True, True, 128_000),
        ("claude-fable-5-2", True, True, 128_000),
        ("anthropic/claude-opus-4.8", True, True, 64_000),
        ("us.anthropic.claude-sonnet-4-6-v1", True, True, 64_000),
        ("claude-opus-4-5", False, False, 64_000),
        ("claude-haiku-4-5-20251001", False, False, 64_000),
        ("claude-3-7-sonnet-20250219", False, False, None),
        ("qwen3-coder", False, False, None),
    ],
)
def test_a_model_is_known_by_its_name(model: str, thinks: bool, effort: bool, most_output: int | None) -> None:
    profile = profile_of(model)
    assert (profile.thinking, profile.effort, profile.most_output) == (thinks, effort, most_output)
    body = request_body(ask(model=model, effort="low", output_schema=SCHEMA), profile, "format")
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert body["output_config"] == ({"effort": "low", **form} if effort else form)


@pytest.mark.parametrize(
    ("model", "wanted", "setting", "sent", "fullest"),
    [
        (OPUS, 128_000, None, 128_000, True),
        (OLD, 64_000, None, 64_000, True),
        (UNKNOWN, 64_000, None, 16_000, False),
        (UNKNOWN, 64_000, 8_000, 8_000, True),
    ],
)
async def test_a_reply_may_be_as_long_as_the_model_can_write(
    model: str, wanted: int, setting: int | None, sent: int, fullest: bool
) -> None:
    request = ask(model=model, max_tokens=wanted)
    outcome = await answer(http.message(http.text("Hi")), request, max_output=setting)
    assert (outcome.body["max_tokens"], outcome.message.fullest) == (sent, fullest)


@pytest.mark.parametrize(
    ("part", "words"), [("thinking", '"thinking"'), ("cache_control", "cache_control"), ("effort", '"effort"')]
)
async def test_a_part_that_the_endpoint_does_not_take_is_left_out_by_setting(part: str, words: str) -> None:
    request = ask(model=OPUS, tools=[ADD], cache="conversation", effort="low")
    for without, sent in ((), True), ((part,), False):
        body = json.dumps((await answer(http.message(http.text("Hi")), request, without=without)).body)
        assert (words in body) is sent


@pytest.mark.parametrize(
    "words",
    [
        "thinking: Extra inputs are not permitted",
        "output_config: Extra inputs are not permitted",
        "tools.0.type: unsupported 'web_search_20250305'",
        "max_tokens: 64000 > 8192, which is the maximum",
    ],
)
async def test_a_refusal_of_a_part_names_the_settings_that_leave_it_out(words: str) -> None:
    failure = await fail(http.error(400, "invalid_request_error", words))
    assert (failure.kind, failure.retryable) == ("ModelNotServed", False)
    assert "does not take a part of this request: leave that out by SUPERVISOR_MODEL_WITHOUT" in failure.message
    assert words in failure.message


@pytest.mark.parametrize(
    "words",
    [
        "messages.3.content.0: `thinking` blocks in the latest assistant message cannot be modified",
        "messages.0.content.1: Extra inputs are not permitted",
    ],
)
async def test_a_refusal_of_what_is_in_a_request_is_the_requests(words: str) -> None:
    assert (await fail(http.error(400, "invalid_request_error", words))).kind == "ProviderRejected"


def wide_schema(optional: int = 0, unions: int = 0) -> JsonObject:
    kinds = {f"o{n}": {"type": "string"} for n in range(optional)}
    either = {f"u{n}": {"anyOf": [{"type": "string"}, {"type": "null"}]} for n in range(unions)}
    item = {"type": "object", "properties": {**kinds, **either}, "required": list(either)}
    return {"type": "object", "properties": {"all": {"type": "array", "items": item}}, "required": ["all"]}


@pytest.mark.parametrize(
    ("schema", "in_words"),
    [(wide_schema(optional=24, unions=16), False), (wide_schema(optional=25), True), (wide_schema(unions=17), True)],
)
def test_a_schema_too_complex_for_the_api_is_sent_in_words(schema: JsonObject, in_words: bool) -> None:
    body = request_body(ask(model=OPUS, output_schema=schema), profile_of(OPUS), "format")
    assert ("output_config" not in body) == in_words
    assert (filled_form(schema) in body["messages"][-1]["content"][-1]["text"]) == in_words


def test_a_schema_that_no_form_shows_stands_with_the_rules() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}}}
    body = request_body(ask(model=OPUS, output_schema=schema), profile_of(OPUS), "text")
    assert json.dumps(schema) in body["system"]
    assert body["messages"] == ask().messages


def test_a_small_model_is_shown_the_form_where_the_api_has_it() -> None:
    schema = wide_schema(optional=1)
    shown = request_body(ask(model=OPUS, output_schema=schema), profile_of(OPUS), "format", shows_form=True)
    assert shown["output_config"]["format"]["schema"] == schema
    assert filled_form(schema) in shown["messages"][-1]["content"][-1]["text"]


def turn(number: int, calls: int = 3) -> list[JsonObject]:
    """A turn with parallel tool calls, and their results."""
    uses = [http.tool_use(f"t{number}.{n}", "add", {}) for n in range(calls)]
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": "1"} for use in uses]
    return [{"role": "assistant", "content": [THOUGHT, *uses]}, {"role": "user", "content": results}]


def body_of(use: CacheUse, turns: int, **changes: Any) -> JsonObject:
    messages = [user_message("brief"), *(message for n in range(turns) for message in turn(n))]
    request: ModelRequest = ask(model=OPUS, messages=messages, tools=[ADD], cache=use, **changes)
    return request_body(request, profile_of(OPUS), "format")


def marks(body: JsonObject) -> list[str]:
    """Where the breakpoints are."""
    places = [("tools", body["tools"]), ("system", body["system"] if isinstance(body["system"], list) else [])]
    places += [(f"{at}", message["content"]) for at, message in enumerate(body["messages"])]
    return [f"{name}.{n}" for name, blocks in places for n, block in enumerate(blocks) if "cache_control" in block]


@pytest.mark.parametrize(
    ("use", "turns", "places"),
    [
        ("none", 2, []),
        ("prefix", 2, ["system.0"]),
        ("conversation", 0, ["system.0", "0.0"]),
        ("conversation", 1, ["system.0", "0.0", "2.2"]),
        ("conversation", 5, ["system.0", "8.2", "10.2"]),
    ],
)
def test_breakpoints_stand_on_the_system_and_on_the_last_two_messages(
    use: CacheUse, turns: int, places: list[str]
) -> None:
    assert marks(body_of(use, turns)) == places
