"""How much an endpoint may send: beyond it the connection is closed, before anything of it fills the memory."""

from activities.model.call_errors import failure
from activities.model.port import ModelFailure
from supervision import limits
from supervision.errors import ErrorKind

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


def too_large(endpoint: str, part: str, limit: int) -> ModelFailure:
    """The failure of an endpoint that sends more than anybody can need."""
    return failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail=f"{part} has more than {limit} bytes")
