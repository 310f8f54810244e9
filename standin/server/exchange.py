"""One HTTP exchange: the request as it came in, the bytes that go out; and the log of how each ended."""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import unquote

from starlette.types import Receive, Send

from standin.server.api_request import Json

_BODY_BYTES = 64 << 20  # one request
_ENTRIES = 100_000  # kept for `GET /ledger`; the file has all

CallEvent = Literal["received", "answered", "aborted", "failed"]
"""`answered`: the last byte of a whole reply was sent. `aborted`: the client left before that. `failed`: all else."""

Entry = dict[str, Any]


@dataclass
class HttpExchange:
    """One request on its way."""

    number: int
    headers: dict[str, str]
    send: Send
    body: bytes = b""
    started: bool = False
    facts: Json = field(default_factory=dict)  # for the call log

    @property
    def call(self) -> str:
        """Returns the call header, decoded."""
        return unquote(self.headers.get("x-supervisor-call", ""))

    @property
    def key(self) -> str:
        """Returns the API key, from whichever of the two headers the client uses."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def workflow_id(self) -> str:
        """Returns the call header without its step."""
        return self.call.rpartition("/")[0]

    async def start(self, status: int, content_type: str, headers: dict[str, str] | None = None) -> None:
        """Sends status and headers."""
        self.started = True
        self.facts["status"] = status
        own = {"content-type": content_type, "request-id": f"req_{self.number:06d}", **(headers or {})}
        encoded = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in own.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def write(self, data: bytes, more: bool = True) -> None:
        """Sends a part of the body."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def whole(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """Sends a whole reply."""
        await self.start(status, content_type, headers)
        await self.write(body, more=False)


class CallLog:
    """Entries in memory, and in a file if there is one; `listener` gets each. Raises OSError."""

    def __init__(self, path: Path | None = None, listener: Callable[[Entry], None] = lambda _: None) -> None:
        self._entries: deque[Entry] = deque(maxlen=_ENTRIES)
        self._listener = listener
        self._file: IO[str] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")

    def write(self, event: CallEvent, **fields: Any) -> None:
        """Appends an entry; `at` is in Unix seconds."""
        entry = {"at": datetime.now(UTC).timestamp(), "event": event, **fields}
        self._entries.append(entry)
        self._listener(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, ensure_ascii=True) + "\n")
            self._file.flush()

    def entries(self) -> list[Entry]:
        """Returns all entries in memory, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Forgets the entries in memory; the file stays as it is."""
        self._entries.clear()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


async def read(receive: Receive) -> bytes | None:
    """Returns the whole body, at most the limit; None if the client left."""
    parts: list[bytes] = []
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        parts.append(event.get("body", b""))
        if not event.get("more_body") or sum(map(len, parts)) > _BODY_BYTES:
            return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Returns when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
