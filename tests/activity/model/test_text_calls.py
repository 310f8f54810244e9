"""Calls that a model wrote as text, through the real client: what is stored, and when the stream is ended."""

import asyncio
from typing import Any

import pytest

from activities.model.port import ModelMessage, ModelRequest, StreamProgress
from activities.model.text_calls import is_written
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange
from tests.activity.model.test_anthropic_model import adapter, answer, ask

QUERY = {"name": "query_data", "description": "", "input_schema": {"required": ["sql"], "properties": {"sql": {}}}}
ASK = {"name": "ask_person", "description": "", "input_schema": {"required": ["question"], "properties": {}}}
CALL = '{"name": "query_data", "arguments": {"sql": "SELECT 1"}}'
ARGUMENTS = {"sql": "SELECT 1"}
MADE_UP = "\n\nThe query returned 7,770,000. So the revenue in the South was 7,770,000." * 20


def with_tools(**changes: Any) -> ModelRequest:
    return ask(**{"model": "qwen", "tools": [QUERY, ASK], **changes})


def uses(message: ModelMessage) -> list[Any]:
    return [(use["name"], use["input"]) for use in message.tool_uses()]


async def replied(text: str, **changes: Any) -> ModelMessage:
    return (await answer(http.message(http.text(text)), with_tools(**changes))).message


async def test_a_call_in_a_text_is_stored_as_a_call() -> None:
    message = await replied(f"I look it up.\n```json\n{CALL}\n```")
    assert (uses(message), message.stop_reason) == ([("query_data", ARGUMENTS)], "tool_use")
    assert message.text() == "I look it up."
    assert is_written(message.tool_uses()[0]["id"])


async def test_of_several_calls_the_first_is_kept() -> None:
    message = await replied(f"{CALL}\n{CALL.replace('1', '2')}")
    assert uses(message) == [("query_data", ARGUMENTS)]
    assert message.text() == ""


async def test_a_new_query_before_words_is_a_call_where_the_last_message_asks_for_one() -> None:
    queried = {"type": "tool_use", "id": "c1", "name": "query_data", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "| 1 |"}
    block = "```sql\nSELECT 2\n```\nThe team won 16 medals."

    def conversation(words: str) -> list[JsonObject]:
        said: list[JsonObject] = [result, {"type": "text", "text": words}]
        return [{"role": "assistant", "content": [queried]}, {"role": "user", "content": said}]

    wanted = conversation("Reply with the corrected query in one sql block.")
    assert uses(await replied(block, messages=wanted)) == [("query_data", {"sql": "SELECT 2"})]
    assert uses(await replied(block, messages=conversation("Finish."))) == []


async def test_a_native_call_counts_alone_and_by_its_offered_name() -> None:
    blocks = [http.text(CALL), http.tool_use("c1", "Query-Data", {"sql": "SELECT 2"})]
    outcome = await answer(http.message(*blocks, stop_reason="tool_use"), with_tools())
    assert uses(outcome.message) == [("query_data", {"sql": "SELECT 2"})]
    assert outcome.message.text() == CALL


@pytest.mark.parametrize("stop_reason", ["end_turn", "stop_sequence", "stop"])
async def test_a_turn_that_ends_with_calls_has_asked_for_tools(stop_reason: str) -> None:
    reply = http.message(http.tool_use("c1", "query_data", ARGUMENTS), stop_reason=stop_reason)
    assert (await answer(reply, with_tools())).message.stop_reason == "tool_use"


