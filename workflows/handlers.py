"""The messages that a run takes: queries, updates, and the signals between supervisors."""

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
    from supervision.errors import SupervisionError
    from supervision.run.payload_fit import fit
    from supervision.run.run_state import RunState
    from workflows.child_contracts import NestedReport


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it.

    Updates take any JSON, so that its sender gets to know what is wrong with it.
    """

    _state: RunState | SupervisionError
    _limits_changed: asyncio.Event

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
        """New totals for budget and deadline; a run that waits or works goes on with them."""
        state, new = self._run_state(), read_update(ExtendLimits, update)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            self._limits_changed.set()
            self._show()
        return UpdateReply(accepted=True, phase=state.phase, message=state.time_and_budget.spent_line())

    @extend_limits.validator
    def _extend_limits_valid(self, update: ExtendLimits | JsonValue = None) -> None:
        state, new = self._open_run_state(), read_update(ExtendLimits, update)
        if not state.seen(new.request_id):
            state.time_and_budget.check(new.budget, new.deadline)

    @workflow.update
    async def resume(self, update: Resume | JsonValue = None) -> UpdateReply:
        """Go on after a wait for the provider, here and in nested supervisors."""
        state = self._run_state()
        if state.once(read_update(Resume, update).request_id):
            state.resumes += 1
            waiting = {wait.workflow_id for wait in state.waits.for_resume}
            # A list of its own: while a signal is on its way, nested supervisors begin and end waits.
            for workflow_id in sorted(waiting - {workflow.info().workflow_id}):
                with contextlib.suppress(FailureError):  # it has ended
                    await workflow.get_external_workflow_handle(workflow_id).signal("nested_resume")
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, update: Resume | JsonValue = None) -> None:
        self._open_run_state()
        read_update(Resume, update)

    @workflow.signal
    def nested_report(self, report: NestedReport) -> None:
        """The report of a nested supervisor, for the one tree in `status`."""
        state = self._state  # an error in a signal would block the run
        if isinstance(state, RunState) and state.expects(report.subtask_id, report.report_key):
            state.board.show_nested(report.subtask_id, report.subtasks)
            state.waits.set_nested(report.subtask_id, report.waits)
            self._show()

    @workflow.signal
    def nested_resume(self) -> None:
        """`resume`, passed on by the root."""
        if isinstance(self._state, RunState):
            self._state.resumes += 1

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
