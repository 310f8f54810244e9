"""Finding the `temporal` program; small shell scripts stand for the programs of other machines."""

from pathlib import Path

import pytest

from runtime.process import cache_dir
from runtime.server import temporal_binary
from runtime.server.temporal_binary import TemporalNotFound, find_temporal, runs

TEMPORAL = 'echo "temporal version 9.9.9"'
SOURCES = f"mod github.com/temporalio/cli v{temporal_binary.VERSION} {temporal_binary.GO_SUM}"


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_go(folder: Path, version: str = "go1.26.8", install: str = "", sources: str = SOURCES) -> None:
    """A `go` that tells versions, notes each install and does `install`, by default leaving a program."""
    made = f'printf \'#!/bin/sh\\n{TEMPORAL}\\n\' >"$GOBIN/temporal"; chmod +x "$GOBIN/temporal"'
    script(
        folder / "go",
        f'if [ "$1" = env ]; then echo {version}; exit; fi\n'
        f'if [ "$1" = version ]; then echo "$3: {version}"; echo " {sources}"; exit; fi\n'
        f'echo "$@" >>"{folder}/installs"; echo compiling\n{install or made}',
    )


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


@pytest.fixture
def notes() -> list[str]:
    return []


def test_a_named_program_that_does_not_run_is_an_error_naming_the_variable(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(path / "temporal", TEMPORAL)
    monkeypatch.setenv("SUPERVISOR_TEMPORAL", str(tmp_path / "missing"))
    with pytest.raises(TemporalNotFound, match="SUPERVISOR_TEMPORAL names .*missing"):
        find_temporal()


def test_a_broken_program_on_the_path_is_skipped_with_a_note(path: Path, notes: list[str]) -> None:
    script(path / "temporal", "exit 127")
    cached = script(cache_dir() / "bin" / "temporal", TEMPORAL)
    assert find_temporal(notes.append) == cached
    assert notes == [f"{path}/temporal is on PATH but does not run: looking further"]


def test_without_a_program_it_is_built_once_and_kept(path: Path, notes: list[str]) -> None:
    fake_go(path)
    first = find_temporal(notes.append)
    assert first == cache_dir() / "bin" / "temporal"
    assert find_temporal(notes.append) == first
    assert (path / "installs").read_text() == f"install -v {temporal_binary.GO_PACKAGE}\n"
    assert notes[-1] == f"temporal is ready: {first}"


def test_a_failed_build_says_why_and_what_to_install(path: Path) -> None:
    fake_go(path, install="echo 'no room left'; exit 1")
    with pytest.raises(TemporalNotFound, match=r"failed \(no room left\): install the Temporal CLI"):
        find_temporal()


@pytest.mark.parametrize("sources", ["", SOURCES[:-1], SOURCES.replace(temporal_binary.VERSION, "1.5.2")])
def test_a_program_of_other_sources_is_not_kept(path: Path, sources: str) -> None:
    fake_go(path, sources=sources)
    with pytest.raises(TemporalNotFound, match=r"failed \(its sources do not have the pinned checksum\)"):
        find_temporal()
    assert not (cache_dir() / "bin" / "temporal").exists()


def fake_download(monkeypatch: pytest.MonkeyPatch, version: str) -> list[Path]:
    """The SDK's download leaves a program of that version; the folders that it was asked to fill."""
    asked = []

    def download(folder: Path) -> list[Path]:
        asked.append(folder)
        return [script(folder / "temporal-sdk", f'echo "temporal version {version} (Server 1.29.1)"')]

    monkeypatch.setattr(temporal_binary, "download", download)
    return asked


def test_without_go_the_pinned_version_is_downloaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_download(monkeypatch, temporal_binary.VERSION)
    assert runs(find_temporal())
    assert len(asked) == 1


def test_a_download_of_another_version_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_download(monkeypatch, "1.5.2")
    with pytest.raises(TemporalNotFound, match="none could be downloaded"):
        find_temporal()
    assert not (cache_dir() / "bin" / "temporal").exists()


@pytest.mark.parametrize("version", ["go1.22.1", "devel", ""])
def test_without_a_usable_go_the_error_says_what_to_install(path: Path, version: str) -> None:
    fake_go(path, version=version)
    with pytest.raises(TemporalNotFound, match=r"Temporal CLI .* Go 1\.23 .* SUPERVISOR_TEMPORAL"):
        find_temporal()
