"""The ledger: what was asked and how it ended, one JSON line each, written at once."""

import json
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal

from supervision import limits

Event = Literal["received", "answered", "aborted", "failed"]
"""`answered`: the last byte of a whole reply was sent. `aborted`: the client left before that. `failed`: all else."""


class Ledger:
    """Entries in memory, and in a file if there is one. Raises OSError when that cannot be written."""

    def __init__(self, path: Path | None) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=limits.STANDIN_LEDGER_ENTRIES)
        self._file: IO[str] | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")

    def write(self, event: Event, **fields: Any) -> None:
        """Appends an entry; `at` is in Unix seconds."""
        entry = {"at": datetime.now(UTC).timestamp(), "event": event, **fields}
        self._entries.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, ensure_ascii=True) + "\n")
            self._file.flush()

    def entries(self) -> list[dict[str, Any]]:
        """All entries kept, oldest first."""
        return list(self._entries)

    def clear(self) -> None:
        """Forgets the entries in memory; the file stays as it is."""
        self._entries.clear()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
