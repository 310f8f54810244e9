"""From options to a request."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.command_errors import CommandFailed
from console.run.request_options import ask

SCHEMA = {"type": "object", "properties": {"crop": {"type": "integer"}}}


def test_options_become_fields_and_what_is_not_given_keeps_its_default(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    fields = {"strategy": "route", "success": "2/3", "max_depth": 3, "incremental_synthesis": 4, "deadline": "PT1H"}
    parts: dict[str, dict[str, Any]] = {
        "budget": {"tokens": None, "usd": 2.5},
        "models": {"supervisor": None, "workers": None},
    }
    asked = ask("goal", None, None, [], {**fields, "team": None}, parts, tmp_path / "schema.json").request
    assert (asked.strategy, asked.success, asked.max_depth, asked.incremental_synthesis) == ("route", "2/3", 3, 4)
    assert (asked.budget.tokens, asked.budget.usd, asked.deadline) == (1_000_000, 2.5, timedelta(hours=1))
    assert (asked.answer_schema, asked.team, asked.models.workers) == (SCHEMA, "default", None)


def test_options_override_the_fields_of_a_request_file_one_by_one(tmp_path: Path) -> None:
    request = {"goal": "goal", "budget": {"tokens": 7, "usd": 1.0}, "models": {"workers": "small"}}
    (tmp_path / "request.json").write_text(json.dumps(request))
    parts: dict[str, dict[str, Any]] = {
        "budget": {"tokens": 9, "usd": None},
        "models": {"supervisor": "large", "workers": None},
    }
    asked = ask(None, None, tmp_path / "request.json", [], {}, parts).request
    assert (asked.budget.tokens, asked.budget.usd) == (9, 1.0)
    assert (asked.models.supervisor, asked.models.workers) == ("large", "small")


def test_an_answer_schema_that_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text("[]")
    with pytest.raises(CommandFailed, match="must hold an object") as caught:
        ask("goal", None, None, [], {}, {}, tmp_path / "schema.json")
    assert caught.value.code == 2
