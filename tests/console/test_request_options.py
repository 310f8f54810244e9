"""The request that the options of `run` make."""

import inspect
import json
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

import starter
from console.command import CommandFailed
from console.run.request_options import RunOptions

SCHEMA = {"type": "object", "properties": {"crop": {"type": "integer"}}}


def test_every_parameter_of_the_command_is_an_option_with_the_same_default() -> None:
    parameters = inspect.signature(starter.run).parameters.values()
    assert {p.name: p.default for p in parameters} == {field.name: field.default for field in fields(RunOptions)}


def test_options_become_fields_and_others_keep_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    request = (
        RunOptions(
            goal="goal",
            strategy="route",
            success="2/3",
            max_depth=3,
            incremental_synthesis=4,
            effort="low",
            max_replans=0,
            subtask_timeout="5m",
            deadline="PT1H",
            budget_usd=2.5,
            answer_schema=tmp_path / "schema.json",
        )
        .as_request()
        .request
    )
    assert (request.strategy, request.success, request.max_depth, request.incremental_synthesis) == (
        "route",
        "2/3",
        3,
        4,
    )
    assert (request.effort, request.max_replans, request.subtask_timeout) == ("low", 0, timedelta(minutes=5))
    assert (request.budget.tokens, request.budget.usd, request.deadline) == (1_000_000, 2.5, timedelta(hours=1))
    assert (request.answer_schema, request.team, request.models.workers) == (SCHEMA, "default", None)


def test_options_override_the_fields_of_a_request_file_one_by_one(tmp_path: Path) -> None:
    in_file = {"goal": "goal", "budget": {"tokens": 7, "usd": 1.0}, "models": {"workers": "small"}, "max_turns": 4}
    (tmp_path / "request.json").write_text(json.dumps(in_file))
    options = RunOptions(
        request=tmp_path / "request.json", budget_tokens=9, supervisor_model=["large", "larger"], max_parallel=2
    )
    request = options.as_request().request
    assert (request.budget.tokens, request.budget.usd) == (9, 1.0)
    assert (request.models.supervisor, request.models.workers) == (["large", "larger"], ["small"])
    assert (request.goal, request.max_turns, request.max_parallel) == ("goal", 4, 2)


def test_attached_files_are_uploads_and_named_by_reference(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    prepared = RunOptions(goal="goal", attach=[tmp_path / "notes.md"]).as_request()
    (attachment,) = prepared.request.attachments
    assert (attachment.name, prepared.uploads) == ("notes.md", [b"# Notes"])
    assert (attachment.ref or "").startswith("uploads/")


def test_an_answer_schema_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("[]")
    with pytest.raises(CommandFailed, match="must hold an object") as caught:
        RunOptions(goal="goal", answer_schema=tmp_path / "schema.json").as_request()
    assert caught.value.code == 2


def test_a_plan_of_ones_own_may_be_one_that_another_run_printed(tmp_path: Path) -> None:
    plan = {"run_id": "other", "state": "completed", "subtasks": [{"id": "t1", "description": "Count the pears."}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    request = RunOptions(goal="goal", plan=tmp_path / "plan.json").as_request().request
    assert request.plan is not None
    assert [subtask.description for subtask in request.plan.subtasks] == ["Count the pears."]
