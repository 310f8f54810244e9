"""What a Worker process is at work on, kept so that it can be read when the process is dead, however it ended.

A process writes into a file of its own, which it holds locked: a file that can be locked belongs to a process that is
gone, whatever took over its number.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from supervision.text import one_line

_FILE_BYTES = 64 * 1024  # then the file is written again, with what has not ended: a beginning takes some 200 bytes
_NAMED = 5  # activities in one line, the oldest first
_NAME_BYTES = 300
_SUFFIX = ".work"


class LastWords:
    """The activities under way in this process, but for those that only wait. `file` is open for appending."""

    def __init__(self, file: int | None = None) -> None:
        self._file = file
        self._size = 0
        self._numbers = count(1)
        self._under_way: dict[int, str] = {}

    def begins(self, activity_type: str, workflow_id: str) -> int:
        """Returns a number for what begins."""
        number, since = next(self._numbers), datetime.now(UTC).isoformat(timespec="seconds")
        self._under_way[number] = json.dumps([number, activity_type, workflow_id, since])
        self._write(self._under_way[number])
        return number

    def ends(self, number: int) -> None:
        """Forgets it."""
        if self._under_way.pop(number, None) is not None:
            self._write(str(number))

    def line(self) -> str:
        """Returns what is under way in one line; empty if nothing is."""
        return _named(list(self._under_way.values()))

    def _write(self, line: str) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # a full disk: then the file says less
            if self._size > _FILE_BYTES:
                os.ftruncate(self._file, 0)
                self._size, line = 0, "\n".join([str(os.getpid()), *self._under_way.values()])
            self._size += os.write(self._file, f"{line}\n".encode())


@contextlib.contextmanager
def last_words(folder: Path | None) -> Iterator[tuple[LastWords, list[str]]]:
    """Yields this process's last words, and what processes that are gone left in `folder`, a line for each.

    The file is gone when the block has ended. Without a folder that can be written there is none.
    """
    with contextlib.ExitStack() as stack:
        file, left = None, list[str]()
        with contextlib.suppress(OSError):
            if folder is not None:
                folder.mkdir(mode=0o700, exist_ok=True)
                left = _left(folder)
                file = stack.enter_context(_own_file(folder))
        yield LastWords(file), left


@contextlib.contextmanager
def _own_file(folder: Path) -> Iterator[int]:
    file, name = tempfile.mkstemp(dir=folder)
    path = Path(name)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
        os.write(file, f"{os.getpid()}\n".encode())
        path = path.rename(path.with_suffix(_SUFFIX))  # only now: others lock what they find by this name
        yield file
    finally:
        path.unlink(missing_ok=True)
        os.close(file)


def _left(folder: Path) -> list[str]:
    """Returns what processes that are gone had under way, and removes their files."""
    lines = []
    for path in folder.glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
            path.unlink()
            pid, *written = file.read().decode("utf-8", "replace").splitlines()
            if work := _named(_open(written)):
                lines.append(f"the Worker process before this one (pid {pid}) ended in: {work}")
    return lines


def _open(written: list[str]) -> list[str]:
    under_way: dict[str, str] = {}
    for line in written:
        number = line[1:].partition(",")[0] if line.startswith("[") else line
        under_way.pop(number, None)
        if line.startswith("["):
            under_way[number] = line
    return list(under_way.values())


def _named(work: list[str]) -> str:
    names = []
    for entry in work[:_NAMED]:
        with contextlib.suppress(ValueError):  # cut off in the middle
            _, activity_type, workflow_id, since = json.loads(entry)
            names.append(one_line(f"{activity_type} of run {workflow_id} (since {since})", _NAME_BYTES))
    more = [f"{len(work) - _NAMED} more"] if len(work) > _NAMED else []
    return ", ".join([*names, *more])
