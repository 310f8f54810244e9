"""Model calls through the Anthropic SDK, which no other module imports."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import anthropic
import httpx2

from activities.model import pricing
from activities.model.call_errors import classify
from activities.model.port import (
    BadAnswer,
    ModelEndpoint,
    ModelFailure,
    ModelMessage,
    ModelRequest,
    ModelUsage,
    StreamProgress,
    Window,
)
from activities.model.prompt_fit import text_tokens
from activities.model.request_body import Rung, is_known, lean, profile_of, request_body
from activities.model.stream import StreamReader, check_message, ended_message, whole_message
from activities.model.text_calls import TextWatch, with_text_calls
from temporal_supervisor.supervision.agent.turn_rules import attempt_time
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.base.trust import Credentials, host_and_port, is_exposed
from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.provider.endpoint_facts import EndpointFacts, ModelTraits

_MODEL_CONNECT_TIMEOUT = timedelta(seconds=5)  # a connection takes a second at most
# Of an error: the provider's have some hundred bytes, gateways' HTML pages are cut here.
MODEL_ERROR_BODY_BYTES = 64 * 1024
_PAGE_BYTES = 4 * 1024 * 1024  # a gateway's list of hundreds of models with their prices
# A finished answer waits this long for its connection to become reusable.
_MODEL_LINGER = timedelta(seconds=1)

_DEFAULT_URL = "https://api.anthropic.com"
_NO_KEY = "none"  # endpoints without keys ignore it; the SDK refuses to send a request without one
# Counts the bytes of the call that this task makes.
_reader: ContextVar["StreamReader | _ByteCounter"] = ContextVar("_reader")


class AnthropicModel(ModelEndpoint):
    """A Messages API endpoint, real or compatible.

    Without key, token and `base_url` every call fails. `without` names the fields of
    EndpointProfile that the endpoint lacks, `windows` maps models or patterns to tokens, `extra`
    are fields for all requests. `structured` sets how JSON is asked for, by default as the model is
    known. Raises ValueError for plain http with a key, unless `plain_http` allows that, and for a
    key that no header can carry.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        idle_timeout: timedelta = limits.MODEL_IDLE_TIMEOUT,
        structured: Rung | None = None,
        without: Collection[str] = (),
        max_output: int | None = None,
        windows: Mapping[str, int] | None = None,
        extra: JsonObject | None = None,
        short_prompts: bool | None = None,
        free: bool = False,
        plain_http: bool = False,
        http_options: Mapping[str, Any] | None = None,
    ) -> None:
        key = (api_key or "").strip()
        token = (auth_token or "").strip()
        secrets = [secret for secret in (key, token) if secret]
        if not all(secret.isascii() and secret.isprintable() for secret in secrets):
            names = "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
            raise ValueError(f"{names} holds characters that no header can carry")
        self._idle = idle_timeout.total_seconds()
        self._rung = structured
        self._without = without
        self._max_output = max_output
        self._windows = {} if windows is None else windows
        self._extra = extra or {}
        self._short_prompts = short_prompts
        self._free = free
        self._is_providers_own = base_url is None
        self.endpoint = host_and_port(base_url or _DEFAULT_URL)
        if secrets and not plain_http and is_exposed(base_url or _DEFAULT_URL):
            raise ValueError(
                f"ANTHROPIC_BASE_URL is plain http to '{self.endpoint}', which would send the key "
                "unencrypted: use https, or set SUPERVISOR_MODEL_PLAIN_HTTP=true if the network "
                "between is yours"
            )
        self._credentials = Credentials(secrets)
        # The reader ends dead streams, the activity's own timeout long ones.
        longest = attempt_time(limits.MAX_TOKENS_CEILING).total_seconds()
        timeout = httpx2.Timeout(longest, connect=_MODEL_CONNECT_TIMEOUT.total_seconds())
        self._client: anthropic.AsyncAnthropic | None = None
        if secrets or base_url:
            self._client = anthropic.AsyncAnthropic(
                api_key=key or (None if token else _NO_KEY),
                auth_token=None if key else token or None,
                base_url=base_url or _DEFAULT_URL,
                max_retries=0,  # Temporal retries: it shows attempts, and frees the slot meanwhile
                timeout=timeout,
                http_client=_BoundedClient(
                    limits=httpx2.Limits(max_connections=limits.ACTIVITY_SLOTS),
                    timeout=timeout,
                    **(http_options or {}),
                ),
                default_headers={"accept-encoding": "identity"},  # packing delays events
                open_telemetry=False,  # a call's span is the activity's, and no trace id leaves
            )

    async def complete(self, request: ModelRequest, progress: StreamProgress) -> ModelMessage:
        """Sends one request. Returns its answer, or raises ModelFailure."""
        if self._client is None:
            remedy = "set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for an endpoint without keys"
            words = f"no model is configured: {remedy}"
            raise ModelFailure(ErrorKind.PROVIDER_AUTHENTICATION, words)
        try:
            async with asyncio.timeout(self._patience(request)) as end:
                reader = StreamReader(progress, end, self._idle, self._credentials)
                return await self._stream_reply(self._client, request, reader)
        except Exception as error:
            failed = classify(
                error,
                model=request.model,
                endpoint=self.endpoint,
                credentials=self._credentials,
            )
        # Raised out here it has no cause: the SDK's error has the body, which may quote the prompt.
        raise failed

    def _patience(self, request: ModelRequest) -> float:
        """Returns the seconds until the first content must come.

        A server of the operator's own may read a long prompt for minutes.
        """
        if self._is_providers_own:
            return self._idle
        return self._idle + request.tokens / limits.MODEL_READS_PER_SECOND

    async def request_json(self, path: str, body: JsonObject | None, time: timedelta) -> JsonObject:
        """Returns the JSON at a path, or the reply to a body. Raises ModelFailure."""
        if self._client is None:
            raise ModelFailure(ErrorKind.PROVIDER_AUTHENTICATION, "no model is configured")
        _reader.set(_ByteCounter())
        try:
            async with asyncio.timeout(time.total_seconds()):
                if body is None:
                    page = await self._client.get(path, cast_to=object)
                else:
                    sent = {**body, **self._extra}
                    page = await self._client.post(path, cast_to=object, body=sent)
        except Exception as error:
            cause = error.__cause__
            own = cause if isinstance(cause, BadAnswer) else error  # the SDK wraps ours
            failed = classify(own, endpoint=self.endpoint, credentials=self._credentials)
        else:
            return page if isinstance(page, dict) else {}
        # As in `complete`: without the SDK's error as its cause.
        raise failed

    def output_schema(self, model: type[Model]) -> JsonObject:
        """Returns the schema of `model` as the API compiles it, shared: do not change it."""
        return _form_of(model)

    def window(self, model: str, traits: ModelTraits | None = None) -> Window:
        """Returns the window of a model, from the run's traits, the settings or the price list."""
        found = {model: traits.window} if traits and traits.window else self._windows
        short = traits.short_prompts if traits and traits.window else self._short_prompts
        return replace(pricing.window_of(model, found), short_prompts=short)

    def traits_for_run(self, model: str, facts: EndpointFacts) -> ModelTraits:
        """Returns the traits of a model for a run, as set by the operator, found, or assumed.

        A model is asked for JSON in words if its endpoint does not tell whether it follows schemas:
        every model accepts that.
        """
        found = facts.traits(model)
        window = pricing.set_window(model, self._windows) or found.window
        schemas = found.schemas
        if self._rung is not None:
            schemas = self._rung == "format"
        elif schemas is None:
            schemas = is_known(model) or not facts.address
        traits = {
            "window": window or pricing.window_of(model, {}).tokens,
            "schemas": schemas,
            "short_prompts": self._short_prompts,
        }
        return found.model_copy(update=traits)

    def _rung_of(self, traits: ModelTraits | None) -> Rung:
        if traits is not None and traits.schemas is not None:
            return "format" if traits.schemas else "text"
        return self._rung or "format"

    def runs_tools(self, model: str) -> bool:
        """True for the provider's own models at its own address; a gateway may lead elsewhere."""
        return self._is_providers_own and profile_of(model, self._without).server_tools

    def price(self, model: str, usage: ModelUsage) -> float | None:
        """Returns the cost of a call in dollars; None if the price is unknown."""
        return 0.0 if self._free else pricing.price(model, usage)

    async def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            await self._client.close()

    async def _stream_reply(
        self,
        client: anthropic.AsyncAnthropic,
        request: ModelRequest,
        reader: StreamReader,
    ) -> ModelMessage:
        """Returns the answer to a request as it is streamed. Raises BadAnswer and ModelFailure."""
        profile = profile_of(request.model, self._without, self._max_output)
        if not profile.server_tools:
            self._require_own_tools(request)
        small = self.window(request.model, request.traits).is_small
        body = request_body(request, profile, self._rung_of(request.traits), shows_form=small)
        # The provider's models have a channel for calls, and use it.
        reads_text_calls = not self._is_providers_own
        watch = TextWatch(request) if reads_text_calls else None

        _reader.set(reader)
        async with client.messages.stream(
            **body,
            extra_headers=request.headers,
            extra_body=self._extra or None,
        ) as stream:
            async for event in stream:
                reader.read_event(event)
                if event.type in ("message_start", "message_stop"):
                    self._refuse_cut_prompt(request, reader.usage)
                if reader.finished:
                    break
                if watch and watch.has_ended(event):
                    # Leaving the block closes the connection, so the server stops as well.
                    reader.finish()
                    message = _as_ended(stream.current_message_snapshot, request, reader.usage)
                    return check_message(with_text_calls(message, request), self._credentials)
            if not reader.finished:
                raise self._unfinished(reader, stream.response.headers.get("content-type", ""))
            # Read to the end, so that the connection can be used again. Whatever happens meanwhile,
            # the answer is complete.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_MODEL_LINGER.total_seconds()):
                    await stream.until_done()
            message = whole_message(stream.current_message_snapshot)

        if reads_text_calls:
            message = with_text_calls(message, request)
        limit = min(filter(None, (profile.most_output, request.room)), default=None)
        if limit is not None and body["max_tokens"] >= limit:
            message = message.model_copy(update={"fullest": True})
        return check_message(message, self._credentials)

    def _require_own_tools(self, request: ModelRequest) -> None:
        """Raises ModelFailure if the model's provider would have to run a tool."""
        provided = [tool["name"] for tool in request.tools if "input_schema" not in tool]
        if provided:
            lack = f"'{request.model}' at {self.endpoint} does not run tools itself"
            words = f"{lack}: take {', '.join(provided)} from the role"
            raise ModelFailure(ErrorKind.MODEL_NOT_SERVED, words)

    def _refuse_cut_prompt(self, request: ModelRequest, usage: ModelUsage) -> None:
        """Raises ModelFailure if a server other than the provider's must have cut the prompt.

        Its count of read tokens shows that. The sent tokens are estimated from the bytes of the
        texts, which is hardly ever twice the server's count. A server that counts only uncached
        tokens reports a few for a later call: those are ignored.
        """
        read = usage.prompt_tokens
        if self._is_providers_own or read < limits.LEAST_OUTPUT_TOKENS:
            return
        sent = text_tokens(request.system, request.messages)
        if sent < limits.MODEL_CUT_LEAST or read >= sent * limits.MODEL_CUT_SHARE:
            return
        words = (
            f"{self.endpoint} cut the prompt without a word: it read {read:,} of about {sent:,} "
            f"tokens. Give '{request.model}' a larger window there (Ollama: "
            f"OLLAMA_CONTEXT_LENGTH), or set SUPERVISOR_MODEL_WINDOW={request.model}={read}"
        )
        raise ModelFailure(ErrorKind.CONTEXT_OVERFLOW, words)

    def _unfinished(self, reader: StreamReader, content_type: str) -> BadAnswer:
        if reader.started or content_type.startswith("text/event-stream"):
            return BadAnswer("it ended without message_stop", ErrorKind.STREAM_BROKEN)
        shown = self._credentials.withheld(one_line(content_type, limits.MODEL_NAME_BYTES))
        return BadAnswer(f"content type {shown or 'missing'} where an event stream was due")


