"""Every scripted fault as the real client sees it."""

import asyncio
from typing import Any

import anthropic
import httpx2
import pytest

from tests.standin.conftest import Served, json_of, text_of


async def test_a_status_comes_with_its_type_headers_and_details(served: Served) -> None:
    await served.fault(
        {"status": 429, "headers": {"retry-after": "7"}, "details": {"error_code": "enforced_spend_limit_reached"}}
    )
    with pytest.raises(anthropic.RateLimitError) as caught:
        await served.ask()
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.type == "rate_limit_error"
    assert caught.value.error_code == "enforced_spend_limit_reached"


async def test_an_overload_passes_after_so_many_requests(served: Served) -> None:
    await served.fault({"status": 529}, times=2)
    for _ in range(2):
        with pytest.raises(anthropic.APIStatusError) as caught:
            await served.ask()
        assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")
    assert (await served.ask()).stop_reason == "end_turn"


async def test_after_leaves_the_first_requests_alone(served: Served) -> None:
    await served.fault({"status": 503}, times=1, after=1)
    await served.ask()
    with pytest.raises(anthropic.APIStatusError):
        await served.ask()
    await served.ask()


async def test_rules_match_the_decoded_call_and_the_model(served: Served) -> None:
    await served.fault({"status": 400}, call="run é/*/turn.*", model="claude-haiku-*")
    header = {"x-supervisor-call": "run%20%C3%A9/t1/1/turn.1"}
    with pytest.raises(anthropic.BadRequestError):
        await served.ask(extra_headers=header)
    await served.ask(extra_headers=header, model="other")
    await served.ask(extra_headers={"x-supervisor-call": "run%20%C3%A9/plan.1.1"})


async def test_an_html_body_has_no_error_type(served: Served) -> None:
    await served.fault({"status": 502, "body": "<html>Bad Gateway</html>"})
    with pytest.raises(anthropic.InternalServerError) as caught:
        await served.ask()
    assert caught.value.type is None
    assert "Bad Gateway" in str(caught.value.body)


async def test_a_cut_stream_is_a_protocol_error(served: Served) -> None:
    await served.fault({"cut_after": 3})
    with pytest.raises(httpx2.RemoteProtocolError):
        await served.ask()


async def test_a_cut_whole_reply_is_a_connection_error(served: Served) -> None:
    await served.fault({"cut_after": 0})
    with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
        await served.client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])


async def test_a_clean_end_without_message_stop_leaves_no_stop_reason(served: Served) -> None:
    await served.fault({"eof_after": 3})
    assert (await served.ask()).stop_reason is None


async def test_a_stall_without_pings_runs_into_the_read_timeout(served: Served) -> None:
    await served.fault({"stall_after": 3})
    with pytest.raises((httpx2.ReadTimeout, anthropic.APITimeoutError)):
        await served.ask(timeout=1.0)


async def test_a_stall_with_pings_never_times_out(served: Served) -> None:
    await served.fault({"stall_after": 3, "pings": True})
    pings = 0
    body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with served.http.stream("POST", "/v1/messages", json=body) as reply:
        async for line in reply.aiter_lines():
            pings += line == "event: ping"
            if pings == 3:  # one belongs to every stream
                break
    assert pings == 3


async def test_an_error_event_comes_in_a_stream_of_status_200(served: Served) -> None:
    await served.fault({"sse_error": {"type": "overloaded_error", "after": 2}})
    with pytest.raises(anthropic.APIStatusError) as caught:
        await served.ask()
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")


@pytest.mark.parametrize(("kind", "body"), [("html", b"<html"), ("empty", b""), ("json", b"{}"), ("broken_json", b"{")])
async def test_garbage_has_status_200(served: Served, kind: str, body: bytes) -> None:
    await served.fault({"garbage": kind})
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    reply = await served.http.post("/v1/messages", json=ask)
    assert reply.status_code == 200
    assert reply.content.startswith(body)
    assert (await served.ended_calls())[-1]["event"] == "failed"


async def test_a_refusal_says_nothing_but_why(served: Served) -> None:
    await served.fault({"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber"}})
    reply = await served.ask()
    assert (reply.content, reply.stop_reason) == ([], "refusal")
    assert reply.stop_details is not None
    assert reply.stop_details.category == "cyber"


async def test_max_tokens_cuts_a_tool_call_in_the_middle_of_its_json(served: Served) -> None:
    long = {"type": "tool_use", "name": "write", "input": {"text": "abc " * 50}}
    await served.fault({"reply": {"content": [long]}, "stop_reason": "max_tokens"})
    reply = await served.ask()
    call = reply.content[0]
    assert reply.stop_reason == "max_tokens"
    assert call.type == "tool_use"
    assert call.input != long["input"]


async def test_any_stop_reason_can_be_scripted(served: Served) -> None:
    await served.fault({"stop_reason": "something_new"})
    assert str((await served.ask()).stop_reason) == "something_new"


async def test_a_scripted_reply_arrives_as_it_was_written(served: Served) -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Let me see what this is about.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Two calls follow: é\u2028漢."},
        {"type": "tool_use", "id": "toolu_a", "name": "one", "input": {"empty": None, "half": 0.5}},
        {"type": "future_block", "payload": {"x": [1, 2]}},
    ]
    usage = {"input_tokens": 11, "output_tokens": 22}
    await served.fault({"reply": {"content": content, "usage": usage}})
    reply = await served.ask()
    assert [block.to_dict(mode="json") for block in reply.content] == content
    assert (reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens) == ("tool_use", 11, 22)


async def test_replies_follow_each_other_and_the_last_one_stays(served: Served) -> None:
    await served.fault({"replies": ["one", {"reply_json": {"two": 2}}]})
    assert text_of(await served.ask()) == "one"
    assert json_of(await served.ask()) == {"two": 2}
    assert json_of(await served.ask()) == {"two": 2}


async def test_delays_come_before_the_headers_and_between_the_pieces(served: Served) -> None:
    loop = asyncio.get_running_loop()
    await served.fault({"delay_ms": 200, "chunk_delay_ms": 30, "reply_text": "x" * 24 * 10})
    began = loop.time()
    body = {"model": "m", "max_tokens": 900, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with served.http.stream("POST", "/v1/messages", json=body) as reply:
        headers = loop.time() - began
        await reply.aread()
    assert headers >= 0.2
    assert loop.time() - began >= 0.2 + 0.3 * 0.9


async def test_a_wrong_configuration_is_refused_and_changes_nothing(served: Served) -> None:
    await served.fault({"reply_text": "kept"})
    reply = await served.http.post("/config", json={"rules": [{"fault": {"garbage": "tea"}}]})
    assert reply.status_code == 400
    assert "garbage" in reply.json()["error"]["message"]
    assert text_of(await served.ask()) == "kept"


async def test_a_limit_of_requests_refuses_what_exceeds_it(served: Served) -> None:
    await served.config(limit={"per_minute": 2, "burst_seconds": 30})
    assert (await served.ask()).stop_reason == "end_turn"
    with pytest.raises(anthropic.RateLimitError) as caught:
        await served.ask()
    assert 0 < int(caught.value.response.headers["retry-after"]) <= 30
