"""Reading a streamed answer within limits: its content, its text so far, and the final message.

Beyond the limits the connection is closed. The SDK's events and message are read by their public
fields, so the SDK is not imported.
"""

import asyncio
import json
from collections import Counter
from typing import Any

from pydantic import ValidationError

from activities.model.port import BadAnswer, ModelMessage, ModelUsage, StreamProgress
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import size
from temporal_supervisor.supervision.base.trust import Credentials
from temporal_supervisor.supervision.contract.base import depth_exceeds

# A reply with its framing, which is up to thirty times the text of a small piece.
_MODEL_WIRE_BYTES = 64 * 1024 * 1024
# One event of a stream: a PDF that the provider fetched comes in one block.
_MODEL_EVENT_BYTES = 4 * 1024 * 1024
_MODEL_EVENT_LINES = 100  # an event has two; the SDK joins lines in quadratic time
# 128k tokens are half a MiB of text, thinking and signatures come on top.
_MODEL_REPLY_BYTES = 4 * 1024 * 1024
# Of one call: the SDK parses all arguments again with each piece.
_MODEL_TOOL_INPUT_BYTES = 512 * 1024
# JSON in JSON: parsers give up at 200, and stored replies are nested in other objects.
MODEL_REPLY_DEPTH = 100

# What gateways say where a reply has ended with calls.
_ENDED = ("end_turn", "stop_sequence", "stop")
_EVENT_ENDS = (b"\r\r", b"\n\n", b"\r\n\r\n")  # as the SDK sees it: what it gathers is what counts


class StreamReader:
    """Reads one stream into `progress`, within limits and without credentials, until its end.

    A stream is dead when nothing comes for `idle` seconds: `end` is extended while it lives. Until
    the first content it has the time that `end` was created with, as the prompt is being read.
    Pings alone keep it alive only while a block is open whose content the provider may hold back:
    thinking, or arguments of a tool. Raises BadAnswer for a stream, an event or an answer that
    grows too large.
    """

    def __init__(
        self,
        progress: StreamProgress,
        end: asyncio.Timeout,
        idle: float,
        credentials: Credentials,
    ) -> None:
        self.started = False
        self.finished = False
        self._progress = progress
        self._credentials = credentials
        self._end = end
        self._idle = idle
        # Bytes and lines as they come: of the stream, of the event, and the last ones.
        self._wire = self._event = self._lines = 0
        self._last = b""
        # What is in the events: the answer, the arguments of each call, and the end of its text.
        self._bytes = self._chars = 0
        self._arguments: Counter[int] = Counter()
        self._tail = ""
        self._has_content = False
        self._silent_block = False

    @property
    def usage(self) -> ModelUsage:
        """The cost of the answer so far, with our own count of its tokens."""
        return self._progress.usage

    def finish(self) -> None:
        """Ends the answer: anything that still comes is ignored."""
        self.finished = True
        self._end.reschedule(None)

    def count_bytes(self, chunk: bytes) -> None:
        """Counts one chunk; even a ping is a sign of life while a block may be silent.

        Raises BadAnswer if the stream or an event grows too large.
        """
        self._wire += len(chunk)
        if self._wire > _MODEL_WIRE_BYTES:
            raise _too_large("the stream", _MODEL_WIRE_BYTES)
        for line in chunk.splitlines(keepends=True):
            self._event += len(line)
            self._lines += 1
            self._last = (self._last + line)[-4:]
            if self._last.endswith(_EVENT_ENDS):
                self._event, self._lines, self._last = 0, 0, b""
            elif self._event > _MODEL_EVENT_BYTES or self._lines > _MODEL_EVENT_LINES:
                raise _too_large("one event", _MODEL_EVENT_BYTES)
        if self._silent_block:
            self._extend_deadline()

    def read_event(self, event: Any) -> None:
        """Reads one event. Raises BadAnswer if the answer or a tool call grows too large."""
        kind: str = event.type
        if kind == "message_start":
            self.started = True
            self._progress.usage = _usage(event.message.usage)
        elif kind == "content_block_start":
            block = event.content_block
            self._silent_block = block.type != "text"
            if not self._has_content:
                self._has_content = True
                self._progress.on_content()
            if block.type == "server_tool_use" and block.name == "web_search":
                self._count(web_searches=self.usage.web_searches + 1)
        elif kind == "content_block_delta":
            self._delta(event.index, event.delta)
        elif kind == "content_block_stop":
            self._silent_block = False
        elif kind == "message_delta":
            self._count(output_tokens=event.usage.output_tokens or self.usage.output_tokens)
        if kind == "message_stop":
            self.finish()
        elif self._has_content and kind.startswith(("message_", "content_block_")):
            self._extend_deadline()  # not by a ping, which is not the model's

    def _extend_deadline(self) -> None:
        self._end.reschedule(asyncio.get_running_loop().time() + self._idle)

    def _delta(self, index: int, delta: Any) -> None:
        text = getattr(delta, "text", None)
        arguments = getattr(delta, "partial_json", None)
        shown = text or getattr(delta, "thinking", None) or arguments or ""
        self._bytes += size(shown)
        self._arguments[index] += size(arguments or "")
        if self._bytes > _MODEL_REPLY_BYTES:
            raise _too_large("the answer", _MODEL_REPLY_BYTES)
        if self._arguments[index] > _MODEL_TOOL_INPUT_BYTES:
            raise _too_large("a tool call", _MODEL_TOOL_INPUT_BYTES)
        self._chars += len(shown)
        self._count(output_tokens=round(self._chars / limits.CHARS_PER_TOKEN))
        if text:
            # Twice what is shown: a credential at the edge must be seen whole.
            most = limits.HEARTBEAT_TAIL_CHARS
            self._tail = (self._tail + text)[-2 * most :]
            self._progress.tail = _join_surrogates(self._credentials.withheld(self._tail)[-most:])

    def _count(self, **tokens: int) -> None:
        self._progress.usage = _counted(**{**dict(self.usage), **tokens})


