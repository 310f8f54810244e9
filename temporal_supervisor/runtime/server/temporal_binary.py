"""The `temporal` program: found on this machine, built with Go, or downloaded.

Go verifies the sources.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from filelock import FileLock

from temporal_supervisor.runtime.process import cache_dir, keep_files_private, write_stderr

VERSION = "1.5.1"  # later tags need a `replace`: Go does not install them by name
GO_PACKAGE = f"github.com/temporalio/cli/cmd/temporal@v{VERSION}"
_DOWNLOAD_TIMEOUT = timedelta(seconds=120)  # ~50 MB; offline it fails at once
_VERSION_TIMEOUT = timedelta(seconds=20)  # milliseconds are needed, seconds from a cold disk
# About 4 are needed; Go waits for ever for a mirror that falls silent.
_BUILD_TIMEOUT = timedelta(minutes=30)
_TOLD_EVERY = timedelta(seconds=20)  # how far a build is
_LAST_LINES = 5  # of a build that failed


class TemporalNotFound(RuntimeError):
    """No `temporal` program and no way to get one; the message has the remedy."""


def find_temporal() -> Path:
    """Returns the `temporal` program: configured, on PATH, cached, built or downloaded.

    It blocks for minutes if it has to build, or if another process does. Raises TemporalNotFound.
    """
    named = os.environ.get("SUPERVISOR_TEMPORAL")
    if named:
        program = Path(named).expanduser().absolute()
        if not program.is_file():
            raise TemporalNotFound(f"SUPERVISOR_TEMPORAL names {named}, where there is no file")
        return program

    on_path = shutil.which("temporal")
    if on_path and can_run(Path(on_path)):
        return Path(on_path).absolute()

    folder = cache_dir() / "bin"
    folder.mkdir(exist_ok=True)
    cached = folder / "temporal"
    with FileLock(folder / "temporal.lock"):
        if not can_run(cached):
            _obtain(cached)
    return cached


def can_run(program: Path) -> bool:
    """True if this is a `temporal` program that runs on this machine."""
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            timeout=_VERSION_TIMEOUT.total_seconds(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith(b"temporal version ")


def _obtain(target: Path) -> None:
    """Builds or downloads the program. Raises TemporalNotFound."""
    folder = target.with_name("making")
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed: the lock is ours now
    folder.mkdir()
    made = _build(folder) or download(folder)
    if made is None:
        raise TemporalNotFound(
            "no temporal program found, and none could be built or downloaded: "
            "install the Temporal CLI (https://docs.temporal.io/cli) or Go 1.23 or newer, "
            "or let SUPERVISOR_TEMPORAL name a temporal program"
        )
    made.replace(target)  # in one step: no process ever finds half a program
    shutil.rmtree(folder)
    write_stderr(f"temporal is ready: {target}")


def _build(folder: Path) -> Path | None:
    """Builds VERSION with Go into `folder` and reports progress.

    Returns the program; None if it could not be built.
    """
    go = shutil.which("go")
    if go is None:
        return None
    write_stderr(f"building the temporal program with {go}: some minutes, once")
    for_this_machine = {"GOBIN": str(folder), "GOFLAGS": "", "GOOS": "", "GOARCH": ""}
    environ = {**os.environ, **for_this_machine}
    command = [go, "install", "-v", GO_PACKAGE]
    log = folder / "build.log"  # a line for each package
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=environ, cwd=folder, stderr=output) as building,
    ):
        for _ in range(_BUILD_TIMEOUT // _TOLD_EVERY):
            with contextlib.suppress(subprocess.TimeoutExpired):
                building.wait(_TOLD_EVERY.total_seconds())
                break
            built = len(log.read_bytes().splitlines())
            write_stderr(f"building temporal: {built:,} of some 1,500 packages")
        building.kill()  # does nothing to one that has ended

    made = folder / "temporal"
    if can_run(made):
        return made
    last = log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
    write_stderr("\n".join(["temporal could not be built, its last lines:", *last]))
    return None


def download(folder: Path) -> Path | None:
    """Downloads VERSION with the SDK into `folder`, over https only.

    Returns the program; None if it could not be downloaded.
    """
    from temporalio.testing import WorkflowEnvironment  # heavy, and needed once in a machine's life

    async def start_once() -> None:
        async with asyncio.timeout(_DOWNLOAD_TIMEOUT.total_seconds()):
            # the SDK downloads only as part of starting a server
            environment = await WorkflowEnvironment.start_local(
                download_dest_dir=str(folder),
                dev_server_download_version=f"v{VERSION}",
            )
            await environment.shutdown()

    with contextlib.suppress(RuntimeError, TimeoutError):  # offline, or a proxy in between
        asyncio.run(start_once())
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return next(filter(can_run, files), None)


if __name__ == "__main__":
    keep_files_private()
    try:
        sys.stdout.write(f"{find_temporal()}\n")
    except (TemporalNotFound, OSError) as error:
        sys.exit(str(error))
