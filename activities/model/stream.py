"""Reading a streamed answer: its content, its text so far, and the whole message at the end.

Works on the SDK's events and message by their public fields, so it does not import the SDK.
"""

import json
from typing import Any

from activities.model.call_errors import failure
from activities.model.port import Json, ModelMessage, ModelUsage, StreamProgress
from supervision import limits
from supervision.errors import ErrorKind


class StreamReader:
    """Reads the events of one stream into `progress`."""

    def __init__(self, progress: StreamProgress) -> None:
        self._progress = progress
        self._chars = 0
        self._tail = ""
        self.started = False
        self.finished = False
        self._content = False

    def see(self, event: Any) -> bool:
        """Takes one event in. Returns True if it came from the model: a ping does not."""
        kind: str = event.type
        if kind == "message_start":
            self.started = True
        elif kind == "content_block_start" and not self._content:
            self._content = True
            self._progress.begin_content()
        elif kind == "content_block_delta":
            self._delta(event.delta)
        elif kind == "message_delta":
            self._progress.output_tokens = event.usage.output_tokens or self._progress.output_tokens
        elif kind == "message_stop":
            self.finished = True
        return kind.startswith(("message_", "content_block_"))

    def _delta(self, delta: Any) -> None:
        text = getattr(delta, "text", None)
        shown = text or getattr(delta, "thinking", None) or getattr(delta, "partial_json", None) or ""
        self._chars += len(shown)
        self._progress.output_tokens = round(self._chars / limits.CHARS_PER_TOKEN)
        if text:
            self._tail = (self._tail + text)[-limits.HEARTBEAT_TAIL_CHARS :]
            self._progress.tail = _joined(self._tail)


def whole_message(message: Any, request_id: str | None, endpoint: str) -> ModelMessage:
    """Returns the finished message as plain JSON.

    Raises ModelFailure: StreamBroken without a stop reason, BadResponse without content or usage.
    """
    if not isinstance(message.content, list):
        raise failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail="the message has no content")
    if message.stop_reason is None:
        raise failure(ErrorKind.STREAM_BROKEN, endpoint=endpoint, detail="the message has no stop reason")
    usage = message.usage
    if usage is None or usage.output_tokens is None:
        raise failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail="the message has no usage")
    return ModelMessage(
        content=[_plain(block) for block in message.content],
        stop_reason=message.stop_reason,
        stop_details=None if message.stop_details is None else _plain(message.stop_details),
        usage=ModelUsage(
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_input_tokens or 0,
            cache_write_tokens=usage.cache_creation_input_tokens or 0,
        ),
        model=message.model,
        message_id=message.id,
        request_id=request_id,
    )


def _plain(value: Any) -> Json:
    # `to_dict` keeps exactly what came: dumping with defaults adds nulls, dropping nulls loses tool input.
    plain: Json = value if isinstance(value, dict) else value.to_dict(mode="json")
    text = json.dumps(plain, ensure_ascii=False)
    if text.isascii() or _joined(text) == text:
        return plain
    repaired: Json = json.loads(_joined(text))
    return repaired


def _joined(text: str) -> str:
    """Returns `text` with split surrogate pairs joined and single ones replaced: neither can be stored as UTF-8."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
