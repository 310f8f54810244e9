"""The progress of a run: its phase, its subtasks by state, a nested run under a subtask."""

from typing import Literal

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.usage import Usage

Phase = Literal[
    "planning", "approval", "executing", "validating", "synthesizing", "done", "failed", "cancelled"
]
RunStatus = Literal["completed", "partial", "running"]


class Counts(Model):
    """Subtasks by state; `partial` counts items that completed with a partial finding."""

    total: int = 0
    waiting: int = 0
    running: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    partial: int = 0

    @property
    def items_line(self) -> str:
        """The number of completed items of a template, and the number of partial ones."""
        return f"{self.completed}/{self.total}" + (
            f", {self.partial} in part" if self.partial else ""
        )

    @property
    def ended(self) -> int:
        """Subtasks in a final state."""
        return self.completed + self.failed + self.skipped + self.cancelled

    def __add__(self, other: "Counts") -> "Counts":
        """Returns the sum of two counts."""
        return Counts(**{name: value + getattr(other, name) for name, value in self})


class NestedRun(Model):
    """The nested supervisor of a subtask's current or last attempt.

    While it works, it has the number of `waits` for people and the usage `spent` so far, on all
    levels below; everything else is in the queries of its workflow. Once it has ended, it has its
    `status`, the `counts` of its subtasks, the number `named` by its plans, and its result at
    `result_ref`.
    """

    workflow_id: str = ""
    waits: int = 0
    spent: Usage = Usage()
    status: RunStatus = "running"
    counts: Counts = Counts()
    named: int = 0
    result_ref: str | None = None
    trace_ref: str | None = None
