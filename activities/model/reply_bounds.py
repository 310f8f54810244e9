"""How much an endpoint may send, and what of it may be stored.

Beyond the bounds the connection is closed, before anything of it fills the memory. The last look at a reply makes sure
that it can be read again and holds no credential.
"""

import json

from activities.model.call_errors import failure
from activities.model.port import ModelFailure, ModelMessage
from supervision import limits
from supervision.contract.base import depth_exceeds
from supervision.errors import ErrorKind
from supervision.provider.credentials import Credentials
from supervision.text import size

_EVENT_ENDS = (b"\r\r", b"\n\n", b"\r\n\r\n")  # as the SDK sees it: what it gathers is what counts


class StreamBounds:
    """Counts the bytes of one event stream as they come."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._total = 0
        self._event = 0
        self._lines = 0
        self._tail = b""

    def count(self, chunk: bytes) -> None:
        """Takes one piece in; ModelFailure `BadResponse` when the stream, or one event of it, is too large."""
        self._total += len(chunk)
        if self._total > limits.MODEL_WIRE_BYTES:
            raise too_large(self._endpoint, "the stream", limits.MODEL_WIRE_BYTES)
        for line in chunk.splitlines(keepends=True):
            self._event += len(line)
            self._lines += 1
            self._tail = (self._tail + line)[-4:]
            if self._tail.endswith(_EVENT_ENDS):
                self._event, self._lines, self._tail = 0, 0, b""
            elif self._event > limits.MODEL_EVENT_BYTES or self._lines > limits.MODEL_EVENT_LINES:
                raise too_large(self._endpoint, "one event", limits.MODEL_EVENT_BYTES)


def checked(message: ModelMessage, endpoint: str, credentials: Credentials) -> ModelMessage:
    """Returns `message`; ModelFailure `BadResponse` when it may not be stored.

    A journal that holds what nobody can read would stop its run for good: each attempt would find it.
    """
    names = (message.model, message.message_id, message.stop_reason, message.request_id or "")
    if any(size(name) > limits.MODEL_NAME_BYTES for name in names):
        raise _bad(endpoint, "its id, model or stop reason is too long")
    if depth_exceeds([message.content, message.stop_details], limits.MODEL_REPLY_DEPTH):
        raise _bad(endpoint, "the answer is nested too deeply")
    plain = message.model_dump()
    try:
        json.dumps(plain, allow_nan=False)  # nor has JSON infinite numbers, or readers take any number of digits
        data = message.model_dump_json()
        unchanged = ModelMessage.model_validate_json(data) == message
    except ValueError:
        unchanged = False
    if not unchanged:
        raise _bad(endpoint, "the answer would not come back from the store as it was")
    if size(data) > limits.MODEL_REPLY_BYTES:
        raise too_large(endpoint, "the answer", limits.MODEL_REPLY_BYTES)
    if credentials.are_in([message.text(), plain]):
        raise _bad(endpoint, "the answer holds the credential that the call was made with")
    return message


def _bad(endpoint: str, detail: str) -> ModelFailure:
    return failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail=detail)


def too_large(endpoint: str, part: str, limit: int) -> ModelFailure:
    """Returns the failure of an endpoint that sends more than anybody can need."""
    return failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail=f"{part} has more than {limit} bytes")
