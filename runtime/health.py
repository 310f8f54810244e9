"""The health of a Worker process: its event loop renews a file.

`python -m runtime.health FILE` exits 0 if it was renewed a moment ago.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

_HEALTH_STALE = timedelta(seconds=60)  # a busy loop is late by seconds, never by a minute
_HEALTH_BEAT = timedelta(seconds=5)  # how often a Worker shows that its event loop runs


@contextlib.asynccontextmanager
async def shown_alive(file: Path | None) -> AsyncIterator[None]:
    """Renews `file` while the event loop runs; does nothing without one."""
    if file is None:
        yield
        return
    file.touch()
    renewing = asyncio.create_task(_renew(file))
    try:
        yield
    finally:
        renewing.cancel()
        file.unlink(missing_ok=True)


def is_alive(file: Path) -> bool:
    """True if the process that renews `file` did so a moment ago."""
    try:
        age = datetime.now(UTC).timestamp() - file.stat().st_mtime
    except OSError:
        return False
    return abs(age) < _HEALTH_STALE.total_seconds()


async def _renew(file: Path) -> None:
    while True:
        await asyncio.sleep(_HEALTH_BEAT.total_seconds())
        file.touch()


def main(arguments: list[str]) -> int:
    """Returns the exit code: 0 when the Worker is alive, 1 when not, 2 without a file."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m runtime.health FILE\n")
        return 2
    return 0 if is_alive(Path(arguments[0])) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
