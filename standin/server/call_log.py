"""The call log: which calls came in, and how each ended."""

import json
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

_ENTRIES = 100_000  # kept in memory; the file has all

CallEvent = Literal["received", "answered", "aborted", "failed"]
"""`answered`: the last byte of a whole reply was sent. `aborted`: the client left before that. `failed`: all else."""

Entry = dict[str, Any]


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
