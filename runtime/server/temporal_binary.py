"""The `temporal` program: found on this machine, built with Go, which checks its sources, or downloaded.

`python -m runtime.server.temporal_binary` does it and prints the path.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from filelock import FileLock, Timeout

from runtime.paths import cache_dir, keep_files_private
from runtime.server import server_limits, temporal_build
from runtime.server.temporal_build import Note


class TemporalNotFound(RuntimeError):
    """No `temporal` program and no way to get one; the message says what to install."""


def say(line: str) -> None:
    """Writes a line of progress to standard error."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def find_temporal(note: Note = say) -> Path:
    """Returns the `temporal` program: named, on PATH, cached, built or downloaded, in this order.

    Blocks, for minutes if it has to build; `note` gets progress lines. Raises TemporalNotFound.
    """
    named = os.environ.get("SUPERVISOR_TEMPORAL")
    if named:
        return _named(Path(named).expanduser().absolute())
    on_path = shutil.which("temporal")
    if on_path:
        if runs(Path(on_path)):
            return Path(on_path).absolute()
        note(f"{on_path} is on PATH but does not run: looking further")
    folder = cache_dir() / "bin"
    folder.mkdir(exist_ok=True)
    cached = folder / "temporal"
    if runs(cached):
        return cached
    with _locked(folder / "temporal.lock", note):
        if not runs(cached):  # another process may have made it while this one waited
            _make(cached, note)
    return cached


def runs(program: Path) -> bool:
    """True if this is a `temporal` program that starts on this machine."""
    return _version(program) is not None


def _version(program: Path) -> str | None:
    """Returns what the program says of its version, None if it is no `temporal` program that starts."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=server_limits.VERSION_TIMEOUT.total_seconds(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[2] if done.returncode == 0 and words[:2] == ["temporal", "version"] and len(words) > 2 else None


def _named(program: Path) -> Path:
    if runs(program):
        return program
    raise TemporalNotFound(f"SUPERVISOR_TEMPORAL names {program}, which is not a temporal program that runs here")


def _make(target: Path, note: Note) -> None:
    for left in target.parent.glob("making-*"):  # by a process that was killed: the lock is ours now
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=target.parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        go = temporal_build.usable_go()
        made = _built(go, folder, note) if go else _downloaded(folder)
        made.replace(target)  # in one step: no process ever finds half a program
    note(f"temporal is ready: {target}")


def _downloaded(folder: Path) -> Path:
    """The pinned version, by the SDK over https; no digest of it is known, so it must at least say that it is it."""
    for file in temporal_build.download(folder):
        if _version(file) == temporal_build.VERSION:
            return file
    raise TemporalNotFound(
        "no temporal program found and none could be downloaded: install the Temporal CLI "
        "(https://docs.temporal.io/cli) or Go 1.23 or newer, or let SUPERVISOR_TEMPORAL name a temporal program"
    )


def _built(go: str, folder: Path, note: Note) -> Path:
    note(f"building the temporal program with {go}: some minutes, once")
    last = temporal_build.build(go, folder, note)
    made = folder / "temporal"
    if made.exists() and not temporal_build.is_of_pinned_sources(go, made):
        last = "its sources do not have the pinned checksum"
    elif runs(made):
        return made
    raise TemporalNotFound(
        f"`go install {temporal_build.GO_PACKAGE}` failed ({last}): install the Temporal CLI "
        "(https://docs.temporal.io/cli), or let SUPERVISOR_TEMPORAL name a temporal program"
    )


def _locked(path: Path, note: Note) -> FileLock:
    """Returns the lock on `path`, taken, for a `with` block; `note` gets a line while another process has it."""
    lock = FileLock(path, poll_interval=server_limits.LOCK_POLL.total_seconds())
    began = time.monotonic()
    while (waited := time.monotonic() - began) <= server_limits.BUILD_TIMEOUT.total_seconds():
        try:
            lock.acquire(timeout=server_limits.BUILD_REPORT.total_seconds())
            return lock
        except Timeout:
            note(f"another process is making the temporal program: waiting, {waited:.0f} s")
    raise TemporalNotFound("another process has been making the temporal program for too long: end it first")


if __name__ == "__main__":
    keep_files_private()
    try:
        sys.stdout.write(f"{find_temporal()}\n")
    except (TemporalNotFound, OSError) as error:
        sys.exit(str(error))
