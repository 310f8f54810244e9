"""The progress of a run: its phase, its subtasks by state, a nested run under a subtask."""

from typing import Literal

from temporal_supervisor.supervision.contract.base import Model
from temporal_supervisor.supervision.contract.usage import Usage

Phase = Literal["planning", "approval", "executing", "validating", "synthesizing", "done", "failed", "cancelled"]
RunStatus = Literal["completed", "partial", "running"]


class Counts(Model):
    """Subtasks by state.

    `partial` are items of a template that completed with a partial finding.
    """

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
        """The number of items of a template that completed, and of these in part."""
        return f"{self.completed}/{self.total}" + (f", {self.partial} in part" if self.partial else "")

    @property
    def ended(self) -> int:
        """Subtasks in a final state."""
        return self.completed + self.failed + self.skipped + self.cancelled

    def __add__(self, other: "Counts") -> "Counts":
        """Returns the sums."""
        return Counts(**{name: value + getattr(other, name) for name, value in self})


class NestedRun(Model):
    """The nested supervisor of a subtask's present or last attempt.

    While it works: how many of its `waits` need people, and what is `spent`, on all levels below;
    all else is in the queries of the workflow itself. Once it has ended: its `status`, the `counts`
    of its subtasks, how many of them its plans `named`, and its result at `result_ref`.
    """

    workflow_id: str = ""
    waits: int = 0
    spent: Usage = Usage()
    status: RunStatus = "running"
    counts: Counts = Counts()
    named: int = 0
    result_ref: str | None = None
    trace_ref: str | None = None
