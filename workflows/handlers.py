"""The messages that a run takes: queries, updates, and the signals between supervisors."""

import asyncio

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from pydantic import JsonValue

    from supervision.contract.plan import Plan
    from supervision.contract.result import RunResult
    from supervision.contract.status import Status, TracePage
    from supervision.contract.updates import ExtendLimits, Resume, UpdateReply, read_update
    from supervision.errors import SupervisionError
    from supervision.results.payload_fit import fit
    from supervision.run.run_state import RunState
    from workflows.child_contracts import NestedReport, NestedRequest, NestedTerms
    from workflows.nested.child_links import ChildLinks
    from workflows.nested.parent_link import ParentLink


class Handlers:
    """Handlers over the state of SupervisorWorkflow, which owns it.

    Updates take any JSON, so that its sender gets to know what is wrong with it.
    """

    _state: RunState | SupervisionError
    _limits_changed: asyncio.Event
    _parent: ParentLink | None
    _children: ChildLinks | None

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

    @workflow.update
    def extend_limits(self, update: ExtendLimits | JsonValue = None) -> UpdateReply:
        """New totals for budget and deadline; a run that waits or works goes on with them."""
        state, new = self._run_state(), read_update(ExtendLimits, update)
        if state.once(new.request_id):
            state.extend(new.budget, new.deadline)
            if self._children is not None:
                self._children.limits_changed()
            self._limits_changed.set()
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
    async def resume(self, update: Resume | JsonValue = None) -> UpdateReply:
        """Go on after a wait for the provider, here and in nested supervisors."""
        state = self._run_state()
        if state.once(read_update(Resume, update).request_id):
            await self._resume(state)
        return UpdateReply(accepted=True, phase=state.phase)

    @resume.validator
    def _resume_valid(self, update: Resume | JsonValue = None) -> None:
        self._open_run_state()
        read_update(Resume, update)

    # An error in a signal would block the run: what does not fit is ignored.

    @workflow.signal
    def nested_report(self, report: NestedReport) -> None:
        """The report of a nested supervisor."""
        if self._children is not None and self._children.take(report):
            self._show()

    @workflow.signal
    async def nested_request(self, request: NestedRequest) -> None:
        """A nested supervisor's request for more budget."""
        if self._children is not None:
            await self._children.fund(request)

    @workflow.signal
    def nested_terms(self, terms: NestedTerms) -> None:
        """New terms for this nested supervisor, from the one above it."""
        if self._parent is not None and self._parent.take(terms):
            if self._children is not None and terms.changed:
                self._children.limits_changed()
            self._limits_changed.set()
            self._show()

    @workflow.signal
    async def nested_resume(self) -> None:
        """`resume`, passed on from above."""
        if isinstance(self._state, RunState):
            await self._resume(self._state)

    async def _resume(self, state: RunState) -> None:
        """Ends the waits for a person at the provider, here and on all levels below."""
        state.resumes += 1
        if self._children is not None:
            await self._children.resume()

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
