"""Finding the `temporal` program; small shell scripts stand for the programs of other machines."""

from datetime import timedelta
from pathlib import Path

import pytest

from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.server import temporal_binary
from temporal_supervisor.runtime.server.temporal_binary import TemporalNotFound, find_temporal

TEMPORAL = 'echo "temporal version 9.9.9"'


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_go(folder: Path, install: str = "") -> None:
    """A `go` that notes each install and does `install`, by default leaving a program."""
    made = f'printf \'#!/bin/sh\\n{TEMPORAL}\\n\' >"$GOBIN/temporal"; chmod +x "$GOBIN/temporal"'
    script(folder / "go", f'echo "$@" >>"{folder}/installs"; echo compiling\n{install or made}')


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A first folder on PATH, on a machine that is offline and has neither temporal nor go."""
    first = tmp_path / "on-path"
    first.mkdir()
    monkeypatch.setenv("PATH", f"{first}:/usr/bin:/bin")
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("SUPERVISOR_TEMPORAL", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    return first


def test_a_broken_program_on_the_path_is_skipped(path: Path) -> None:
    script(path / "temporal", "exit 127")
    cached = script(cache_dir() / "bin" / "temporal", TEMPORAL)
    assert find_temporal() == cached


def test_without_a_program_it_is_built_once_and_kept(path: Path) -> None:
    fake_go(path)
    first = find_temporal()
    assert first == cache_dir() / "bin" / "temporal"
    assert find_temporal() == first
    assert (path / "installs").read_text() == f"install -v {temporal_binary.GO_PACKAGE}\n"


@pytest.mark.parametrize("end", ["exit 1", "exec sleep 60"])
def test_where_it_cannot_be_built_the_pinned_version_is_downloaded(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    fake_go(path, install=f"echo network/slow: no space left >&2; {end}")
    monkeypatch.setattr(temporal_binary, "_TOLD_EVERY", timedelta(seconds=0.3))
    monkeypatch.setattr(temporal_binary, "_BUILD_TIMEOUT", timedelta(seconds=1))
    monkeypatch.setattr(temporal_binary, "download", lambda folder: script(folder / "temporal-sdk", TEMPORAL))
    assert find_temporal() == cache_dir() / "bin" / "temporal"
    assert "could not be built, its last lines:\nnetwork/slow: no space left\n" in capsys.readouterr().err


def test_without_any_way_to_get_it_the_error_says_what_to_install(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TemporalNotFound, match=r"Temporal CLI .* Go 1\.23 .* SUPERVISOR_TEMPORAL"):
        find_temporal()
    assert not (cache_dir() / "bin" / "temporal").exists()
    monkeypatch.setenv("SUPERVISOR_TEMPORAL", "/nowhere")
    with pytest.raises(TemporalNotFound, match="SUPERVISOR_TEMPORAL names /nowhere"):
        find_temporal()
