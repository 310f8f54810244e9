"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio
from typing import TypeVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, JsonValue, ValidationError

    from supervision.base.errors import SupervisionError
    from supervision.contract.plan import Plan
    from supervision.contract.result import RunResult
    from supervision.contract.status import Status, TracePage
    from supervision.contract.updates import ExtendLimits, Resume, UpdateReply, read_update
    from supervision.results.payload_fit import fit
    from supervision.run.run_state import RunState
    from workflows.children.child_contracts import NestedReport, NestedTerms
    from workflows.children.child_links import ChildLinks
    from workflows.children.parent_link import ParentLink
    from workflows.run_context import RunContext

M = TypeVar("M", bound=BaseModel)


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it.

    Updates take any JSON, so that its sender gets to know what is wrong with it. So do signals, which may come before
    the first workflow task: one that raised an error would block the run for ever.
    """

    _state: RunState | SupervisionError
    _changed: asyncio.Event
    _parent: ParentLink | None
    _children: ChildLinks | None
    _context: RunContext | None

    @workflow.query
    def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks 100 a page."""
        return self._run_state().status(cursor)

    @workflow.query
    def plan(self) -> Plan:
        """The plan; empty while it is being made."""
        return self._run_state().plan

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """What happened in the root since a cursor."""
        return self._run_state().trace.page(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(self._run_state().result())

    def details(self) -> str:
        """Returns the Markdown for the Web UI: what the SDK's own query for metadata shows."""
        return self._state.details() if isinstance(self._state, RunState) else self._state.message

    @workflow.update
    def extend_limits(self, update: ExtendLimits | JsonValue = None) -> UpdateReply:
        """New totals for budget and deadline; they apply at once, to a run that waits, too."""
        state, new = self._run_state(), read_update(ExtendLimits, update)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            if self._children is not None:
                self._children.limits_changed()
            self._changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=state.time_and_budget.spent_line())

    @extend_limits.validator
    def _extend_limits_valid(self, update: ExtendLimits | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(ExtendLimits, update)
        if self._parent is not None:
            raise ValueError(
                f"this is a nested run, its limits are its root's: extend those of '{self._parent.root_id}'"
            )
        if not state.seen(new.request_id):
            state.time_and_budget.check(new.budget, new.deadline)

    @workflow.update
    def resume(self, update: Resume | JsonValue = None) -> UpdateReply:
        """Ends the waits for the provider, here and in nested supervisors."""
        state = self._run_state()
        if state.once(read_update(Resume, update).request_id):
            self._resume(state)
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, update: Resume | JsonValue = None) -> None:
        self._open_run_state()
        read_update(Resume, update)

    # Signals take anything, undecoded as yet: an error raised in a signal would block the run, and a signal may come
    # before the run has begun. What does not fit is ignored.

    @workflow.signal
    async def nested_report(self, report: object = None, *surplus: object) -> None:
        """The report of a nested supervisor."""
        valid = _read(NestedReport, report)
        if valid is not None and self._children is not None and self._children.take(valid):
            self._changed.set()  # of its slots some may be free now, or more may be wanted
            self._show()
            await self._children.fund(valid)

    @workflow.signal
    def nested_terms(self, terms: object = None, *surplus: object) -> None:
        """New terms for this nested supervisor, from the one above it."""
        valid, state = _read(NestedTerms, terms), self._state
        if valid is None or self._parent is None or self._children is None or isinstance(state, SupervisionError):
            return
        before = self._parent.terms
        if self._parent.take(valid):
            if valid.changed != before.changed:
                self._children.limits_changed()
            if valid.resumed_at != before.resumed_at:
                self._resume(state)
            self._changed.set()
            self._show()

    def _resume(self, state: RunState) -> None:
        """Ends the waits for a person at the provider, here and on all levels below."""
        state.resumes += 1
        state.models.retry_all()
        if self._children is not None:
            self._children.resumed()

    def _show(self) -> None:
        """Makes a change of the state visible."""
        raise NotImplementedError

    def _run_state(self) -> RunState:
        if isinstance(self._state, SupervisionError):
            raise ValueError(f"this run did not begin, its input was not valid: {self._state.message}")
        return self._state

    def _open_run_state(self) -> RunState:
        state = self._run_state()
        if state.phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {state.phase}")
        return state


def _read(model: type[M], value: object) -> M | None:
    """Returns a signal's argument; None if it is something else."""
    try:
        return model.model_validate(value)
    except ValidationError:
        return None
