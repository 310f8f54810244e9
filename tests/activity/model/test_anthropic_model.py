"""The adapter against a real HTTP server on loopback: every way an answer can come, or not come."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from activities.model.anthropic_model import AnthropicModel
from activities.model.port import ModelFailure, ModelMessage, ModelRequest, StreamProgress
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.replies.filled_form import filled_form
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import ModelServer, Reply

KEY = "sk-ant-secret-canary"
PROMPT = "prompt-canary: what is the answer?"
IDLE = timedelta(seconds=0.4)
ELSEWHERE = {"base_url": "http://model.example:8000"}


@asynccontextmanager
async def adapter(server: ModelServer | None = None, **options: Any) -> AsyncIterator[AnthropicModel]:
    arguments: dict[str, Any] = {"api_key": KEY, "http_options": {"trust_env": False, "verify": False}, **options}
    if server is not None:
        arguments.setdefault("base_url", server.url)
    model = AnthropicModel(**arguments)
    try:
        yield model
    finally:
        await model.close()


def ask(**changes: Any) -> ModelRequest:
    arguments: dict[str, Any] = {
        "model": "claude-haiku-5-5",
        "system": "You are brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}],
        "max_tokens": 1000,
    }
    return ModelRequest(**{**arguments, **changes})


@dataclass
class Outcome:
    server: ModelServer
    message: ModelMessage
    progress: StreamProgress

    @property
    def body(self) -> JsonObject:
        return self.server.requests[0].body


async def answer(reply: Reply, request: ModelRequest | None = None, **options: Any) -> Outcome:
    progress = StreamProgress()
    async with http.model_server(reply) as server, adapter(server, **options) as model:
        message = await model.complete(request or ask(), progress)
    assert len(server.requests) == 1
    return Outcome(server, message, progress)


async def fail(reply: Reply, **options: Any) -> ModelFailure:
    """The failure of one call; checks on the way that it was sent once and that nothing leaks."""
    async with http.model_server(reply) as server, adapter(server, **{"idle_timeout": IDLE, **options}) as model:
        with pytest.raises(ModelFailure) as caught:
            await model.complete(ask(), StreamProgress())
    assert len(server.requests) == 1
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told
    assert "canary" not in caught.value.message
    assert len(caught.value.message.encode()) <= limits.ERROR_BYTES
    return caught.value


REQUEST, TOO_LONG = "invalid_request_error", "prompt is too long: 1200000 tokens > 1000000 maximum"
ERROR_ANSWERS: list[tuple[str, Reply, str, bool, str]] = [
("400", http.error(400, REQUEST, "max_tokens is too large"), "ProviderRejected", False, "too large"),
("401", http.error(401, "authentication_error", f"bad key {KEY}"), "ProviderAuthentication", False, "API_KEY"),
("402", http.error(402, "billing_error", "add credit"), "ProviderBilling", False, "add credit"),
("404", http.error(404, "not_found_error", "model: x"), "ModelNotServed", False, "claude-haiku-5-5"),
("404 plain", http.plain(404, "Not Found", "text/plain"), "ModelNotServed", False, "ANTHROPIC_BASE_URL"),
("408", http.error(408, "timeout_error"), "ProviderError", True, "408"),
("413", http.error(413, "request_too_large", "too long"), "ContextOverflow", False, "too long"),
("422", http.error(422, REQUEST, "bad field"), "ProviderRejected", False, "bad field"),
("429", http.error(429, "rate_limit_error"), "RateLimited", True, "429"),
("429 ramp", http.error(429, "rate_limit_error", code="ramp_limit_exceeded"), "RateLimited", True, "ramp_limit"),
("400 of the account", http.error(400, REQUEST, code="cmek_key_disabled"), "ProviderAuthentication", False, "cmek"),
("400 for the window", http.error(400, REQUEST, TOO_LONG), "ContextOverflow", False, "claude-haiku-5-5"),
("429 spend limit", http.error(429, "rate_limit_error", code="enforced_spend_limit_reached", retry_after="30"),
     "ProviderBilling", False, "enforced_spend_limit_reached"),
("500", http.error(500, "api_error"), "ProviderError", True, "500"),
("503 overloaded", http.error(503, "overloaded_error"), "Overloaded", True, "503"),
("529", http.error(529, "overloaded_error"), "Overloaded", True, "529"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "kind", "retryable", "names"), [row[1:] for row in ERROR_ANSWERS], ids=[row[0] for row in ERROR_ANSWERS]
)
async def test_an_error_status_becomes_one_typed_failure_after_one_request(
    reply: Reply, kind: str, retryable: bool, names: str
) -> None:
    failure = await fail(reply)
    assert (failure.kind, failure.retryable) == (kind, retryable)
    assert names in failure.message


HELLO = [http.start(), *http.block(0, http.text("Hello"))]
WORDS, THOUGHT = (
    http.block(0, block)[0] for block in (http.text(""), {"type": "thinking", "thinking": "", "signature": "c2ln"})
)


async def bad_json(exchange: http.Exchange) -> None:
    await exchange.chunk(b"event: content_block_delta\ndata: {not json canary\n\n")
    await http.eof(exchange)


BROKEN: list[tuple[str, Reply, str, bool]] = [
("reset before headers", http.reset, "ProviderUnreachable", True),
("headers never come", http.silence, "IdleTimeout", True),
("cut mid-stream", http.stream(*HELLO, end=http.cut), "StreamBroken", True),
("stalled with pings", http.stream(*HELLO, end=http.pings), "IdleTimeout", True),
("pings in a text", http.stream(http.start(), WORDS, end=http.pings), "IdleTimeout", True),
("thinking without pings", http.stream(http.start(), THOUGHT, end=http.silence), "IdleTimeout", True),
("empty stream", http.stream(), "StreamBroken", True),
("no stop reason", http.stream(*HELLO, *http.finish(None)), "StreamBroken", True),
("overloaded mid-stream", http.stream(*HELLO, http.error_body("overloaded_error")), "Overloaded", True),
("rate limit mid-stream", http.stream(*HELLO, http.error_body("rate_limit_error")), "RateLimited", True),
("rejected mid-stream", http.stream(http.error_body("invalid_request_error")), "ProviderRejected", False),
("HTML", http.plain(200, "<html>canary</html>", "text/html"), "BadResponse", True),
("bad JSON in an event", http.stream(*HELLO, end=bad_json), "BadResponse", True),
("events in no order", http.stream(http.start(), http.delta(3, {})), "BadResponse", True),
("no usage", http.stream(http.start(usage=None), *http.finish()), "BadResponse", True),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "retryable"), [r[1:] for r in BROKEN], ids=[r[0] for r in BROKEN])
async def test_a_broken_answer_is_never_used(reply: Reply, kind: str, retryable: bool) -> None:
    failure = await fail(reply)
    assert (failure.kind, failure.retryable) == (kind, retryable)


async def test_a_refused_connection_names_the_address() -> None:
    async with adapter(base_url=f"http://user:{KEY}@127.0.0.1:9") as model:
        with pytest.raises(ModelFailure, match="127.0.0.1:9: no connection: connection refused") as caught:
            await model.complete(ask(), StreamProgress())
    assert (caught.value.kind, caught.value.retryable) == ("ProviderUnreachable", True)
    assert KEY not in caught.value.message


@pytest.mark.parametrize("reply", [http.silence, http.stream(*HELLO, end=http.silence)], ids=["headers", "stream"])
async def test_cancelling_the_caller_closes_the_connection(reply: Reply) -> None:
    async with http.model_server(reply) as server, adapter(server) as model:
        call = asyncio.create_task(model.complete(ask(), StreamProgress()))
        await server.arrived.wait()
        await server.requests[0].silent.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(server.requests[0].closed_by_client.wait(), 1)
    assert len(server.requests) == 1


async def test_without_key_or_endpoint_every_call_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)  # only arguments count
    async with adapter(api_key=" ", base_url="") as model:
        with pytest.raises(ModelFailure, match="ANTHROPIC_API_KEY.*ANTHROPIC_BASE_URL") as caught:
            await model.complete(ask(), StreamProgress())
    assert (caught.value.kind, caught.value.retryable) == ("ProviderAuthentication", False)


@pytest.mark.parametrize(
    ("api_key", "token", "sent"), [(None, None, "none"), (None, "t0ken", "t0ken"), (KEY, "t0ken", KEY)]
)
async def test_a_key_goes_before_a_token_and_without_either_a_dummy_is_sent(
    api_key: str | None, token: str | None, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of the environment")
    outcome = await answer(http.message(http.text("Hi")), api_key=api_key, auth_token=token)
    assert outcome.server.requests[0].headers["authorization"] == f"Bearer {sent}"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"base_url": "model-host:8080"}, "ANTHROPIC_BASE_URL"),
        ({"base_url": "http://host:port"}, "ANTHROPIC_BASE_URL"),
        ({"api_key": "with\nnewline"}, "ANTHROPIC_API_KEY"),
        ({"api_key": KEY, **ELSEWHERE}, "ANTHROPIC_BASE_URL.*SUPERVISOR_MODEL_PLAIN_HTTP"),
        ({"auth_token": KEY, **ELSEWHERE}, "ANTHROPIC_BASE_URL.*SUPERVISOR_MODEL_PLAIN_HTTP"),
    ],
)
def test_settings_that_can_never_work_are_refused_at_once(options: dict[str, str], names: str) -> None:
    with pytest.raises(ValueError, match=names) as caught:
        AnthropicModel(**options)  # type: ignore[arg-type]
    assert options.get("api_key", "?") not in str(caught.value)


async def test_a_request_holds_what_was_asked_and_no_sampling_parameters() -> None:
    tool = {"name": "add", "description": "Adds.", "input_schema": {"type": "object"}}
    body = (await answer(http.message(http.text("Hi")), ask(tools=[tool]))).body
    assert body == {
        "model": "claude-haiku-5-5",
        "max_tokens": 1000,
        "system": "You are brief.",
        "messages": ask().messages,
        "tools": [{**tool, "eager_input_streaming": True}],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "stream": True,
    }


async def test_no_trace_id_is_sent_to_the_provider() -> None:
    provider = TracerProvider()
    with trace.use_span(provider.get_tracer("test").start_span("run"), end_on_exit=True):
        outcome = await answer(http.message(http.text("Hi")))
    assert "traceparent" not in outcome.server.requests[0].headers


async def test_halves_of_a_character_do_not_break_progress_or_storage() -> None:
    message = http.stream(
        http.start(),
        *http.block(0, http.text("")),
        *[http.delta(0, {"type": "text_delta", "text": part}) for part in ("a\ud83d", "\ude00b\udfff")],
        *http.finish(),
    )
    outcome = await answer(message)
    assert outcome.message.text() == "a\U0001f600b\ufffd"
    outcome.message.model_dump_json()
    outcome.progress.tail.encode()


class Verdict(Model):
    good: bool
    why: str


GOOD = {"good": True, "why": "it adds up"}
SCHEMA = AnthropicModel().output_schema(Verdict)


@pytest.mark.parametrize(("reason", "read"), [("end_turn", "tool_use"), ("max_tokens", "max_tokens")])
async def test_a_turn_that_ends_with_a_call_waits_for_its_result(reason: str, read: str) -> None:
    use = http.tool_use("toolu_1", "add", {"a": 1})
    outcome = await answer(http.message(http.text("I add."), use, stop_reason=reason))
    assert outcome.message.stop_reason == read


async def test_thoughts_in_a_text_are_no_part_of_it() -> None:
    outcome = await answer(http.message(http.text('<think>{"a": 1} or 2?</think>\n{"a": 2}')))
    assert outcome.message.text() == '{"a": 2}'


async def test_the_text_rung_asks_for_the_form_in_the_last_words() -> None:
    outcome = await answer(http.message(http.text("no JSON")), ask(output_schema=SCHEMA), structured="text")
    assert outcome.body["system"] == "You are brief."
    assert outcome.body["messages"][-1]["content"][-1]["text"].endswith(filled_form(SCHEMA) or "?")
    assert outcome.message.text() == "no JSON"
