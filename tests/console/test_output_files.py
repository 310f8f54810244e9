"""Files that commands write, and what is refused before anything is done."""

from pathlib import Path

import pytest

from activities.files.manifest import found_files
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.base.output_file import check_output, write_file
from temporal_supervisor.console.commands.store_commands import _time_before
from temporal_supervisor.console.run.described_files import check_readable
from temporal_supervisor.console.view.answer_text import bare_report
from temporal_supervisor.console.view.model_ways import model_notes
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.runtime.setting_checks import odd_settings, start_warnings
from temporal_supervisor.runtime.settings import Settings, load_settings
from temporal_supervisor.standin.extract.standin_words import NEEDS_MODEL
from temporal_supervisor.supervision.contract.result import Gap, RunResult
from temporal_supervisor.supervision.results.answer_table import table_content


def test_a_file_that_can_not_be_written_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"no file of the kind '.pdf': write .md, .json or .csv"):
        check_output(tmp_path / "answer.pdf", (".md", ".json", ".csv"))
    with pytest.raises(CommandFailed, match=r"bundle.zip: no file of the kind '.zip': write .json$"):
        check_output(tmp_path / "bundle.zip", (".json",))
    with pytest.raises(CommandFailed, match="is a folder: name a file in it"):
        check_output(tmp_path)
    with pytest.raises(CommandFailed, match="there is no folder"):
        check_output(tmp_path / "no" / "x.md")
    check_output(tmp_path / "ANSWER.MD", (".md",))


def test_a_file_that_exists_is_written_over_by_force_alone(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_file(file, b"one")
    with pytest.raises(CommandFailed, match="or pass --force"):
        write_file(file, b"two")
    assert file.read_bytes() == b"one"
    write_file(file, b"two", force=True)
    assert file.read_bytes() == b"two"


def test_a_dash_is_standard_output(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    write_file(Path("-"), b"a,b\n")
    assert capfdbinary.readouterr().out == b"a,b\n"
    assert list(tmp_path.iterdir()) == []


def test_a_table_tells_its_empty_cells(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = b"town,rent\nAarau,\n,\n"
    write_file(tmp_path / "calls.csv", data, table_content(data))
    assert capsys.readouterr().err == f"wrote {tmp_path / 'calls.csv'}: 2 rows, 2 columns, 3 cells empty\n"
    assert table_content(b"town\nAarau\n") == "1 row, 1 column"


@pytest.mark.parametrize("age", ["-5d", "-PT5H", "soon"])
def test_a_negative_age_is_no_age(age: str) -> None:
    with pytest.raises(CommandFailed, match="is no age"):
        _time_before(age)


async def test_files_of_which_none_can_be_read_start_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "broken.xlsx").write_bytes(b"no workbook")
    (folder / "empty.csv").write_bytes(b"")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    with pytest.raises(CommandFailed, match="none of the 3 files can be read: .*broken.xlsx: "):
        await check_readable(found_files([folder]))
    (folder / "good.csv").write_text("town,rent\nAarau,3\n")
    await check_readable(found_files([folder]))
    await check_readable([])


def test_misspelt_settings_and_missing_folders_are_named(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, teams_dir=tmp_path / "none", secrets_dir=tmp_path, team="almanack")
    odd = list(odd_settings(settings, ["SUPERVISOR_MODLE", "SUPERVISOR_CACHE_DIR", "SUPERVISOR_MODEL_EXTRA", "PATH"]))
    assert odd == [
        "SUPERVISOR_MODLE is no setting and has no effect: did you mean SUPERVISOR_MODEL?",
        f"SUPERVISOR_TEAMS_DIR names {tmp_path / 'none'}, where there is no folder",
        "SUPERVISOR_TEAM names 'almanack', and no such team is here, did you mean 'almanac'?",
    ]


@pytest.mark.parametrize("end", ["/v1", "/v1/", "/v1/messages"])
def test_a_worker_names_a_part_of_the_path_that_its_client_adds(end: str) -> None:
    settings = Settings.model_construct(None, anthropic_base_url=f"http://127.0.0.1:1{end}")
    (named,) = start_warnings(settings, [])
    path = end.rstrip("/")
    assert named == (
        f"ANTHROPIC_BASE_URL ends in {path}, to which the client adds /v1/messages: leave that out: "
        "ANTHROPIC_BASE_URL=http://127.0.0.1:1"
    )
    for right in ("http://127.0.0.1:1", "http://127.0.0.1:1/v1beta", None):
        assert list(start_warnings(Settings.model_construct(None, anthropic_base_url=right), [])) == []
    secret = Settings.model_construct(None, anthropic_base_url="http://me:word@127.0.0.1:1/v1")
    assert "word" not in "".join(start_warnings(secret, []))


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("SUPERVISOR_BUILD_ID", "a b", "must be 1 to 64 letters, digits, dots, hyphens or underscores"),
        ("SUPERVISOR_MODEL_OFF", "synthesis", "Input should be 'review', 'refine', 'replan' or 'judge'"),
        ("ANTHROPIC_API_KEY_FILE", "/nonexistent", "No such file or directory"),
    ],
)
def test_a_wrong_setting_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=said) as refused:
        load_settings()
    assert variable in str(refused.value)
    assert "^" not in str(refused.value)


def test_where_a_model_lacks_three_ways_to_one_are_said() -> None:
    gap = Gap(subtask_id="t1", reason=f"failed: CannotDo: {NEEDS_MODEL}: “Why?”.")
    refused = RunOutcome("failed", RunResult(status="partial", gaps=[gap]))
    first, *ways = model_notes(refused)[:4]
    assert bare_report("r", refused).notes[:4] == [first, *ways]  # also beside the bare answer
    assert first == "Three ways to a model:"
    assert [way[:2] for way in ways] == ["1.", "2.", "3."]
    assert model_notes(RunOutcome("completed", RunResult(answer="x", status="completed"))) == []
