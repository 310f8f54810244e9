"""The names that users, dashboards and recorded histories rely on: a change of any of them is a new release's.

They stand in `public_names.txt`, so that a rename can't go unnoticed.
"""

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer.main
from temporalio import activity, workflow
from temporalio.client import Client

import starter
import worker_main
from activities.teams import toolbox
from temporal_supervisor import tools as tool
from temporal_supervisor.runtime import search_attributes
from temporal_supervisor.runtime.connection import connect
from temporal_supervisor.runtime.settings import Settings
from temporal_supervisor.supervision import contract
from temporal_supervisor.supervision.base import errors, queues
from workflows.eval_workflow import EvalWorkflow
from workflows.supervisor import SupervisorWorkflow
from workflows.worker_agent import WorkerAgentWorkflow

_TEXT = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8")
KEPT = {
    group: set(names.split()) for group, names in re.findall(r"^(\w[^:]*):((?:.*\n)(?: .*\n)*)", _TEXT, re.MULTILINE)
}
SUPERVISOR, AGENT, EVAL = map(
    workflow._Definition.must_from_class, (SupervisorWorkflow, WorkerAgentWorkflow, EvalWorkflow)
)
COMMANDS = typer.main.get_group(starter.app)


def variables() -> set[str]:
    """The environment variables that are settings."""

    def variable(name: str) -> str:
        alias: Any = Settings.model_fields[name].validation_alias
        return alias or f"SUPERVISOR_{name}".upper()

    return {variable(name) for name in Settings.model_fields}


def options(command: Any) -> list[str]:
    """Long options, and arguments in capitals."""
    return [
        parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[0]
        for parameter in command.params
    ]


def tool_classes() -> Iterable[str]:
    """The classes that a team's own tools are made of."""
    own = {name: value for name, value in vars(tool).items() if getattr(value, "__module__", "") == tool.__name__}
    return (name for name, value in own.items() if inspect.isclass(value))


GROUPS: dict[str, Callable[[], Iterable[str]]] = {
    "workflow types": lambda: [str(SUPERVISOR.name), str(AGENT.name), str(EVAL.name)],
    "queries of a run": lambda: filter(None, SUPERVISOR.queries),
    "updates of a run": lambda: filter(None, SUPERVISOR.updates),
    "signals of a run": lambda: filter(None, SUPERVISOR.signals),
    "queries of a worker agent": lambda: filter(None, AGENT.queries),
    "queries of an eval": lambda: filter(None, EVAL.queries),
    "updates of a worker agent": lambda: filter(None, AGENT.updates),
    "signals of a worker agent": lambda: filter(None, AGENT.signals),
    "errors of runs": lambda: map(str, errors.RUN_KINDS),
    "other errors": lambda: map(str, {*errors.ErrorKind} - {*errors.RUN_KINDS}),
    "search attributes": lambda: search_attributes.WANTED,
    "queues": lambda: (
        *(queues.WORKFLOW_QUEUE, queues.MODEL_QUEUE, queues.TOOLS_QUEUE, queues.OUTWARD_QUEUE),
        queues.pool_queue("POOL"),
    ),
    "settings": variables,
    "kinds of tools": lambda: toolbox.KINDS,
    "classes of the contract": lambda: (name for name in dir(contract) if inspect.isclass(getattr(contract, name))),
    "classes of tools": tool_classes,
    "options of all commands": lambda: options(COMMANDS),
    "commands": lambda: COMMANDS.commands,
    **{f"options of {name}": partial(options, command) for name, command in COMMANDS.commands.items()},
}


@pytest.mark.parametrize("group", GROUPS)
def test_names_are_those_that_are_kept(group: str) -> None:
    assert set(GROUPS[group]()) == KEPT[group]


async def test_activity_types_are_those_that_are_kept(
    settings: Settings, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(worker_main, "workers", lambda *_, **given: made.update(given) or [])
    async with worker_main.serving(client, settings):
        functions = [each for name, group in made.items() if name.endswith("_activities") for each in group]
    names = {activity._Definition.must_from_callable(each).name for each in functions}
    assert names == KEPT["activities"]


def test_each_group_that_is_kept_is_one_that_there_is() -> None:
    assert KEPT.keys() == {"activities", *GROUPS}


def test_names_stand_for_what_they_should() -> None:
    assert all(update.description for update in SUPERVISOR.updates.values())  # the Web UI's form shows it
    assert {errors.run_kind(kind) for kind in (*errors.ACCOUNT, *errors.FATAL)} <= set(errors.RUN_KINDS)


def test_parameters_of_functions_are_in_order() -> None:
    assert list(inspect.signature(connect).parameters) == ["address", "namespace", "wait", "report", "keys"]
    assert list(inspect.signature(worker_main.serving).parameters) == [
        *("client", "settings", "roles", "pool", "attributes", "strict_sandbox", "report")
    ]
