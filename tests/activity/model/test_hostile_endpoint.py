"""An endpoint that means harm: what it sends is bounded, never followed elsewhere, and never stored with the key."""

import base64
import ipaddress
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from activities.model.anthropic_model import MODEL_ERROR_BODY_BYTES
from activities.model.port import BadAnswer, ModelFailure, ModelMessage, ModelUsage, StreamProgress
from activities.model.stream import MODEL_REPLY_DEPTH, check_message
from temporal_supervisor.supervision.base.trust import Credentials
from tests.activity.certificates import self_signed
from tests.activity.model import http_fixture as http
from tests.activity.model.http_fixture import Exchange, Reply
from tests.activity.model.test_anthropic_model import adapter, ask

SECRET = "Zq7-canary_9fKx2LmV4tRw8YbN"
KEY = f"sk-ant-api03-{SECRET}"


async def call(reply: Reply, progress: StreamProgress | None = None) -> ModelMessage:
    """One call of an endpoint that answers so; the idle limit ends what nothing else ends."""
    patient = {"api_key": KEY, "idle_timeout": timedelta(seconds=20)}
    async with http.model_server(reply) as server, adapter(server, **patient) as model:
        return await model.complete(ask(), progress or StreamProgress())


async def refused(reply: Reply) -> ModelFailure:
    """The failure of one such call, which is the endpoint's and of kind BadResponse."""
    with pytest.raises(ModelFailure) as caught:
        await call(reply)
    assert caught.value.kind == "BadResponse", caught.value.message
    return caught.value


@pytest.mark.parametrize("status", [301, 307])
async def test_a_redirect_is_a_bad_response_and_is_not_followed(status: int) -> None:
    async with http.model_server(http.error(400, "invalid_request_error", "INTERNAL-SECRET")) as internal:
        failure = await refused(http.plain(status, "", location=f"{internal.url}/secret-internal"))
    assert internal.requests == []
    assert "INTERNAL-SECRET" not in failure.message
    assert "check ANTHROPIC_BASE_URL" in failure.message


async def test_a_compressed_answer_is_a_bad_response_and_of_an_error_the_status_counts() -> None:
    def packed(status: int) -> Reply:
        async def reply(exchange: Exchange) -> None:
            await exchange.head(
                status, content_type="text/event-stream", content_encoding="gzip", transfer_encoding="chunked"
            )
            await exchange.chunk(b"\x1f\x8b")
            await http.eof(exchange)

        return reply

    assert "compresses (gzip)" in (await refused(packed(200))).message
    with pytest.raises(ModelFailure) as caught:
        await call(packed(529))
    assert caught.value.kind == "Overloaded"


async def test_an_error_body_is_read_up_to_its_cap() -> None:
    sent = 0

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.head(503, content_type="text/html", transfer_encoding="chunked")
        while sent < 100 * MODEL_ERROR_BODY_BYTES:
            await exchange.chunk(b"x" * 65_536)
            sent += 65_536

    with pytest.raises(ModelFailure) as caught:
        await call(endless)
    assert caught.value.kind == "ProviderError"
    assert sent < 100 * MODEL_ERROR_BODY_BYTES


def endless(*parts: bytes) -> Reply:
    """An event stream that repeats `parts` after a proper beginning; the client has to end it."""

    async def reply(exchange: Exchange) -> None:
        await exchange.head(content_type="text/event-stream", transfer_encoding="chunked", request_id="req_1")
        await exchange.chunk(http.sse(http.start()))
        for event in http.block(0, http.text(""))[:1]:
            await exchange.chunk(http.sse(event))
        while True:
            for part in parts:
                await exchange.chunk(part)

    return reply


ENDLESS = {
    "one line": endless(b"data: " + b"x" * 65_536),
    "lines of one event": endless(b"data: x\n" * 8192),
    "comments": endless(b": ping\n" * 8192),
    "text": endless(http.sse(http.delta(0, {"type": "text_delta", "text": "x" * 65_536}))),
}
NOTHING = {
    "pings": endless(http.sse({"type": "ping"}) * 2000),
    "empty deltas": endless(http.sse(http.delta(0, {"type": "text_delta", "text": ""})) * 1000),
}


