"""The server in front of the real client: streaming, refusals, scripted faults and replies, its process."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from temporal_supervisor.console import demo
from temporal_supervisor.standin.__main__ import main
from temporal_supervisor.standin.server.api_reply import ApiReply
from temporal_supervisor.standin.server.app import BrainServer, serving
from tests.standin.conftest import FOOTER, Served, text_of


async def test_a_stream_brings_text_in_small_pieces_and_ends_with_usage(served: Served) -> None:
    pieces = []
    async with served.client.messages.stream(
        model="claude-opus-5-5", max_tokens=1000, messages=[{"role": "user", "content": "Tell me about gear wheels."}]
    ) as stream:
        async for event in stream:
            if event.type == "text":
                pieces.append(event.text)
        message = await stream.get_final_message()
    assert len(pieces) > 3
    assert "".join(pieces) == text_of(message)
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens == pytest.approx(len(text_of(message)) / 4, abs=1)
    assert FOOTER in text_of(message)


async def test_a_request_without_stream_gets_the_whole_message(served: Served) -> None:
    said: list[Any] = [{"role": "user", "content": "Tell me about gear wheels."}]
    message = await served.client.messages.create(model="claude-opus-5-5", max_tokens=1000, messages=said)
    streamed = await served.ask(model="claude-opus-5-5", max_tokens=1000, messages=said)
    assert message.model_dump(exclude={"id"}) == streamed.model_dump(exclude={"id"})
    assert FOOTER in text_of(message)


@pytest.mark.parametrize(
    ("body", "says"),
    [
({"model": "m", "max_tokens": 1}, "messages"),
({"model": "m", "max_tokens": 1, "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {}}]},
            {"role": "user", "content": "y"}]}, "toolu_1"),
],
)  # fmt: skip
async def test_what_the_api_refuses_is_refused(served: Served, body: dict[str, Any], says: str) -> None:
    reply = await served.http.post("/v1/messages", json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert says in reply.json()["error"]["message"]


@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")  # which Python leaves open
def test_a_port_that_there_is_not_is_an_error_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda _: 0)  # of this process it stays as it is
    assert main(["--port", "99999"]) == 1
    assert capsys.readouterr().err == (
        "the stand-in model cannot start: port 99999 is none: name one from 0 to 65535\n"
    )


async def test_sigterm_stops_the_process_cleanly_even_in_a_stalled_stream(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"rules": [{"stall_after": 2}]}))
    words = ["-m", "temporal_supervisor.standin", "--port", "0", "--config", str(config)]
    async with (
        demo.Served("the stand-in model", words, os.environ, tmp_path / "log", "http://") as process,
        httpx2.AsyncClient(base_url=process.line.rpartition(" ")[2], trust_env=False) as http,
    ):
        body = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
        async with http.stream("POST", "/v1/messages", json=body) as reply:
            assert reply.status_code == 200
            os.kill(process.pid, signal.SIGTERM)
            assert await process.wait() == 0


async def test_a_prompt_longer_than_the_window_is_refused(served: Served) -> None:
    await served.config(window=600)
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 600 maximum"):
        await served.ask(messages=[{"role": "user", "content": "word " * 1000}])


@pytest.mark.parametrize(
    ("tools", "says"),
    [(["web_search"], "web_search_tool_result"), (["web_search", "web_fetch"], "web_fetch_tool_result")],
)
async def test_its_web_is_bundled_and_every_sentence_is_cited(served: Served, tools: list[str], says: str) -> None:
    """The real client reads the blocks from the stream as those of the provider."""
    url = "https://pages.example/iowa-wind"
    question = f"What share of its electricity did Iowa get from wind? See {url}."
    reply = await served.ask(question, tools=[{"type": f"{name}_20250910", "name": name} for name in tools])
    blocks: list[Any] = [block.to_dict() for block in reply.content]
    ran, result, *texts = blocks
    assert (ran["type"], result["type"], result["tool_use_id"]) == ("server_tool_use", says, ran["id"])
    assert ran["input"] in ({"url": url}, {"query": "share electricity Iowa get wind See https pages example iowa"})
    cited = [block for block in texts if block.get("citations")]
    assert cited
    assert all(block["citations"][0]["cited_text"] == str(block["text"]).strip() for block in cited)
    assert any("Iowa" in str(block["text"]) for block in cited)
    assert reply.usage.server_tool_use is not None
    counts = reply.usage.server_tool_use
    assert (counts.web_search_requests, counts.web_fetch_requests) == ((1, 0) if len(tools) == 1 else (0, 1))
    again = await served.ask(
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
        messages=[
            {"role": "user", "content": question},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": "Go on."},
        ],
    )
    assert "server_tool_use" not in [block.type for block in again.content]


async def test_a_status_comes_so_often_with_its_type_and_headers(served: Served) -> None:
    await served.config(rules=[{"status": 529, "headers": {"retry-after": "7"}, "times": 2}])
    for _ in range(2):
        with pytest.raises(anthropic.APIStatusError) as caught:
            await served.ask()
        assert (caught.value.status_code, caught.value.type) == (529, "overloaded_error")
        assert caught.value.response.headers["retry-after"] == "7"
    assert (await served.ask()).stop_reason == "end_turn"


async def test_a_scripted_reply_arrives_as_it_was_written(served: Served) -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "Let me see what this is about.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Two calls follow: é\u2028漢."},
        {"type": "tool_use", "id": "toolu_a", "name": "one", "input": {"empty": None, "half": 0.5}},
        {"type": "future_block", "payload": {"x": [1, 2]}},
    ]
    written = ApiReply(content, "tool_use", usage={"input_tokens": 11, "output_tokens": 22})
    async with serving(BrainServer(lambda request: written)) as url:
        reply = await replace(served, client=served.client.with_options(base_url=url)).ask()
    assert [block.to_dict(mode="json") for block in reply.content] == content
    assert (reply.stop_reason, reply.usage.input_tokens, reply.usage.output_tokens) == ("tool_use", 11, 22)
