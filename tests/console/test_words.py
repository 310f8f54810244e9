"""What screens and arguments are made of, without a server: rows, ids, limits, the words of a failure."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import JsonValue
from rich.console import Console
from temporalio.api.failure.v1 import Failure, TimeoutFailureInfo
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.converter import default

from console.command import BAD_INPUT, CommandFailed
from console.commands.doctor import CheckRow, row_texts
from console.commands.list_commands import run_table
from console.commands.team_commands import teams_report
from console.commands.update_commands import new_limits
from console.hints import hint
from console.run.find_run import roots, short_id
from console.run.pollers import gone
from console.run.run_handle import NO_WORKER, RunHandle
from console.run.run_outcome import Ending, RunOutcome
from console.run.standstill import Standstill
from console.terminal import put, wrapped
from console.view.answer_text import answer_report
from console.view.follow import RunPoller
from console.view.live_view import Picture, draw
from runtime.settings import Settings
from supervision.contract.finding import ArtifactRef, Finding
from supervision.contract.progress import Counts
from supervision.contract.result import Citation, RunResult, SubtaskReport
from supervision.contract.status import RunLimits, Status
from tests.console.conftest import ROOT

LONG = "supervise-how-did-life-expectancy-in-rwanda-and-botswana-change-131ca7"


def terminal(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 140])
def test_a_command_of_an_answer_is_never_broken(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(ROOT)
    screen = terminal(width)
    made = ArtifactRef(name="a.md", media_type="text/markdown", bytes=1, ref="r", subtask_id="t1")
    outcome = RunOutcome(0, "completed", RunResult(answer="-", artifacts=[made]))
    answer_report(LONG, outcome, "http://h/" + LONG).show(screen)
    lines = written(screen).splitlines()
    assert any(f".venv/bin/temporal-supervisor artifacts {LONG} --save DIR" in line for line in lines)
    assert any(f"http://h/{LONG}" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_command_of_the_doctor_is_never_broken(width: int) -> None:
    screen = terminal(width)
    fix = f"start one with `.venv/bin/temporal-supervisor worker --pool east`; `.venv/bin/x status {LONG}` says more"
    row = CheckRow("problem", "open run", "t1 waits for a Worker of pool east: there is none", fix)
    put(screen, row_texts(row, width))
    shown = written(screen)
    for command in (".venv/bin/temporal-supervisor worker --pool east", f".venv/bin/x status {LONG}"):
        (line,) = [line for line in shown.splitlines() if command in line]
        assert len(line) <= width or line.strip() == command  # bare: in backticks a shell would run its output
    assert shown.split()[:3] == ["problem", "open", "run"]
    assert all(line == line.rstrip() for line in shown.splitlines())


def test_a_command_that_does_not_fit_is_a_row_of_its_own() -> None:
    rows = [row.plain for row in wrapped(f"read it with `x result {LONG}`, now", 40, "")]
    assert rows == [" read it with", f"x result {LONG}", "  now"]


def test_claims_are_counted_by_subtask_and_not_printed_a_second_time() -> None:
    screen = terminal(200)
    cited = [Citation(claim="It grew.", subtask_ids=ids) for ids in (["t3"], ["t1", "t3"])]
    result = RunResult(status="completed", answer="-", citations=cited)
    answer_report("r", RunOutcome(0, "completed", result)).show(screen)
    assert "It grew." not in written(screen)
    assert "claims by subtask: t3 2, t1 1" in written(screen)
    assert hint("verify", "r") in written(screen)


def test_sources_of_cited_findings_are_listed_by_their_marks() -> None:
    screen = terminal(80)
    findings = {
        "t1": Finding(summary="", text_ref="", sources=["harvest book", "https://example.org/a"]),
        "t2": Finding(summary="", text_ref="", grounding="knowledge"),
        "t3": Finding(summary="", text_ref="", sources=["not cited"]),
    }
    reports = [
        SubtaskReport(id=name, role="r", description="d", state="completed", finding=one)
        for name, one in findings.items()
    ]
    result = RunResult(answer="-", citations=[Citation(claim="It grew.", subtask_ids=["t1", "t2"])], subtasks=reports)
    answer_report("r", RunOutcome(0, "completed", result)).show(screen)
    shown = written(screen)
    assert "[t1] harvest book; https://example.org/a" in shown
    assert "[t2] the model's own knowledge" in shown
    assert "not cited" not in shown


def test_a_cancelled_run_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = RunOutcome(4, "cancelled", None, Ending("Cancelled", "the run was cancelled"))
    answer_report("r", outcome).show(terminal(80))
    assert capsys.readouterr().err == "cancelled: the run was cancelled\n"


def picture(**counts: int) -> Picture:
    shown = Picture("r", None, None)
    limits = RunLimits(max_subtasks=1, max_parallel=1, max_turns=1, deadline_seconds=1)
    shown.status = Status(
        goal="g", team="t", phase="executing", counts=Counts(total=9, **counts), limits=limits, deadline_at=""
    )
    return shown


def test_subtasks_that_ended_without_a_finding_are_counted_by_state() -> None:
    screen = terminal(140)
    screen.print(draw(picture(completed=2, failed=1, cancelled=3), 140, 30))
    assert "2/9 done, 0 running · 1 failed · 3 cancelled" in written(screen)


@pytest.mark.parametrize(("notice", "is_shown"), [(NO_WORKER, False), ("the server is away", True)])
def test_a_missing_worker_is_said_once(notice: str, is_shown: bool) -> None:
    shown, screen = picture(), terminal(140)
    shown.notice = notice
    shown.observed = [Standstill("worker", ("the run",), "a Worker", "start one")]
    screen.print(draw(shown, 140, 30))
    assert "the run waits for a Worker" in written(screen)
    assert (notice in written(screen)) == is_shown


def test_a_worker_of_this_machine_that_has_ended_serves_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    identities = [f"{process.pid}@{socket.gethostname()}", f"{os.getpid()}@{socket.gethostname()}", "1@elsewhere", "x"]
    assert [gone(identity) for identity in identities] == [True, False, False, False]


async def test_of_several_executions_of_one_id_the_newest_is_listed() -> None:
    async def executions(query: str, limit: int) -> AsyncIterator[SimpleNamespace]:
        for start in (1, 3, 2):
            yield SimpleNamespace(id="reset", start_time=start, parent_id=None)

    client: Any = SimpleNamespace(list_workflows=executions)
    assert [run.start_time for run in await roots(client, 5)] == [3]


async def test_a_call_whose_worker_was_lost_says_so() -> None:
    failure = Failure(message="activity Heartbeat timeout", timeout_failure_info=TimeoutFailureInfo())
    pending = PendingActivityInfo(attempt=2, last_failure=failure)
    described: Any = SimpleNamespace(raw_description=SimpleNamespace(pending_activities=[pending]))
    client: Any = SimpleNamespace(data_converter=default(), get_workflow_handle=lambda *_, **__: None)
    call = await RunPoller(RunHandle(client, "r"))._call(described)
    assert call is not None
    assert call.trouble == "attempt 2, after: its Worker was lost"


def test_a_partial_run_is_listed_as_one() -> None:
    known: dict[str, Any] = {
        "run_id": "r",
        "state": "completed",
        "phase": "done",
        "team": "t",
        "goal": "g",
        "usd": None,
    }
    row: dict[str, Any] = {**known, "started_at": "2026-01-01T10:00:00+00:00", "standstills": []}
    screen = terminal(80)
    partial = {**row, "status": "partial", "partial": "t1/t2 (engineer: found nothing)"}
    put(screen, run_table([partial, {**row, "status": "completed", "partial": None}], screen))
    lines = written(screen).splitlines()
    assert [line.split()[0] for line in lines] == ["state", "partial", "completed", "◐"]
    assert lines[-1] == "◐ r: t1/t2 (engineer: found nothing)"


@pytest.mark.parametrize(
    ("run_id", "short"),
    [
        (LONG, "131ca7"),
        ("87730149-0d26-4d46-a6be-65b96d2ae01d", "87730149"),
        ("supervise-iowa", "supervise-iowa"),
        ("iowa", "iowa"),
    ],
)
def test_ids_that_were_made_up_have_short_forms(run_id: str, short: str) -> None:
    assert short_id(run_id) == short


@pytest.mark.parametrize(
    ("deadline", "tokens", "usd", "unlimited", "expected"),
    [
        ("2h", None, None, [], {"deadline": "2h"}),
        (None, 5, None, [], {"budget": {"tokens": 5}}),
        (None, None, None, ["usd", "tokens", "usd"], {"budget": {"unlimited": ["usd", "tokens"]}}),
        ("2h", None, 9.0, ["tokens"], {"deadline": "2h", "budget": {"usd": 9.0, "unlimited": ["tokens"]}}),
    ],
)
def test_new_limits_are_what_is_given(
    deadline: str | None, tokens: int | None, usd: float | None, unlimited: list[str], expected: JsonValue
) -> None:
    assert new_limits(deadline, {"tokens": tokens, "usd": usd}, unlimited) == expected


@pytest.mark.parametrize(
    ("tokens", "unlimited", "expected"),
    [
        (None, [], "nothing to change: give --deadline, --budget-tokens, --budget-usd or --unlimited"),
        (None, ["token"], "--unlimited: there is no budget 'token', did you mean 'tokens'?: tokens, usd"),
        (7, ["tokens"], "give --budget-tokens or --unlimited tokens, not both"),
    ],
)
def test_limits_that_contradict_or_do_not_exist_are_refused(
    tokens: int | None, unlimited: list[str], expected: str
) -> None:
    with pytest.raises(CommandFailed) as refused:
        new_limits(None, {"tokens": tokens, "usd": None}, unlimited)
    assert (refused.value.code, str(refused.value)) == (BAD_INPUT, expected)


@pytest.mark.parametrize("program", ["starter.py", "worker_main.py"])
def test_without_its_packages_a_program_says_what_to_do(program: str) -> None:
    done = subprocess.run([sys.executable, "-S", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "run `make setup` once, then .venv/bin/temporal-supervisor" in done.stderr


async def test_the_problems_of_a_team_stand_each_on_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crew").mkdir()
    file = tmp_path / "crew" / "team.toml"
    roles = "".join(f'[[roles]]\nname = "{name}"\ndescription = "d"\n' for name in ("one", "two"))
    file.write_text(f'name = "crew"\ngeneralist = "one"\n{roles}')
    assert (await teams_report(Settings(_env_file=None, teams_dir=tmp_path), name="crew")).show(terminal(80)) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"team 'crew' can't be used: {file}:",
        "  roles.one: a role needs a system_prompt",
        "  roles.two: a role needs a system_prompt",
    ]
