"""The inputs of a run beside its request: only a parent workflow may give them.

Each is taken out of the surplus ones; the caller refuses the others.
"""

import contextlib
from typing import TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from temporal_supervisor.supervision.contract.base import Model
    from workflows.children.child_contracts import BareInput, NestedInput, PartInput


_M = TypeVar("_M", bound=Model)


def nested_input(surplus: tuple[object, ...]) -> tuple[NestedInput | None, tuple[object, ...]]:
    """Returns the input of a nested supervisor, and the other inputs."""
    return _taken(NestedInput, surplus)


def bare_input(surplus: tuple[object, ...]) -> tuple[bool, tuple[object, ...]]:
    """Returns True for the mark of a bare run, and the other inputs."""
    found, others = _taken(BareInput, surplus)
    return found is not None, others


def part_input(surplus: tuple[object, ...]) -> tuple[PartInput | None, tuple[object, ...]]:
    """Returns the mark of a part alone, and the other inputs."""
    return _taken(PartInput, surplus)


def _taken(kind: type[_M], surplus: tuple[object, ...]) -> tuple[_M | None, tuple[object, ...]]:
    if workflow.info().parent is not None and len(surplus) == 1:
        with contextlib.suppress(ValidationError):
            return kind.model_validate(surplus[0]), ()
    return None, surplus
