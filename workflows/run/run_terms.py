"""The terms of a run, fixed by its first activity, and its lines in the Worker's log."""

import logging
from dataclasses import dataclass

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import RunRef, RunSetup
    from temporal_supervisor.supervision.contract.status import TraceEvent

    from workflows.children.child_contracts import NestedInput, PartInput

_log = logging.getLogger("supervisor.run")
_LOGGED = (
    *("phase", "attempt", "attempts", "role", "turns", "error", "revision", "subtasks"),
    *("round", "model", "candidate", "id", "kind", "decision", "pool"),
)


@dataclass(frozen=True)
class RunTerms:
    """The facts about a run that never change.

    A run that `is_bare` makes one attempt, and its finding is not sent back. A run with a `part`
    does only that part of its work.
    """

    run: RunRef
    setup: RunSetup
    nested: NestedInput | None = None
    is_bare: bool = False
    part: PartInput | None = None

    @property
    def is_plan_alone(self) -> bool:
        """True if the run ends with its plan."""
        return self.part is not None and self.part.part == "plan"

    @property
    def is_answer_alone(self) -> bool:
        """True if the run only writes an answer, from given findings."""
        return self.part is not None and self.part.part == "answer"

    @property
    def depth(self) -> int:
        """The level of the run; 1 for the root."""
        return self.nested.depth if self.nested else 1

    @property
    def path(self) -> str:
        """The path of this run from the root.

        It is `t3/1/` for the nested run of t3's first attempt, and empty for the root.
        """
        own = workflow.info().workflow_id.removeprefix(self.run.run_id).strip("/")
        return f"{own}/" if self.nested and own else ""


def log_event(run_id: str, event: TraceEvent) -> None:
    """Writes an event to the Worker's log, without its texts."""
    shown = {name: event.data[name] for name in _LOGGED if name in event.data}
    log_line(run_id, event.type, event.subtask_id, **shown)


def log_line(run_id: str, what: str, subject: str | None, **fields: object) -> None:
    """Writes a line about this workflow to the Worker's log; a replay writes none."""
    if not workflow.unsafe.is_replaying() and _log.isEnabledFor(logging.INFO):
        own = workflow.info().workflow_id.removeprefix(run_id).strip("/")
        place = "/".join(filter(None, [own, subject]))
        where = {"run": run_id, "subtask": place} if place else {"run": run_id}
        _log.info(what, extra={"fields": {**where, **fields}})
