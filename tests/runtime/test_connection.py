"""The server that is taken by default: never that of another user of the machine."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.service import RPCError, RPCStatusCode

from runtime import connection
from runtime.connection import ConnectionFailed, foreign_listener, namespace_id, target

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
STRANGER = os.getuid() + 1001


def row(port: int, user: int, state: str = "0A") -> str:
    """A socket as Linux lists it."""
    return f"   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000 {user:>5} 0 1\n"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(7233, STRANGER)], STRANGER),
        ([row(7233, os.getuid())], None),
        ([row(7234, STRANGER)], None),
        ([row(7234, STRANGER), row(7233, os.getuid()), row(7233, STRANGER)], STRANGER),
        (["nonsense\n"], None),
    ],
)
def test_a_stranger_is_whoever_else_listens(tmp_path: Path, rows: list[str], expected: int | None) -> None:
    (tmp_path / "tcp6").write_text(HEAD + "".join(rows))
    assert foreign_listener(7233, tmp_path) == expected


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_real_stranger_is_seen() -> None:
    os.seteuid(STRANGER)
    try:
        server = socket.create_server(("127.0.0.1", 0))
    finally:
        os.seteuid(0)
    with server:
        assert foreign_listener(server.getsockname()[1]) == STRANGER


def test_a_strangers_server_is_not_taken_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path))  # there is no embedded server
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("TEMPORAL_ADDRESS", raising=False)
    monkeypatch.setattr(connection, "foreign_listener", lambda port: STRANGER)
    with pytest.raises(ConnectionFailed, match="belongs to another user .* set TEMPORAL_ADDRESS=localhost:7233"):
        target()
    assert target("localhost:7233")["target_host"] == "localhost:7233"
    monkeypatch.setenv("TEMPORAL_ADDRESS", "localhost:7233")
    assert target()["target_host"] == "localhost:7233"


class _Forbidden:
    """A client whose credential may not describe its namespace."""

    namespace = "ours"

    def __init__(self) -> None:
        self.asked = 0
        self.workflow_service = SimpleNamespace(describe_namespace=self._refuse)

    async def _refuse(self, *_: object, **__: object) -> None:
        self.asked += 1
        raise RPCError("no", RPCStatusCode.PERMISSION_DENIED, b"")


async def test_a_namespace_that_may_not_be_described_goes_by_its_name() -> None:
    client: Any = _Forbidden()
    assert [await namespace_id(client), await namespace_id(client)] == ["ours", "ours"]
    assert client.asked == 1