@pytest.mark.parametrize("reply", ENDLESS.values(), ids=ENDLESS)
async def test_an_endless_answer_is_cut_off(reply: Reply) -> None:
    await refused(reply)


@pytest.mark.parametrize("reply", NOTHING.values(), ids=NOTHING)
async def test_an_endless_stream_of_nothing_is_cut_off(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.model.stream._MODEL_WIRE_BYTES", 1 << 20)  # the real bound takes minutes to send
    await refused(reply)


def nested(depth: int) -> str:
    return "[" * depth + "1" + "]" * depth


UNREADABLE = {
    "too deep": nested(MODEL_REPLY_DEPTH + 1),
    "much too deep": nested(5000),
    "thousands of digits": "9" * 5000,
}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_answer_that_could_not_be_read_again_is_refused(value: str) -> None:
    events = http.block(0, http.tool_use("c1", "t", {}))
    events[1]["delta"]["partial_json"] = '{"a": ' + value + "}"
    await refused(http.stream(http.start(), *events, *http.finish("tool_use")))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**5000, "\ud800"], ids=["nan", "inf", "long", "half"])
def test_an_answer_that_is_no_json_is_never_stored(value: Any) -> None:
    message = ModelMessage(content=[{"type": "new", "a": value}], stop_reason="end_turn", usage=ModelUsage(), model="m")
    with pytest.raises(BadAnswer):
        check_message(message, Credentials())


IMPOSSIBLE: list[Any] = [-1, 10**400, [1]]  # the SDK makes numbers of "10" and true


@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
async def test_usage_that_cannot_be_is_refused(field: str, value: Any) -> None:
    begun = (http.start(usage={**http.USAGE, field: value}), *http.block(0, http.text("hello")))
    end, last = http.finish()
    await refused(http.stream(*begun, {**end, "usage": {}} if field == "output_tokens" else end, last))


ECHOES = {"plain": KEY, "base64 of more": base64.b64encode(f"xy{KEY}z".encode()).decode()}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
async def test_an_error_with_the_key_withholds_it(echo: str) -> None:
    with pytest.raises(ModelFailure) as caught:
        await call(http.error(400, "invalid_request_error", f"no {echo} here"))
    assert "[secret]" in caught.value.message
    assert SECRET not in caught.value.message
    assert echo not in caught.value.message


PLACES: dict[str, Reply] = {
    "name of an argument": http.message(http.tool_use("c1", "t", {KEY: 1}), stop_reason="tool_use"),
    "thinking": http.message({"type": "thinking", "thinking": f"hm {KEY}", "signature": "c2ln"}),
    "id of a call": http.message(http.tool_use(KEY, "t", {}), stop_reason="tool_use"),
    "stop reason": http.message(http.text("hello"), stop_reason=KEY),
    "base64 in a text": http.message(http.text(f"see {ECHOES['base64 of more']} there")),
}


@pytest.mark.parametrize("reply", PLACES.values(), ids=PLACES)
async def test_the_key_is_replaced_wherever_it_is_in_a_reply(reply: Reply) -> None:
    kept = (await call(reply)).model_dump_json()
    assert SECRET not in kept
    assert ECHOES["base64 of more"] not in kept
    assert "[secret]" in kept


async def test_the_shown_text_of_a_running_call_is_without_the_key() -> None:
    progress = StreamProgress()
    message = await call(http.message(http.text(f"the key is {KEY}, I say")), progress)
    assert progress.tail == message.text() == "the key is [secret], I say"


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def complete(base_url: str) -> ModelMessage:
    async with adapter(base_url=base_url, api_key=None, http_options=None) as model:
        return await model.complete(ask(), StreamProgress())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # by aiohttp, of what the SDK uses
async def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with http.model_server(http.message()) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//guest:word@"))
        await complete("http://model.example")
    (call,) = proxy.requests
    assert (call.path, call.headers["host"]) == ("http://model.example/v1/messages", "model.example")
    assert call.headers["proxy-authorization"].startswith("Basic ")


async def test_an_authority_of_ones_own_is_believed_when_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = self_signed(tmp_path, x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with http.model_server(http.message(), tls=context) as server:
        with pytest.raises(ModelFailure) as refused:
            await complete(server.url)
        assert (refused.value.kind, server.requests) == ("ProviderUnreachable", [])
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        await complete(server.url)
    assert len(server.requests) == 1
