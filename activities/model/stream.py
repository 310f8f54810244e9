"""Reading a streamed answer: its content, its text so far, and the whole message at the end.

Works on the SDK's events and message by their public fields, so it does not import the SDK.
"""

import json
from collections import Counter
from typing import Any

from activities.model.call_errors import failure
from activities.model.port import Json, ModelMessage, ModelUsage, StreamProgress
from activities.model.reply_bounds import too_large
from supervision import limits
from supervision.errors import ErrorKind
from supervision.provider.credentials import NO_CREDENTIALS, Credentials
from supervision.text import size


class StreamReader:
    """Reads the events of one stream into `progress`, without the credentials that may be in them.

    Raises ModelFailure `BadResponse` for an answer that grows too large, and for counts that cannot be.
    """

    def __init__(self, progress: StreamProgress, endpoint: str = "", credentials: Credentials = NO_CREDENTIALS) -> None:
        self._progress = progress
        self._endpoint = endpoint
        self._credentials = credentials
        self._bytes = 0
        self._arguments: Counter[int] = Counter()
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
            self._delta(event.index, event.delta)
        elif kind == "message_delta":
            self._progress.output_tokens = (
                _tokens(event.usage.output_tokens, self._endpoint) or self._progress.output_tokens
            )
        elif kind == "message_stop":
            self.finished = True
        return kind.startswith(("message_", "content_block_"))

    def _delta(self, index: int, delta: Any) -> None:
        text, arguments = getattr(delta, "text", None), getattr(delta, "partial_json", None)
        shown = text or getattr(delta, "thinking", None) or arguments or ""
        self._bytes += size(shown)
        if arguments:
            self._arguments[index] += size(arguments)
        if self._bytes > limits.MODEL_REPLY_BYTES:
            raise too_large(self._endpoint, "the answer", limits.MODEL_REPLY_BYTES)
        if self._arguments[index] > limits.MODEL_TOOL_INPUT_BYTES:
            raise too_large(self._endpoint, "a tool call", limits.MODEL_TOOL_INPUT_BYTES)
        self._chars += len(shown)
        self._progress.output_tokens = round(self._chars / limits.CHARS_PER_TOKEN)
        if text:
            # Twice what is shown: a credential at the edge must be seen whole.
            self._tail = (self._tail + text)[-2 * limits.HEARTBEAT_TAIL_CHARS :]
            shown = "" if self._credentials.are_in(self._tail) else self._tail
            self._progress.tail = _joined(shown[-limits.HEARTBEAT_TAIL_CHARS :])


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
            input_tokens=_tokens(usage.input_tokens, endpoint),
            output_tokens=_tokens(usage.output_tokens, endpoint),
            cache_read_tokens=_tokens(usage.cache_read_input_tokens, endpoint),
            cache_write_tokens=_tokens(usage.cache_creation_input_tokens, endpoint),
        ),
        model=message.model,
        message_id=message.id,
        request_id=request_id,
    )


def _tokens(value: Any, endpoint: str) -> int:
    """Returns a count of tokens, 0 for a missing one. Raises ModelFailure for an impossible one: budgets rely on it."""
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= limits.MODEL_USAGE_TOKENS:
        raise failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail="its usage is no possible number of tokens")
    return value


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
