"""Temporal's server on PostgreSQL, as the compose file sets both up."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from temporal_supervisor.runtime.server.temporal_binary import find_temporal
from tests.postgres import Postgres, running
from tests.serving import ROOT

PROGRAMS = ROOT / ".cache" / "operate"


def program(name: str) -> str:
    """Returns a program of `programs.sh`; skips the test where it was not got."""
    if not (PROGRAMS / name).exists():
        pytest.skip(f"there is no {name}: make operate-test gets it")
    return str(PROGRAMS / name)


@contextlib.contextmanager
def process(log: Path, *command: str, environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Runs a program until the block ends; `log` gets what it writes."""
    with log.open("wb") as written:
        started = subprocess.Popen(command, stdout=written, stderr=written, env=environ)
    try:
        yield
    finally:
        started.terminate()
        started.wait(30)


@contextlib.contextmanager
def temporal_on_postgres(folder: Path) -> Iterator[tuple[str, Postgres]]:
    """Gives the address of a Temporal server with its schema and namespace, made by the scripts of `deploy`."""
    server = program("temporal-server")
    (folder / "bin").mkdir()
    (folder / "bin" / "temporal").symlink_to(find_temporal())
    shutil.copytree(PROGRAMS / "schema", folder / "schema")
    (folder / "config").mkdir()
    shutil.copy(PROGRAMS / "server.yaml", folder / "config" / "docker.yaml")
    with running(_postgres()) as database:
        parts = ("FRONTEND", "MATCHING", "HISTORY", "WORKER")
        names = [f"{part}_{kind}_PORT" for part in parts for kind in ("GRPC", "MEMBERSHIP", "HTTP")]
        first = 10_000 + os.getpid() % 1000 * len(names)  # the database's column for them ends at 32,767
        ports = {name: str(port) for port, name in enumerate(names, first)}
        address = f"127.0.0.1:{ports['FRONTEND_GRPC_PORT']}"
        environ = {
            **{"PATH": f"{folder / 'bin'}:{PROGRAMS}:{os.environ['PATH']}", "HOME": str(folder), "LOG_LEVEL": "warn"},
            **{"SQL_HOST": "127.0.0.1", "SQL_PORT": str(database.port), "SQL_USER": "admin"},
            **{"SQL_PASSWORD": database.password, "SCHEMA": str(folder / "schema")},
            **{"DB": "postgres12", "DB_PORT": str(database.port), "POSTGRES_PORT": str(database.port)},
            **{"POSTGRES_SEEDS": "127.0.0.1", "POSTGRES_USER": "admin", "POSTGRES_PWD": database.password},
            **{"BIND_ON_IP": "127.0.0.1", "TEMPORAL_ADDRESS": address, "TEMPORAL_NAMESPACE": "default", **ports},
            "DYNAMIC_CONFIG_FILE_PATH": str(ROOT / "deploy/dynamic-config.yaml"),
        }
        _made(environ, "deploy/create-schema.sh")
        options = ("--root", str(folder), "--config", "config", "--env", "docker", "start")
        with process(folder / "server.log", server, *options, environ=environ):
            _made(environ, "deploy/create-namespace.sh")
            yield address, database


def _postgres() -> Path:
    """Returns the programs of a PostgreSQL with its extensions, one of which Temporal's schema needs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("there is no PostgreSQL with its extensions (Debian's package postgresql)")
    return found[-1].parent


def _made(environ: Mapping[str, str], script: str) -> None:
    done = subprocess.run(["sh", script], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