def _as_ended(snapshot: Any, request: ModelRequest, usage: ModelUsage) -> ModelMessage:
    """Returns a message of which the rest is not read."""
    if not usage.prompt_tokens:  # some servers count at the end, which does not come
        usage = usage.model_copy(update={"input_tokens": request.tokens})
    # Of a form only blanks are left out, perhaps in its middle: it counts as cut.
    stop_reason = "max_tokens" if request.concludes else "end_turn"
    return ended_message(snapshot, stop_reason, usage)


@lru_cache(limits.KNOWN_FORMS)
def _form_of(model: type[Model]) -> JsonObject:
    """Returns the schema of a model as the API compiles it.

    Fields with defaults are required, too, though a reply is valid without them.
    """
    schema = model.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        needed = part.get("required", [])
        fields = part.get("properties", {}).items()
        part["required"] = [name for name, field in fields if name in needed or "default" in field]
    form: JsonObject = lean(anthropic.transform_schema(schema))
    return form


class _ByteCounter:
    """Counts the bytes of a page that is not streamed."""

    def __init__(self) -> None:
        self._left = _PAGE_BYTES

    def count_bytes(self, chunk: bytes) -> None:
        """Counts one chunk. Raises BadAnswer if the page is too large."""
        self._left -= len(chunk)
        if self._left < 0:
            raise BadAnswer(f"the page has more than {_PAGE_BYTES} bytes")


