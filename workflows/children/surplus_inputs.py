"""The inputs of a run in addition to its request: only a parent workflow may give them."""

import contextlib
from typing import TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError
    from temporal_supervisor.supervision.contract.base import Model


_M = TypeVar("_M", bound=Model)
Surplus = tuple[object, ...]
"""The inputs beside the request that nobody has taken yet; what is left in the end is refused."""


def take_input(kind: type[_M], surplus: Surplus) -> tuple[_M | None, Surplus]:
    """Returns the input of a kind, or None, and the inputs that are left."""
    if workflow.info().parent is not None and len(surplus) == 1:
        with contextlib.suppress(ValidationError):
            return kind.model_validate(surplus[0]), ()
    return None, surplus
