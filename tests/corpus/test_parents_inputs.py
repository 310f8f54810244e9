"""Numbers in inputs that only a parent workflow has reason to give: refused, or nothing that uses them overflows."""

import contextlib
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from supervision.base.errors import ErrorKind
from supervision.contract.request import RunRequest
from supervision.contract.result import Problem
from supervision.run.run_state import RunState
from workflows.children.child_contracts import NestedInput, WorkerAgentInput
from workflows.children.links import ParentLink
from workflows.tool_loop import ToolLoop

NOW = datetime(2026, 7, 1, tzinfo=UTC)
TIMES = ["2026-07-02T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-07-02T00:00:00"]
EXTREMES = [
    "1e300", "9" * 400, "inf", 1e300, -1e300, math.inf, -math.inf, math.nan, 0, -1, 10**15, 10**16, 2**63,
    -(2**63), 10**400, 1e-300,
]  # fmt: skip
Path = tuple[str | int, ...]


def sample(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """A value with all that the schema names, a number wherever there may be one."""
    if "$ref" in schema:
        return sample(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        kinds = {kind.get("type"): kind for kind in schema["anyOf"]}
        return sample(kinds.get("number") or kinds.get("integer") or schema["anyOf"][0], definitions)
    if "enum" in schema or "const" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "object" if "properties" in schema:
            return {name: sample(part, definitions) for name, part in schema["properties"].items()}
        case "object":
            return {"x": sample(schema["additionalProperties"], definitions)}
        case "array":
            return [sample(part, definitions) for part in schema.get("prefixItems") or [schema["items"]]]
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
    return {"date-time": TIMES[0], "duration": "PT1H"}.get(schema.get("format", ""), "x")


def leaves(value: Any, where: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*where, key))
    else:
        yield where, value


def changed(value: Any, where: Path, new: Any) -> Any:
    copy = json.loads(json.dumps(value))
    part = copy
    for key in where[:-1]:
        part = part[key]
    part[where[-1]] = new
    return copy


def sampled(model: type[BaseModel]) -> Any:
    schema = model.model_json_schema()
    return sample(schema, schema.get("$defs", {}))


def timer(seconds: float | None) -> None:
    if seconds is not None:
        Duration().FromTimedelta(timedelta(seconds=seconds))


def use_agent(agent: WorkerAgentInput) -> None:
    loop = ToolLoop(agent)
    timer(loop.time_left)
    timer((agent.expires_at - NOW).total_seconds())
    with contextlib.suppress(ApplicationError):
        loop._note("note", loop._is_last())
    loop.failure(Problem(type=ErrorKind.CIRCUIT_OPEN, message="away"))
    loop.stopped().model_dump_json()


def use_nested(nested: NestedInput) -> None:
    state = RunState(RunRequest(goal="g"), lambda: NOW, NOW, nested.terms.grant)
    link = ParentLink(nested, state)
    for _ in range(2):
        budget = state.time_and_budget
        budget.spent_line()
        budget.card(state.request).model_dump_json()
        budget.ledger.has_room(1000)
        budget.ledger.shortfall(1000)
        timer((budget.deadline_at - NOW).total_seconds())
        timer((budget.work_until - NOW).total_seconds())
        timer(budget.closing_time.total_seconds())
        assert link.take(nested.terms)
    state.status().model_dump_json()


SAMPLES: dict[type[BaseModel], Any] = {WorkerAgentInput: sampled(WorkerAgentInput), NestedInput: sampled(NestedInput)}
NUMBERS = [
    (model, where)
    for model, value in SAMPLES.items()
    for where, leaf in leaves(value)
    if type(leaf) is int or leaf == TIMES[0]
]


def test_samples_are_valid_and_have_the_fields_that_matter() -> None:
    for model, value in SAMPLES.items():
        model.model_validate(value)
    names = {where[-1] for _, where in NUMBERS}
    assert {"timeout_seconds", "worked_seconds", "max_turns", "usd", "slots", "deadline_at"} <= names
    assert len(NUMBERS) >= 40


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "now", lambda: NOW)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(NUMBERS), st.sampled_from(EXTREMES) | st.integers() | st.floats() | st.sampled_from(TIMES))
def test_any_number_is_refused_or_overflows_nowhere(field: tuple[type[BaseModel], Path], value: Any) -> None:
    model, where = field
    try:
        made = model.model_validate(changed(SAMPLES[model], where, value))
    except ValidationError:
        return
    if isinstance(made, WorkerAgentInput):
        use_agent(made)
    else:
        assert isinstance(made, NestedInput)
        use_nested(made)
