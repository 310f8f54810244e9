"""What is wrong is said in words that lead on: which name, which option, what to write instead."""

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import starter
from activities.model.call_errors import classify
from temporal_supervisor.client import Item
from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.base.terminal import console, file_size, roughly
from temporal_supervisor.console.commands.evidence_commands import _make_folder
from temporal_supervisor.console.commands.people_commands import (
    _nothing_waits,
    _only_wait_of,
    _time_left,
    decision_sentence,
)
from temporal_supervisor.console.commands.run_commands import check_team
from temporal_supervisor.console.commands.team_commands import try_tool
from temporal_supervisor.console.run.found_runs import short_id
from temporal_supervisor.console.run.request_options import prepared_request
from temporal_supervisor.console.run.standstill import Standstill
from temporal_supervisor.console.view.event_lines import now_line
from temporal_supervisor.console.view.live_view import Picture, QuietScreen, to_go_words
from temporal_supervisor.runtime.connection import ConnectionFailed, target
from temporal_supervisor.runtime.encryption import read_keys
from temporal_supervisor.runtime.process import cache_dir
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.standin.__main__ import main as serve_standin
from temporal_supervisor.supervision.contract.result import Gap, SubtaskReport
from temporal_supervisor.supervision.contract.status import RunLimits, Status, Wait
from temporal_supervisor.supervision.contract.usage import Usage
from temporal_supervisor.supervision.results.answer import with_gaps

LIMITS = RunLimits(max_subtasks=9, max_parallel=8, max_turns=9, deadline_seconds=1800)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3, "10 s"), (44, "40 s"), (170, "3 min"), (3600, "1 h"), (4900, "1 h 22 min")],
)
def test_a_guess_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert roughly(seconds) == said


@pytest.mark.parametrize(("size", "said"), [(1, "1 byte"), (31_204, "31 kB"), (2_400_000, "2.4 MB")])
def test_sizes_of_files_are_said_as_people_say_them(size: int, said: str) -> None:
    assert file_size(size) == said


def executing(**fields: object) -> Picture:
    """A run of which one of two subtasks has ended after a minute."""
    begun = datetime.now(UTC) - timedelta(seconds=60)
    shown = Picture("run-1", started=begun)
    shown.status = Status(goal="g", team="t", phase="executing", limits=LIMITS, deadline_at="")
    ended = {
        "started_at": begun.isoformat(),
        "finished_at": datetime.now(UTC).isoformat(),
        "usage": Usage(usd=0.25),
    }
    shown.reports = {
        "t1": SubtaskReport.model_validate({"id": "t1", "state": "completed", **ended}),
        "t2": SubtaskReport(id="t2", state="waiting"),
    }
    for name, value in fields.items():
        setattr(shown, name, value)
    return shown


def test_the_screen_says_how_long_a_run_still_takes_and_what_it_costs() -> None:
    assert to_go_words(executing()) == ["about 1 min and $0.2500 to go"]


def test_of_a_run_that_waits_or_has_ended_nothing_is_guessed() -> None:
    assert to_go_words(executing(closed=datetime.now(UTC))) == []
    assert to_go_words(executing(observed=[Standstill("worker", ("t2",), "a Worker", "start one")])) == []


def test_a_quiet_screen_says_only_what_a_run_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    with QuietScreen(console()) as screen:
        screen.log(now_line("t1 begins"))
        screen.update(executing(observed=[Standstill("worker", ("t2",), "a Worker", "start one")]))
        screen.update(executing(observed=[Standstill("worker", ("t2",), "a Worker", "start one")]))
    written = capsys.readouterr()
    assert written.out == ""
    assert [line.partition(" ")[2] for line in written.err.splitlines()] == ["t2 waits for a Worker: start one"]


def test_commands_name_a_run_by_its_last_word_unless_it_is_nested() -> None:
    assert short_id("supervise-how-did-life-c5dea7") == "c5dea7"
    assert short_id("supervise-how-did-life-c5dea7/t3/1") == "supervise-how-did-life-c5dea7/t3/1"


def waits(*ids: str) -> list[Item]:
    return [
        Item(
            "run-1",
            "g",
            Wait(
                id=name,
                kind="question",
                workflow_id="w",
                subtask_id=name.partition("/")[0],
                since="",
            ),
        )
        for name in ids
    ]


def test_one_open_question_of_a_subtask_is_found_by_the_subtask() -> None:
    here = waits("t2/1:1.1", "t3/1", "t3/2")
    assert [item.wait.id for item in _only_wait_of("t2", here)] == ["t2/1:1.1"]
    assert _only_wait_of("t3", here) == _only_wait_of("t9", here) == []


