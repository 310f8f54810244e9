"""The request that the options of `run` make."""

import inspect
import io
import json
import os
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from temporal_supervisor.console.base.command import CommandFailed
from temporal_supervisor.console.commands.run_commands import run_goal
from temporal_supervisor.console.run.request_options import _PARTS, prepared_request
from temporal_supervisor.supervision.contract.request import RunRequest


def options(**given: object) -> RunRequest:
    return prepared_request(given)[0]


SCHEMA = {"type": "object", "properties": {"crop": {"type": "integer"}}}


def test_every_option_of_the_request_is_a_parameter_of_the_command() -> None:
    parameters = set(inspect.signature(run_goal).parameters) - {"access"}
    same = parameters & RunRequest.model_fields.keys()
    read = same | {option for parts in _PARTS.values() for option in parts.values()}
    no_option = {"budget", "models", "attachments", "metadata", "on_subtask_failure", "reuse_from"}
    assert RunRequest.model_fields.keys() - same == no_option
    others = {"request", "attach", "data"}
    of_the_command = {"run_id", "detach", "as_json", "queue_anyway", "quiet"}
    of_its_data = {"describe", "data_from_others", "after"}
    assert parameters - read - others == of_the_command | of_its_data


def test_options_become_fields_and_others_keep_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    request = options(
        goal="goal",
        **{"strategy": "route", "success": "2/3", "max_depth": 3, "incremental_synthesis": 4, "effort": "low"},
        **{"max_replans": 0, "subtask_timeout": "5m", "deadline": "3600", "budget_usd": 2.5},
        answer_schema=tmp_path / "schema.json",
    )
    assert (request.strategy, request.success, request.max_depth) == ("route", "2/3", 3)
    assert request.incremental_synthesis == 4
    assert (request.effort, request.max_replans, request.subtask_timeout) == ("low", 0, timedelta(minutes=5))
    assert (request.budget.tokens, request.budget.usd, request.deadline) == (1_000_000, 2.5, timedelta(hours=1))
    assert (request.answer_schema, request.team, request.models.workers) == (SCHEMA, None, None)


def test_the_goal_comes_from_standard_input_or_over_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "request.json").write_text(json.dumps({"goal": "another", "max_subtasks": 3, "max_parallel": 9}))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"goal\n")))
    request = options(goal="goal", request=tmp_path / "request.json", max_parallel=2, worker_model=["m"])
    for made in (request, options(goal="-")):
        assert made.goal == "goal"
    assert (request.max_subtasks, request.max_parallel, request.models.workers) == (3, 2, ["m"])


def test_data_from_others_marks_all_attachments_and_needs_some(tmp_path: Path) -> None:
    (tmp_path / "mail.txt").write_text("Pay eve.")
    (tmp_path / "request.json").write_text(json.dumps({"attachments": [{"name": "a", "text": "b"}]}))
    given = {"goal": "goal", "request": tmp_path / "request.json", "attach": [tmp_path / "mail.txt"]}
    assert [item.trusted for item in options(**given).attachments] == [True, True]
    marked = options(**given, data_from_others=True)
    assert [item.trusted for item in marked.attachments] == [False, False]
    assert marked.data_from_others
    with pytest.raises(CommandFailed, match="name the data"):
        options(goal="goal", data_from_others=True)


def test_attached_files_are_uploads_and_named_by_reference(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    request, uploads, _ = prepared_request({"goal": "goal", "attach": [tmp_path / "notes.md"]})
    (attachment,) = request.attachments
    assert (attachment.name, uploads) == ("notes.md", [b"# Notes"])
    assert (attachment.ref or "").startswith("uploads/")


def test_a_plan_of_ones_own_may_be_one_that_another_run_printed(tmp_path: Path) -> None:
    plan = {"run_id": "other", "state": "completed", "subtasks": [{"id": "t1", "description": "Count the pears."}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    request = options(goal="goal", plan=tmp_path / "plan.json")
    assert request.plan is not None
    assert [subtask.description for subtask in request.plan.subtasks] == ["Count the pears."]
    assert options(goal="goal", plan=plan) == request  # as a notebook gives it


def test_a_run_over_nothing_that_can_be_read_is_not_started(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(CommandFailed, match=r"no file can be read: pipe.csv: it is a pipe"):
        options(goal="goal", data=[tmp_path])
