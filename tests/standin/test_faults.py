"""Every scripted fault as the real client sees it."""

from typing import Any

import anthropic
import httpx2
import pytest

from standin.server.faults import BadConfig, parse_config
from tests.standin.conftest import Served


async def test_a_status_comes_with_its_type_and_headers(served: Served) -> None:
    await served.fault({"status": 429, "headers": {"retry-after": "7"}})
    with pytest.raises(anthropic.RateLimitError) as caught:
        await served.ask()
    assert caught.value.response.headers["retry-after"] == "7"
    assert caught.value.type == "rate_limit_error"


async def test_an_overload_passes_after_so_many_requests(served: Served) -> None:
    await served.fault({"status": 529}, times=2)
    for _ in range(2):
        with pytest.raises(anthropic.APIStatusError) as caught:
            await served.ask()
        assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")
    assert (await served.ask()).stop_reason == "end_turn"


async def test_a_cut_stream_is_a_protocol_error(served: Served) -> None:
    await served.fault({"cut_after": 3})
    with pytest.raises(httpx2.RemoteProtocolError):
        await served.ask()


@pytest.mark.parametrize("body", ["<html>Welcome to the gateway</html>", "", "{}", '{"id": "msg_'])
async def test_garbage_has_status_200(served: Served, body: str) -> None:
    await served.fault({"garbage": body})
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    reply = await served.http.post("/v1/messages", json=ask)
    assert (reply.status_code, reply.text) == (200, body)
    assert (await served.ended_calls())[-1]["event"] == "failed"


async def test_max_tokens_cuts_a_tool_call_in_the_middle_of_its_json(served: Served) -> None:
    long = {"type": "tool_use", "id": "toolu_a", "name": "write", "input": {"text": "abc " * 50}}
    await served.fault({"reply": {"content": [long]}})
    reply = await served.ask(max_tokens=20)
    call = reply.content[0]
    assert reply.stop_reason == "max_tokens"
    assert call.type == "tool_use"
    assert call.input != long["input"]


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


def test_a_wrong_configuration_is_refused() -> None:
    with pytest.raises(BadConfig, match="garbage"):
        parse_config('{"rules": [{"garbage": 7}]}')