def test_where_nothing_waits_the_inbox_is_named() -> None:
    assert "nothing waits for a person" in _nothing_waits("t9/1", [])
    assert "inbox`" in _nothing_waits("t9/1", [])
    assert "what does: t2/1" in _nothing_waits("t9/1", ["t2/1"])


def test_a_decision_is_told_in_a_sentence() -> None:
    assert decision_sentence("buy", "t4/1:1.0", "t4/1:1.0: approve") == "approved t4/1:1.0 of run buy"
    assert (
        decision_sentence("buy", "plan.1", "plan.1: 'nobody' may not decide")
        == "run buy: plan.1: 'nobody' may not decide"
    )


def test_a_wait_of_seven_days_says_so_from_its_first_second() -> None:
    at = datetime.now(UTC) + timedelta(days=7, seconds=-1)
    assert _time_left(at.isoformat()).endswith("(7 days left)")
    assert "left" in _time_left((datetime.now(UTC) + timedelta(hours=3)).isoformat())


def test_the_name_of_a_team_that_is_like_another_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "team.toml").touch()
    with pytest.raises(CommandFailed, match="there is no team 'libary': did you mean 'library'"):
        check_team("libary", [tmp_path])
    for team in ("library", "only-the-workers-have-it", None, {"name": "libary"}):
        check_team(team, [tmp_path])


def test_an_address_with_a_scheme_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionFailed, match="write localhost:7233, leave out http://"):
        target("http://localhost:7233/")
    monkeypatch.setenv("TEMPORAL_ADDRESS", "https://temporal.example:7233")
    with pytest.raises(ConnectionFailed, match="write temporal.example:7233"):
        target()


def test_a_goal_that_is_no_text_is_named() -> None:
    with pytest.raises(CommandFailed, match="the goal is not valid UTF-8"):
        prepared_request({"goal": "caf\udce9"})


async def test_a_tool_is_named_with_its_team() -> None:
    settings = Settings(_env_file=None)
    with pytest.raises(CommandFailed, match="write TEAM/TOOL"):
        await try_tool(settings, "almanac", "{}")
    with pytest.raises(CommandFailed, match="team 'almanac' has no tool 'nope'; it has .*calculat"):
        await try_tool(settings, "almanac/nope", "{}")


def test_a_wrong_choice_is_said_without_the_words_of_a_library() -> None:
    done = CliRunner().invoke(starter.app, ["spend", "--by", "mood"])
    assert done.exit_code == 2
    assert "'--by': 'mood' is not one of 'owner', 'day'" in done.output
    assert "Value error" not in done.output


def test_a_cache_folder_that_can_not_be_made_names_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SUPERVISOR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(OSError, match="can't be made: .*; let SUPERVISOR_CACHE_DIR name another"):
        cache_dir()


def test_a_file_of_keys_that_is_not_there_is_said_in_the_systems_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SUPERVISOR_KEYS_FILE .*: No such file or directory"):
        read_keys(tmp_path / "none")


def test_a_folder_for_files_that_can_not_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandFailed, match="it is a file"):
        _make_folder(tmp_path / "file")


def test_a_port_that_is_taken_names_its_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda _: 0)  # of this process it stays as it is
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert serve_standin(["--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"port {port} of 127.0.0.1: address already in use" in said
    assert "--port" in said
    assert serve_standin(["--port", "0", "--ledger", "/dev/null/calls.jsonl"]) == 1
    assert "--ledger /dev/null/calls.jsonl can't be written: " in capsys.readouterr().err
    assert serve_standin(["--port", "99999"]) == 1
    assert "port 99999 is none: name one from 0 to 65535" in capsys.readouterr().err
    assert serve_standin(["--config", "/nonexistent"]) == 1
    assert "--config /nonexistent can't be read: No such file" in capsys.readouterr().err


class APIConnectionError(Exception):
    """As the SDK calls it."""


def test_why_there_is_no_connection_is_said_in_the_systems_words() -> None:
    refused = APIConnectionError()
    refused.__cause__ = RuntimeError("of the transport")
    refused.__cause__.__cause__ = ConnectionRefusedError(111, "told by others")
    assert classify(refused).message == "the provider: no connection: connection refused"
    unknown = APIConnectionError()
    unknown.__cause__ = socket.gaierror(-2, "told by others")
    assert classify(unknown).message.endswith("the name of its host can't be resolved")


def test_what_is_missing_is_not_cut_in_a_word() -> None:
    gap = Gap(
        subtask_id="t1",
        description="Queries the tables and computes values " * 9,
        reason="found nothing",
    )
    (line,) = with_gaps("", [gap]).splitlines()[-1:]
    described = line.removeprefix("- ").partition(" (`t1`")[0]
    assert described.endswith(" …")
    assert described.removesuffix(" …").split()[-1] in gap.description.split()