class _BoundedClient(anthropic.DefaultAioHttpClient):
    """The SDK's HTTP client over aiohttp, which takes a third less CPU.

    It follows no redirects and limits every body.
    """

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        **options: Any,
    ) -> httpx2.Response:
        """Returns the response with a limited body."""
        if request.url.userinfo:
            # A gateway's user and password: aiohttp takes them as a header or in the address.
            options["auth"] = httpx2.BasicAuth(request.url.username, request.url.password)
            request.url = request.url.copy_with(userinfo=b"")
        raw = await super().send(request, stream=True, **{**options, "follow_redirects": False})
        response = httpx2.Response(
            raw.status_code,
            headers=raw.headers,
            stream=_BoundedBody(raw, raw.headers.pop("content-encoding", "identity").lower()),
            request=request,
            extensions=raw.extensions,
        )
        if not stream:
            await response.aread()
        return response


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of a response; of an error only the beginning, because its status matters most."""

    def __init__(self, raw: httpx2.Response, encoding: str) -> None:
        self._raw = raw
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._raw.status_code >= 300:
            left = MODEL_ERROR_BODY_BYTES if self._encoding == "identity" else 0
            async for piece in self._raw.aiter_raw():
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    break
            return
        if self._encoding != "identity":
            encoding = one_line(self._encoding, limits.MODEL_NAME_BYTES)
            raise BadAnswer(f"it compresses ({encoding}), though asked not to")
        reader = _reader.get()
        async for piece in self._raw.aiter_raw():
            reader.count_bytes(piece)
            yield piece

    async def aclose(self) -> None:
        await self._raw.aclose()