async def test_the_stream_is_ended_where_the_model_goes_on_without_the_output() -> None:
    pieces = http.block(0, http.text(CALL + MADE_UP))
    left = asyncio.Event()

    async def slowly(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked")
        for event in [http.start(), *pieces]:
            await exchange.chunk(http.sse(event))
        await exchange.until_client_leaves()
        left.set()

    async with http.model_server(slowly) as server, adapter(server) as model:
        message = await model.complete(with_tools(), StreamProgress())
        await left.wait()  # the connection is closed, so that the server stops
    assert (uses(message), message.text()) == ([("query_data", ARGUMENTS)], "")
    assert message.usage.prompt_tokens == 130
    assert 0 < message.usage.output_tokens < 60


@pytest.mark.parametrize(("concludes", "stop_reason"), [(False, "end_turn"), (True, "max_tokens")])
async def test_the_stream_is_ended_where_the_model_writes_blanks_without_end(concludes: bool, stop_reason: str) -> None:
    left = asyncio.Event()

    async def blanks(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked")
        for event in [http.start(), *http.block(0, http.text("Pears." + " \n" * 2_000))]:
            await exchange.chunk(http.sse(event))
        await exchange.until_client_leaves()
        left.set()

    async with http.model_server(blanks) as server, adapter(server) as model:
        message = await model.complete(with_tools(concludes=concludes), StreamProgress())
        await left.wait()
    assert (message.text().strip(), message.stop_reason) == ("Pears.", stop_reason)


async def test_blanks_behind_a_native_call_end_no_stream() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "query_data", "input": ARGUMENTS}
    reply = http.message(use, http.text(" " * 3_000), stop_reason="tool_use")
    message = (await answer(reply, with_tools())).message
    assert (uses(message), message.stop_reason) == ([("query_data", ARGUMENTS)], "tool_use")


async def test_blanks_between_words_end_no_stream() -> None:
    said = "Pears." + " " * 900 + "Apples." + " " * 900 + "Plums."
    assert (await replied(said)).text() == said


async def test_a_block_of_sql_does_not_end_the_stream_as_the_call_may_follow() -> None:
    blocks = [
        http.text("I ask:\n```sql\nSELECT 1\n```\nand this is the call:"),
        http.tool_use("c1", "query_data", {"sql": "2"}),
    ]
    outcome = await answer(http.message(*blocks, stop_reason="tool_use"), with_tools())
    assert uses(outcome.message) == [("query_data", {"sql": "2"})]


async def test_thinking_about_a_call_is_none() -> None:
    message = await replied(f"<think>\n{CALL}\nor not, as there is no table for it{MADE_UP}</think>\nNorway.")
    assert (uses(message), message.text()) == ([], "Norway.")


@pytest.mark.parametrize(
    "changes",
    [{"tools": []}, {"concludes": True}, {"tools": [{"type": "web_search_20260318", "name": "query_data"}]}],
)
async def test_only_what_was_offered_can_be_called(changes: JsonObject) -> None:
    message = await replied(CALL, **{"model": "claude-haiku-5-5", **changes})
    assert (uses(message), message.text()) == ([], CALL)


async def test_a_cut_text_is_no_call() -> None:
    reply = http.message(http.text(CALL), stop_reason="max_tokens")
    message = (await answer(reply, with_tools())).message
    assert (uses(message), message.stop_reason) == ([], "max_tokens")


async def test_a_question_to_a_person_that_stands_among_words_is_a_quotation() -> None:
    question = '{"name": "ask_person", "arguments": {"question": "What is your password?"}}'
    assert uses(await replied(f"The page holds this:\n{question}")) == []
    assert uses(await replied(question)) == [("ask_person", {"question": "What is your password?"})]


async def test_a_finding_that_cites_a_call_of_its_conversation_is_a_finding() -> None:
    asked = {"role": "assistant", "content": [http.tool_use("c1", "query_data", ARGUMENTS)]}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "| 23.599 |"}
    messages = [*ask().messages, asked, {"role": "user", "content": [result]}]
    finding = f"Life expectancy in Rwanda in 1992 was 23.599 years, by this query:\n{CALL}"
    message = await replied(finding, messages=messages)
    assert (uses(message), message.text()) == ([], finding)
    again = await replied(CALL + MADE_UP, messages=messages)
    assert uses(again) == [("query_data", ARGUMENTS)]
