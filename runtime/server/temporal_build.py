"""Getting the `temporal` program onto this machine: the SDK's download, or a build with Go."""

import asyncio
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from runtime.server import server_limits

Note = Callable[[str], None]

VERSION = "1.5.1"  # later tags need a `replace`: Go does not install them by name
GO_PACKAGE = f"github.com/temporalio/cli/cmd/temporal@v{VERSION}"
GO_SUM = "h1:0RZMk14BWxz44Xg6ciDQvpfAMffoG3J7/K03ql80teY="  # of the module, as Go's checksum database has it
GO_AT_LEAST = (1, 23)


def download(folder: Path) -> list[Path]:
    """Lets the SDK download VERSION of the program into `folder`. Returns the files, none if it failed."""
    from temporalio.testing import WorkflowEnvironment  # heavy, and needed once in a machine's life

    async def start_once() -> None:
        # the SDK downloads only as part of starting a server
        environment = await WorkflowEnvironment.start_local(
            download_dest_dir=str(folder), dev_server_download_version=f"v{VERSION}"
        )
        await environment.shutdown()

    async def bounded() -> None:
        await asyncio.wait_for(start_once(), server_limits.DOWNLOAD_TIMEOUT.total_seconds())

    try:
        asyncio.run(bounded())
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
    process = subprocess.Popen(
        [go, "install", "-v", GO_PACKAGE],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        cwd=folder,
    )
    output = _LastLine(process)
    began = time.monotonic()
    try:
        while time.monotonic() - began < server_limits.BUILD_TIMEOUT.total_seconds():
            try:
                process.wait(server_limits.BUILD_REPORT.total_seconds())
                break
            except subprocess.TimeoutExpired:
                note(f"building temporal: {time.monotonic() - began:.0f} s, {output.line}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    output.join(timeout=1)
    return output.line


class _LastLine(Thread):
    """Reads a process's output to its end and keeps the last line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self.line = "no output yet"
        self._process = process
        self.start()

    def run(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.line = line.strip() or self.line
