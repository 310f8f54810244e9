"""Servers of others with the real client: what they drop, cut, end otherwise, and how slowly they may answer."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from activities.model.port import ModelFailure, StreamProgress
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange
from tests.activity.model.test_anthropic_model import adapter, answer, ask

SCHEMA: JsonObject = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
TOOL: JsonObject = {
    "name": "query_data",
    "input_schema": {"required": ["sql"], "properties": {"sql": {"type": "string"}}},
}


def to_own(**changes: Any) -> Any:
    return ask(**{"model": "qwen", "output_schema": SCHEMA, **changes})


async def test_json_is_asked_for_in_words_where_schemas_are_dropped() -> None:
    reply = http.message(http.text('Sure!\n```json\n{"colour": "red"}\n```'))
    outcome = await answer(reply, to_own(traits=ModelTraits(schemas=False)))
    assert "output_config" not in outcome.body
    assert '"colour"' in str(outcome.body["messages"])


async def test_a_schema_is_sent_where_it_is_kept_to() -> None:
    reply = http.message(http.text('{"colour": "red"}'))
    outcome = await answer(reply, to_own(traits=ModelTraits(schemas=True)))
    assert outcome.body["output_config"]["format"]["schema"] == SCHEMA
    assert "colour" not in str(outcome.body["system"])


@pytest.mark.parametrize(
    ("structured", "model", "facts", "schemas"),
    [
        (None, "qwen", EndpointFacts(), True),  # nobody asked: as it always was
        (None, "qwen", EndpointFacts(address="a:1"), False),  # asked, and not answered
        (None, "claude-opus-5-5", EndpointFacts(address="a:1"), True),
        (None, "qwen", EndpointFacts(address="a:1", models={"qwen": ModelTraits(schemas=True)}), True),
        ("text", "qwen", EndpointFacts(models={"qwen": ModelTraits(schemas=True)}), False),
        ("format", "qwen", EndpointFacts(models={"qwen": ModelTraits(schemas=False)}), True),
    ],
)
async def test_how_json_is_asked_for_is_set_or_found_or_safe(
    structured: str | None, model: str, facts: EndpointFacts, schemas: bool
) -> None:
    async with adapter(structured=structured) as endpoint:
        assert endpoint.traits_for_run(model, facts).schemas is schemas


async def test_a_run_keeps_the_window_that_was_set_or_found_when_it_began() -> None:
    found = EndpointFacts(address="a:1", models={"qwen": ModelTraits(window=16_384)})
    async with adapter() as endpoint, adapter(windows={"qwen": 8192}) as other:
        assert endpoint.traits_for_run("qwen", found).window == 16_384
        assert other.traits_for_run("qwen", found).window == 8192
        assert endpoint.traits_for_run("other", found).window == limits.UNKNOWN_WINDOW_TOKENS
        # Another Worker's setting changes nothing for a run that has begun.
        assert other.window("qwen", endpoint.traits_for_run("qwen", found)).tokens == 16_384


async def test_a_server_that_ends_calls_with_end_turn_has_asked_for_tools() -> None:
    outcome = await answer(http.message(http.tool_use("c1", "query_data", {"sql": "1"})), to_own(tools=[TOOL]))
    assert outcome.message.stop_reason == "tool_use"


def long_prompt(tokens: int) -> list[JsonObject]:
    words = int(tokens * limits.CHARS_PER_TOKEN / 4)
    thought = {"type": "thinking", "thinking": "hm, " * 20_000, "signature": ""}
    return [
        {"role": "user", "content": [http.text("row " * words)]},
        {"role": "assistant", "content": [thought, http.text("yes")]},
        {"role": "user", "content": [http.text("so?")]},
    ]


@pytest.mark.parametrize(
    ("sent", "read", "is_cut"), [(9000, 4096, True), (9000, 5000, False), (9000, 300, False), (2000, 1100, False)]
)
async def test_a_prompt_that_was_cut_silently_is_noticed_by_its_usage(sent: int, read: int, is_cut: bool) -> None:
    usage = {**http.USAGE, "input_tokens": read, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    reply = http.stream(http.start(usage=usage), *http.block(0, http.text("Norway.")), *http.finish())
    async with http.model_server(reply) as server, adapter(server) as model:
        call = model.complete(ask(model="qwen", messages=long_prompt(sent)), StreamProgress())
        if not is_cut:
            assert (await call).text() == "Norway."
            return
        with pytest.raises(
            ModelFailure, match=r"read 4,096 of about 9,0\d\d tokens.*SUPERVISOR_MODEL_WINDOW=qwen=4096"
        ) as caught:
            await call
        assert caught.value.kind == "ContextOverflow"


async def test_further_fields_are_part_of_every_request() -> None:
    extra = {"temperature": 0.2, "chat_template_kwargs": {"enable_thinking": False}}
    outcome = await answer(http.message(http.text("fine")), ask(), extra=extra)
    assert {name: outcome.body[name] for name in extra} == extra
    assert outcome.body["model"] == "claude-haiku-5-5"


def slowly(first: float, between: float, words: int) -> http.Reply:
    """A server that sends its head at once, reads the prompt, and writes a word at a time."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked")
        await exchange.chunk(http.sse(http.start()))
        await asyncio.sleep(first)
        text = http.text("word " * words)
        for event in [*http.block(0, text), *http.finish()]:
            await exchange.chunk(http.sse(event))
            await asyncio.sleep(between)
        await http.eof(exchange)

    return reply


IDLE = timedelta(seconds=0.5)  # for 90 s: all times here are a 180th of a slow server's


async def test_a_slow_server_is_not_cut() -> None:
    """A prompt of 3,000 tokens is read for ten minutes, the reply written at two tokens a second."""
    reply = slowly(first=10 * 60 / 180, between=0.5 / 180, words=100)
    request = ask(model="qwen", tokens=3000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MODEL_READS_PER_SECOND", limits.MODEL_READS_PER_SECOND * 180)
        outcome = await answer(reply, request, idle_timeout=IDLE)
    assert outcome.message.text() == "word " * 100


async def test_silence_after_the_first_word_is_a_dead_stream_and_its_setting_is_named() -> None:
    async def stalls(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked")
        for event in [http.start(), *http.block(0, http.text("wor"))]:
            await exchange.chunk(http.sse(event))
        await exchange.until_client_leaves()

    async with http.model_server(stalls) as server, adapter(server, idle_timeout=IDLE) as model:
        with pytest.raises(ModelFailure, match="SUPERVISOR_MODEL_IDLE_SECONDS") as caught:
            await model.complete(ask(model="qwen", tokens=100_000), StreamProgress())
    assert caught.value.kind == "IdleTimeout"
