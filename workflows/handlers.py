"""The messages that a run takes: queries, updates, and the signal of nested supervisors."""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from pydantic import JsonValue

    from supervision.contract.plan import Plan
    from supervision.contract.result import RunResult
    from supervision.contract.status import Status, TracePage
    from supervision.contract.updates import ExtendLimits, Resume, UpdateReply, read_update
    from supervision.run.payload_fit import fit
    from supervision.run.run_state import RunState
    from workflows.child_contracts import NestedInput, NestedReport
    from workflows.visibility import Visibility


class Messages:
    """The state of a supervisor that messages read and change. The bell wakes the dispatch when limits changed.

    Updates take any JSON, so that what is wrong with it is said to the one who sent it.
    """

    def __init__(self) -> None:
        self._state: RunState | None = None
        self._nested: NestedInput | None = None
        self._visibility = Visibility()
        self._bell = asyncio.Event()

    @workflow.query
    def status(self, cursor: int = 0) -> Status:
        """Where the run stands; subtasks 100 a page."""
        return self._known().status(cursor)

    @workflow.query
    def plan(self) -> Plan:
        """The plan; empty while it is being made."""
        return self._known().plan

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """What happened in the root since a cursor."""
        return self._known().trace(cursor)

    @workflow.query
    def result(self) -> RunResult:
        """The result so far."""
        return fit(self._known().result())

    @workflow.update
    def extend_limits(self, asked: ExtendLimits | JsonValue = None) -> UpdateReply:
        """New totals for budget and deadline; a run that waits or works goes on with them."""
        state, new = self._known(), read_update(ExtendLimits, asked)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            self._bell.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=state.allowance.spent())

    @extend_limits.validator
    def _extend_limits_valid(self, asked: ExtendLimits | JsonValue = None) -> None:
        self._open()
        state, new = self._known(), read_update(ExtendLimits, asked)
        if not state.seen(new.request_id):
            state.allowance.check(new.budget, new.deadline)

    @workflow.update
    async def resume(self, asked: Resume | JsonValue = None) -> UpdateReply:
        """Go on after a wait for the provider, here and in nested supervisors."""
        state = self._known()
        if state.once(read_update(Resume, asked).request_id):
            state.resumes += 1
            waiting = {wait.workflow_id for wait in state.holds.asked()}
            for workflow_id in sorted(waiting - {workflow.info().workflow_id}):
                with contextlib.suppress(FailureError):  # it has ended
                    await workflow.get_external_workflow_handle(workflow_id).signal("nested_resume")
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, asked: Resume | JsonValue = None) -> None:
        self._open()
        read_update(Resume, asked)

    @workflow.signal
    def nested_report(self, report: NestedReport) -> None:
        """News of a nested supervisor, for the one tree in `status`."""
        if self._state is not None:
            self._state.board.set_nested(report.subtask_id, report.subtasks)
            self._state.holds.nested[report.subtask_id] = report.waits
            self._show()

    @workflow.signal
    def nested_resume(self) -> None:
        """The word of a person, said to the root."""
        self._known().resumes += 1

    def _show(self) -> None:
        """Makes a change visible: in the details, in the search attributes, in the parent's status."""
        if self._state is None:
            return
        workflow.set_current_details(self._state.details())
        self._visibility.waiting(self._state)
        if self._nested is not None:
            self._visibility.tell_parent(self._nested, self._state)

    def _known(self) -> RunState:
        if self._state is None:
            raise ValueError("this run has not begun, or its input was not valid: its result says why")
        return self._state

    def _open(self) -> None:
        if self._known().phase in ("done", "failed", "cancelled"):
            raise ValueError(f"this run has ended: it is {self._known().phase}")
