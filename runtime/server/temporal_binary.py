"""The `temporal` program: found on this machine, built with Go, which checks its sources, or downloaded."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from filelock import FileLock, Timeout

from runtime.process import cache_dir, keep_files_private, say

Note = Callable[[str], None]

VERSION = "1.5.1"  # later tags need a `replace`: Go does not install them by name
GO_PACKAGE = f"github.com/temporalio/cli/cmd/temporal@v{VERSION}"
GO_SUM = "h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY="  # of the module, as Go's checksum database has it
GO_AT_LEAST = (1, 23)
BUILD_REPORT = timedelta(seconds=5)  # how often a build says how far it is
BUILD_TIMEOUT = timedelta(minutes=30)  # of another process; 4 minutes on 2 cores
_DOWNLOAD_TIMEOUT = timedelta(seconds=120)  # ~50 MB; offline it fails at once
_VERSION_TIMEOUT = timedelta(seconds=20)  # `temporal --version`: milliseconds, seconds from a cold disk


class TemporalNotFound(RuntimeError):
    """No `temporal` program and no way to get one; the message says what to install."""


def find_temporal(note: Note = say) -> Path:
    """Returns the `temporal` program: named, on PATH, cached, built or downloaded. Raises TemporalNotFound.

    Blocks, for minutes if it has to build; `note` gets lines of progress.
    """
    named = os.environ.get("SUPERVISOR_TEMPORAL")
    if named:
        program = Path(named).expanduser().absolute()
        if runs(program):
            return program
        raise TemporalNotFound(f"SUPERVISOR_TEMPORAL names {program}, which is not a temporal program that runs here")
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
            timeout=_VERSION_TIMEOUT.total_seconds(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.split()
    return words[2] if done.returncode == 0 and words[:2] == ["temporal", "version"] and len(words) > 2 else None


def _make(target: Path, note: Note) -> None:
    for left in target.parent.glob("making-*"):  # by a process that was killed: the lock is ours now
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=target.parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        go = usable_go()
        made = _built(go, folder, note) if go else _downloaded(folder)
        made.replace(target)  # in one step: no process ever finds half a program
    note(f"temporal is ready: {target}")


def _downloaded(folder: Path) -> Path:
    """The pinned version, by the SDK over https; no digest of it is known, so it must at least say that it is it."""
    for file in download(folder):
        if _version(file) == VERSION:
            return file
    raise TemporalNotFound(
        "no temporal program found and none could be downloaded: install the Temporal CLI "
        "(https://docs.temporal.io/cli) or Go 1.23 or newer, or let SUPERVISOR_TEMPORAL name a temporal program"
    )


def _built(go: str, folder: Path, note: Note) -> Path:
    note(f"building the temporal program with {go}: some minutes, once")
    last = build(go, folder, note)
    made = folder / "temporal"
    if made.exists() and not is_of_pinned_sources(go, made):
        last = "its sources do not have the pinned checksum"
    elif runs(made):
        return made
    raise TemporalNotFound(
        f"`go install {GO_PACKAGE}` failed ({last}): install the Temporal CLI "
        "(https://docs.temporal.io/cli), or let SUPERVISOR_TEMPORAL name a temporal program"
    )


def _locked(path: Path, note: Note) -> FileLock:
    """Returns the lock on `path`, taken, for a `with` block; `note` gets a line if another process has it."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        note("another process is making the temporal program: waiting")
        try:
            lock.acquire(timeout=BUILD_TIMEOUT.total_seconds())
        except Timeout:
            raise TemporalNotFound(
                "another process has been making the temporal program for too long: end it first"
            ) from None
    return lock


def download(folder: Path) -> list[Path]:
    """Lets the SDK download VERSION of the program into `folder`. Returns the files, none if it failed."""
    from temporalio.testing import WorkflowEnvironment  # heavy, and needed once in a machine's life

    async def start_once() -> None:
        async with asyncio.timeout(_DOWNLOAD_TIMEOUT.total_seconds()):
            # the SDK downloads only as part of starting a server
            environment = await WorkflowEnvironment.start_local(
                download_dest_dir=str(folder), dev_server_download_version=f"v{VERSION}"
            )
            await environment.shutdown()

    try:
        asyncio.run(start_once())
    except (RuntimeError, TimeoutError):
        return []  # offline, or a proxy in between
    return sorted(path for path in folder.rglob("*") if path.is_file())


def usable_go() -> str | None:
    """Returns the `go` command on PATH, or None if there is none or it is too old."""
    go = shutil.which("go")
    if go is None:
        return None
    try:
        done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"go(\d+)\.(\d+)", done.stdout.strip())
    return go if version and (int(version[1]), int(version[2])) >= GO_AT_LEAST else None


def is_of_pinned_sources(go: str, program: Path) -> bool:
    """True if Go wrote the module's pinned checksum into the program that it built.

    Go itself compares sources with its checksum database; proxies and environments that switch this off exist.
    """
    done = subprocess.run([go, "version", "-m", program], capture_output=True, text=True, timeout=30)
    module = GO_PACKAGE.partition("/cmd/")[0]
    return ["mod", module, f"v{VERSION}", GO_SUM] in [line.split() for line in done.stdout.splitlines()]


def build(go: str, folder: Path, note: Note) -> str:
    """Runs `go install` into `folder`; `note` gets progress lines. Returns the last line of the output."""
    environment = os.environ | {"GOBIN": str(folder), "GOFLAGS": ""}
    for cross in ("GOOS", "GOARCH"):  # go install refuses GOBIN when they are set
        environment.pop(cross, None)
    command = [go, "install", "-v", GO_PACKAGE]
    began, told, last = time.monotonic(), 0.0, "no output"
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        cwd=folder,
    ) as process:
        for line in filter(None, map(str.strip, process.stdout or ())):
            last, waited = line, time.monotonic() - began
            if waited > told + BUILD_REPORT.total_seconds():
                told = waited
                note(f"building temporal: {waited:.0f} s, {last}")
    return last


if __name__ == "__main__":
    keep_files_private()
    try:
        sys.stdout.write(f"{find_temporal()}\n")
    except (TemporalNotFound, OSError) as error:
        sys.exit(str(error))
