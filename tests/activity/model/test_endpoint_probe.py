"""Asking servers of models what they take, with the real client: servers that play the usual ones, and broken ones."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.model import endpoint_questions
from activities.model.endpoint_probe import EndpointMemory, EndpointProbe
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange, ModelServer
from tests.activity.model.test_anthropic_model import adapter

LLAMA_CPP = {"id": "qwen", "owned_by": "llamacpp", "meta": {"n_ctx": 16_384, "n_ctx_train": 32_768}}


class Played:
    """A server that takes some parts of the Messages API and ignores the others without a word."""

    def __init__(
        self, models: list[JsonObject], pages: dict[str, JsonObject] | None = None, takes: str = "", cuts: int = 0
    ) -> None:
        self.pages = {"/v1/models": {"data": models}, **(pages or {})}
        self.takes = takes.split()
        self.cuts = cuts
        self.posts: list[JsonObject] = []

    async def __call__(self, exchange: Exchange) -> None:
        path = exchange.path.partition("?")[0]
        if path in self.pages:
            await http.plain(200, self.pages[path])(exchange)
        elif path != "/v1/messages":
            await http.error(404, "not_found_error")(exchange)
        else:
            self.posts.append(exchange.body)
            await http.plain(200, self.message(exchange.body))(exchange)

    def message(self, body: JsonObject) -> JsonObject:
        words = len(json.dumps(body["messages"]).split())
        return {
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [self.block(body)],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": min(words, self.cuts or words), "output_tokens": 5},
        }

    def block(self, body: JsonObject) -> JsonObject:
        if "output_config" in body and "output_config" in self.takes:
            return http.text('{"colour": "red", "number": 1}')
        if "tool_choice" in body and "tool_choice" in self.takes:
            return http.tool_use("c1", "report_colour", {"colour": "red"})
        if "thinking" in body and "thinking" in self.takes:
            return {"type": "thinking", "thinking": "A greeting.", "signature": ""}
        return http.text("Good morning! How can I assist you today?")


@asynccontextmanager
async def asking(
    played: Any, *models: str, memory: EndpointMemory | None = None
) -> AsyncIterator[tuple[EndpointProbe, ModelServer, list[EndpointFacts]]]:
    reports = list[EndpointFacts]()
    async with http.model_server(played) as server, adapter(server) as model:
        probe = EndpointProbe(model, models, memory)
        probe.start(reports.append)
        try:
            yield probe, server, reports
        finally:
            await probe.stop()


async def found(played: Any, *models: str, memory: EndpointMemory | None = None) -> EndpointFacts:
    async with asking(played, *models, memory=memory) as (probe, _, reports):
        facts = await probe.facts()
        assert reports == [facts]
        return facts


async def test_a_server_that_drops_schemas_and_tool_choice_is_noticed() -> None:
    ps = {"models": [{"name": "qwen", "model": "qwen", "context_length": 4096}]}
    played = Played([{"id": "qwen", "object": "model"}], {"/api/ps": ps})
    facts = await found(played)
    assert facts.models == {"qwen": ModelTraits(window=4096, schemas=False, forced_tools=False, thinking=False)}
    [line] = facts.lines()
    assert line == (
        f"model endpoint {facts.address}: qwen, window 4,096 tokens, it ignores schemas, so JSON is asked for in "
        "words, it ignores tool_choice"
    )
    assert all(post["max_tokens"] <= 60 for post in played.posts)


async def test_a_server_that_honours_them_is_believed() -> None:
    played = Played([{"id": "m", "max_model_len": 32_768}], takes="output_config tool_choice thinking")
    facts = await found(played)
    assert facts.models == {"m": ModelTraits(window=32_768, schemas=True, forced_tools=True, thinking=True)}
    assert "window 32,768 tokens, it keeps to schemas, it thinks" in facts.lines()[0]


async def test_llama_cpp_says_its_window_of_a_slot_and_how_many_it_has() -> None:
    facts = await found(Played([LLAMA_CPP], {"/props": {"total_slots": 2}}))
    assert (facts.names, facts.slots, facts.traits("qwen").window) == (["qwen"], 2, 16_384)


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/props", {"default_generation_settings": {"n_ctx": 8192}}),
        ("/api/show", {"parameters": "stop  x\nnum_ctx                        8192"}),
        ("/api/v1/models", {"models": [{"key": "m", "loaded_instances": [{"config": {"context_length": 8192}}]}]}),
        ("/model/info", {"data": [{"model_name": "m", "model_info": {"max_input_tokens": 8192}}]}),
    ],
)
async def test_windows_are_found_where_servers_keep_them(path: str, page: JsonObject) -> None:
    assert (await found(Played([{"id": "m"}], {path: page}))).traits("m").window == 8192


async def test_a_long_prompt_tells_a_window_that_no_page_names() -> None:
    async with asking(Played([{"id": "m"}], cuts=4096)) as (probe, server, reports):
        await probe.facts()
        assert reports[0].traits("m").window is None  # it is told at once, and looked for in the background
        while (await probe.facts()).traits("m").window is None:
            await asyncio.sleep(0.01)
        assert (await probe.facts()).traits("m").window == endpoint_questions.DEFAULT_WINDOW
    read = Played([{"id": "m"}])
    async with asking(read) as (probe, server, _):
        await probe.facts()
        while len(server.requests) < 10:
            await asyncio.sleep(0.01)
        assert (await probe.facts()).traits("m").window is None


async def test_of_several_models_the_chosen_ones_are_asked_about_and_all_are_named() -> None:
    played = Played([{"id": "small", "max_model_len": 8192}, {"id": "large", "max_model_len": 32_768}])
    assert (await found(played)).only_name is None
    assert played.posts == []
    facts = await found(played, "large")
    assert {post["model"] for post in played.posts} == {"large"}
    assert facts.names == ["small", "large"]
    assert facts.traits("large").schemas is False


async def test_the_providers_own_models_are_known_by_their_names_at_a_gateway() -> None:
    played = Played([{"id": "claude-opus-5-5"}])
    facts = await found(played)
    assert (facts.only_name, played.posts) == ("claude-opus-5-5", [])


async def test_what_costs_tokens_is_asked_once_and_lists_at_each_start(tmp_path: Path) -> None:
    memory = EndpointMemory(tmp_path / "endpoints.json")
    played = Played([{"id": "m", "max_model_len": 8192}], takes="output_config")
    async with http.model_server(played) as server, adapter(server) as model:
        for window in (8192, 16_384):
            played.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": window}]}
            probe = EndpointProbe(model, [], memory)
            probe.start(lambda facts: None)
            expected = ModelTraits(window=window, schemas=True, forced_tools=False, thinking=False)
            assert (await probe.facts()).traits("m") == expected
            await probe.stop()
    assert len(played.posts) == 3


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"k": {"window": "x"}}'])
async def test_a_memory_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "endpoints.json"
    file.write_bytes(content)
    memory = EndpointMemory(file)
    assert memory.recall("a", "m") == ModelTraits()
    memory.remember("a", "m", ModelTraits(window=1, schemas=True))
    assert memory.recall("a", "m") == ModelTraits(schemas=True)
    EndpointMemory(tmp_path / "none" / "endpoints.json").remember("a", "m", ModelTraits(schemas=True))


@pytest.mark.parametrize(
    "page",
    [
        http.plain(200, "<html>", content_type="text/html"),
        http.plain(200, "[1]"),
        http.plain(200, {"data": {"id": "m"}}),
        http.plain(200, {"data": [{"id": 1}, "m", {"id": "m", "max_model_len": "many"}]}),
        http.error(404, "not_found_error"),
        http.error(401, "authentication_error"),
    ],
)
async def test_an_endpoint_that_lists_nothing_of_use_has_been_asked(page: http.Reply) -> None:
    facts = await found(page)
    assert facts.asked
    assert facts.traits("m").window is None


async def test_an_endpoint_that_starts_is_asked_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.model.endpoint_probe._PAUSE", timedelta(milliseconds=10))
    ready, later = http.error(503, "api_error"), Played([LLAMA_CPP])
    tries = list[str]()

    async def starting(exchange: Exchange) -> None:
        tries.append(exchange.path)
        await (ready if len(tries) < 4 else later)(exchange)

    async with asking(starting) as (probe, _, _):
        assert (await probe.facts(timedelta(0))).asked is False
        assert (await probe.facts()).traits("qwen").window == 16_384


async def test_a_page_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.model.anthropic_model._PAGE_BYTES", 1000)
    facts = await found(http.plain(200, {"data": [{"id": "m" * 2000}]}))
    assert facts.names == []


async def test_what_nobody_asked_is_not_known() -> None:
    assert await EndpointProbe().facts() == EndpointFacts()
