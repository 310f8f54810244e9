"""A shared machine: files are the owner's alone, settings are taken from where they are meant to be."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from temporalio.service import RPCError, RPCStatusCode

from temporal_supervisor.bundled import BUILTIN_TEAMS
from temporal_supervisor.runtime.connection import namespace_id
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.settings import load_settings
from temporal_supervisor.supervision.contract.ceilings import Ceilings

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-ant-secret-canary"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "SUPERVISOR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_cache_folder_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path / "a" / "b" / "cache"))
    before = os.umask(0)
    try:
        assert mode(cache_dir()) == 0o700
    finally:
        os.umask(before)


def test_a_cache_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    why = r"cache.*others can write.*SUPERVISOR_CACHE_DIR"
    with pytest.raises(PermissionError, match=why):
        cache_dir()
    elsewhere = {"SUPERVISOR_ARTIFACTS_URL": str(tmp_path / "store"), "ANTHROPIC_API_KEY": KEY}
    started = subprocess.run(
        [sys.executable, "worker_main.py"], cwd=ROOT, env=os.environ | elsewhere, capture_output=True, timeout=60
    )
    (said,) = started.stderr.decode().splitlines()
    assert (started.returncode, bool(re.search(why, said))) == (2, True)


MAINS = {
    "worker_main": ["-c", "import sys, worker_main; sys.argv = ['w', '--roles', 'model']; worker_main.main()"],
    "starter": ["starter.py", "put", "{file}"],
    "standin": ["-m", "temporal_supervisor.standin", "--help"],
    "temporal_binary": ["-m", "temporal_supervisor.runtime.server.temporal_binary"],
    "demo": ["-m", "temporal_supervisor.console.demo", "--help"],
}


@pytest.mark.parametrize("name", MAINS)
def test_every_main_makes_its_files_for_the_owner_alone(name: str, tmp_path: Path) -> None:
    """The interpreter says at its exit which umask the main has set."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os\n"
        "@atexit.register\n"
        "def tell():\n    mask = os.umask(0); open(os.environ['TOLD'], 'w').write(oct(mask))\n"
    )
    (tmp_path / "text.txt").write_text("hello")
    own = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TOLD": f"{tmp_path / 'told'}", "SUPERVISOR_TEMPORAL": "/nowhere"}
    words = [word.format(file=tmp_path / "text.txt") for word in MAINS[name]]
    subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=os.environ | own, umask=0o022, capture_output=True, timeout=60
    )
    assert (tmp_path / "told").read_text() == "0o77"


def test_the_env_file_of_the_working_directory_is_not_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ANTHROPIC_BASE_URL=http://evil\nSUPERVISOR_TEAMS_DIR=/evil\n")
    settings = load_settings()
    assert (settings.anthropic_base_url, settings.teams_dir) == (None, None)


def test_an_empty_path_is_not_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUPERVISOR_TEAMS_DIR", "SUPERVISOR_SECRETS_DIR", "SUPERVISOR_KEYS_FILE", "ANTHROPIC_API_KEY_FILE"):
        monkeypatch.setenv(name, "")
    settings = load_settings()
    assert (settings.teams_folders, settings.secrets_dir, settings.keys) == ([BUILTIN_TEAMS], None, None)
    assert settings.secret("anthropic_api_key") is None


@pytest.mark.parametrize(
    ("kept", "rights", "why"),
    [(b"m", 0o666, r"mine\.env.*others can write"), (b"\xe9", 0o600, r"mine\.env is not UTF-8")],
)
def test_an_env_file_of_anybody_or_no_text_is_refused(tmp_path: Path, kept: bytes, rights: int, why: str) -> None:
    file = tmp_path / "mine.env"
    file.write_bytes(b"SUPERVISOR_WORKER_MODEL=" + kept)
    file.chmod(rights)
    with pytest.raises(ValueError, match=why):
        load_settings(file)


def test_an_env_file_never_says_where_the_key_of_the_environment_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.env"
    file.write_text("ANTHROPIC_BASE_URL=https://elsewhere.example\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(ValueError, match=r"ANTHROPIC_BASE_URL.*mine\.env"):
        load_settings(file)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://chosen.example")
    assert load_settings(file).anthropic_base_url == "https://chosen.example"


def test_the_key_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "key"))
    assert load_settings().secret("anthropic_api_key") == KEY
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY_FILE"):
        load_settings()


def test_the_operators_ceilings_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    safe = load_settings().ceilings
    assert safe == Ceilings(tokens=50_000_000, usd=100.0, inline_teams="same-team")
    most = {"MAX_BUDGET_USD": "2.5", "MAX_BUDGET_TOKENS": "none", "MAX_PARALLEL": "4"}
    for name, value in {**most, "ALLOWED_MODELS": "claude-haiku-*, own", "INLINE_TEAMS": "off"}.items():
        monkeypatch.setenv(f"SUPERVISOR_{name}", value)
    assert load_settings().ceilings == Ceilings(
        usd=2.5, max_parallel=4, models=["claude-haiku-*", "own"], inline_teams="off"
    )


async def test_a_namespace_that_may_not_be_described_goes_by_its_name() -> None:
    refuse = AsyncMock(side_effect=RPCError("no", RPCStatusCode.PERMISSION_DENIED, b""))
    client: Any = SimpleNamespace(namespace="ours", workflow_service=SimpleNamespace(describe_namespace=refuse))
    assert await namespace_id(client) == "ours"
