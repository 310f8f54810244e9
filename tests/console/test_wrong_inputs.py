"""Wrong inputs end in a sentence that helps, with the right exit code: never in words of a library."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import starter
from temporal_supervisor.console.base.command import access
from temporal_supervisor.runtime.settings import load_settings
from tests.console.conftest import Cli
from tests.console.wrong_inputs import ALL, SETTINGS, Wrong

Played = Callable[[Wrong], str]
"""Plays a wrong input, and returns what is unclear about it; empty if nothing is."""

_OF_LIBRARIES = (
    "Traceback",
    "Errno",
    "Value error",
    "pydantic",
    "unexpected happened",
    " at 0x",
    "^[",
)
_LINES = 3  # of a sentence, with the run that it is about
_BOX = re.compile(r"[│╭╮╰╯─]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of all wrong kinds."""
    circle = [
        {"id": "a", "description": "x", "role": "analyst", "depends_on": ["b"]},
        {"id": "b", "description": "y", "role": "analyst", "depends_on": ["a"]},
    ]
    wrong_role = {"id": "a", "description": "Iowa's wind power in 2017", "role": "analist"}
    texts = {
        "list.json": "[1, 2]",
        "broken.json": "{",
        "unknown.json": json.dumps({"goal": "x", "colour": "red"}),
        "cycle.json": json.dumps({"subtasks": circle}),
        "role.json": json.dumps({"subtasks": [wrong_role]}),
        "schema.json": json.dumps({"type": "objekt"}),
        "broken.xlsx": "no workbook",
        "nothing.csv": "",
        "t.csv": "town,rent\nAarau,3\n",
        "broken.toml": "[tables",
        "column.toml": '[tables."t.csv".columns.rnt]\nunit = "EUR"\n',
        "questions.jsonl": "nope\n",
        "kind.jsonl": json.dumps({"question": "x", "answer": {"kind": "colour", "value": 1}}),
        "bad.env": "SUPERVISOR_MAX_PARALLEL=x\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "binary.bin").write_bytes(b"\x00\xff\xfe")
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.fixture
def play(read: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    """Commands in this process, which has all imports: hundreds of processes would take minutes."""
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name not in read.environ]:
        monkeypatch.delenv(name)
    for name, value in read.environ.items():
        monkeypatch.setenv(name, value)

    def played(wrong: Wrong) -> str:
        _forget()
        done = CliRunner().invoke(starter.app, list(wrong.words), input=wrong.stdin or None)
        text = " ".join(_BOX.sub(" ", done.output).split())
        sentence = [line for line in done.output.splitlines() if line.startswith("error: ")]
        foreign = [words for words in _OF_LIBRARIES if words in text]
        if (done.exit_code, wrong.said in text, foreign) != (wrong.code, True, []):
            return f"{wrong.words}: {done.exit_code}, {foreign}: {text}"
        return f"{wrong.words}: {done.output}" if sentence and len(done.output.splitlines()) > _LINES else ""

    yield played
    _forget()


def _forget() -> None:
    """Makes the next command connect and read its settings anew."""
    access._client = access.address = access.namespace = access.env_file = None
    vars(access).pop("settings", None)


@pytest.mark.parametrize("group", ALL)
async def test_a_wrong_command_is_answered_in_a_sentence(play: Played, group: str) -> None:
    unclear = [await asyncio.to_thread(play, wrong) for wrong in ALL[group]]
    assert [*filter(None, unclear)] == []


@pytest.mark.parametrize("name", SETTINGS)
def test_a_wrong_setting_is_named_with_what_it_may_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, said = SETTINGS[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUPERVISOR_ARTIFACTS_URL", raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises((ValueError, OSError)) as refused:
        load_settings()
    text = str(refused.value)
    assert (name in text, said in text) == (True, True), text
    assert [words for words in _OF_LIBRARIES if words in text] == []