def whole_message(message: Any) -> ModelMessage:
    """Returns the finished message as plain JSON.

    Raises BadAnswer if it has no stop reason or usage.
    """
    if message.stop_reason is None:
        raise BadAnswer("the message has no stop reason", ErrorKind.STREAM_BROKEN)
    if message.usage.output_tokens is None:
        raise BadAnswer("the message has no usage")
    content = [_as_json(block) for block in message.content]
    # Gateways say that the turn has ended; a call without an answer would be refused with the next
    # request.
    calls = any(block.get("type") == "tool_use" for block in content)
    return ModelMessage(
        content=content,
        stop_reason="tool_use" if calls and message.stop_reason in _ENDED else message.stop_reason,
        stop_details=None if message.stop_details is None else _as_json(message.stop_details),
        usage=_usage(message.usage),
        model=message.model,
    )


def ended_message(message: Any, stop_reason: str, usage: ModelUsage) -> ModelMessage:
    """Returns a message that was ended here before its own end, with the `usage` so far."""
    return ModelMessage(
        content=[_as_json(block) for block in message.content],
        stop_reason=stop_reason,
        usage=usage,
        model=message.model,
    )


def _usage(usage: Any) -> ModelUsage:
    """Returns the counts of a message, with zeros for missing ones.

    Raises BadAnswer if there is no usage, or if a count is impossible.
    """
    if usage is None:
        raise BadAnswer("the message has no usage")
    return _counted(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
        cache_write_tokens=usage.cache_creation_input_tokens or 0,
        web_searches=getattr(usage.server_tool_use, "web_search_requests", None) or 0,
    )


def _counted(**tokens: int) -> ModelUsage:
    try:
        return ModelUsage(**tokens)
    except ValidationError:
        raise BadAnswer("its usage is no possible number of tokens") from None


def _as_json(value: Any) -> JsonObject:
    # `to_dict` keeps exactly what came: dumping with defaults adds nulls, dropping nulls loses tool
    # input.
    plain: JsonObject = value if isinstance(value, dict) else value.to_dict(mode="json")
    text = json.dumps(plain, ensure_ascii=False)
    return plain if text.isascii() else dict(json.loads(_join_surrogates(text)))


def _join_surrogates(text: str) -> str:
    """Returns `text` with split surrogate pairs joined and single ones replaced.

    Neither can be stored as UTF-8.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def check_message(message: ModelMessage, credentials: Credentials) -> ModelMessage:
    """Returns `message` without credentials. Raises BadAnswer if it is not usable."""
    if max(size(message.model), size(message.stop_reason)) > limits.MODEL_NAME_BYTES:
        raise BadAnswer("its model or stop reason is too long")
    if depth_exceeds([message.content, message.stop_details], MODEL_REPLY_DEPTH):
        raise BadAnswer("the answer is nested too deeply")
    calls = [(call.get("id"), call.get("name")) for call in message.tool_uses()]
    named = all(isinstance(part, str) and part for call in calls for part in call)
    if not named or len({call_id for call_id, _ in calls}) < len(calls):
        raise BadAnswer("its tool calls lack names, or ids of their own")
    try:
        message.text()  # its texts are texts
        # Nor do readers take any number of digits.
        json.dumps(message.model_dump(), allow_nan=False)
        data = message.model_dump_json()
        unchanged = ModelMessage.model_validate_json(data) == message
    except (ValueError, TypeError):
        unchanged = False
    if not unchanged:
        raise BadAnswer("the answer would not come back from the store as it was")
    if size(data) > _MODEL_REPLY_BYTES:
        raise _too_large("the answer", _MODEL_REPLY_BYTES)
    shown = credentials.withheld(data)
    return message if shown == data else ModelMessage.model_validate_json(shown)


def _too_large(part: str, limit: int) -> BadAnswer:
    return BadAnswer(f"{part} has more than {limit} bytes")
