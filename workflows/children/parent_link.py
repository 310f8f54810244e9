"""A nested supervisor's side: it reports to the supervisor above it, asks for budget, and takes its terms."""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel

    from supervision.base import limits
    from supervision.contract.status import Wait
    from supervision.run.nested_runs import WaitChanges, milestone
    from supervision.run.run_state import RunState
    from supervision.run.slots import Loan
    from workflows.children.child_contracts import NestedInput, NestedReport, NestedRequest, NestedTerms
    from workflows.children.nested_result import nested_run

_NESTED_WAITS = 50  # changed waits in one report; the others follow with the next


class ParentLink:
    """The link of a nested supervisor to its parent. `limits_changes` counts a person's changes of the limits."""

    def __init__(self, nested: NestedInput, state: RunState) -> None:
        self._nested = nested
        self._state = state
        self._reported: object = None
        self._reported_waits: dict[str, Wait] | None = None
        self._sending: asyncio.Task[None] | None = None
        self._asked = 0
        self._answered = 0
        self.limits_changes = nested.terms.changed
        self._refused = False
        self._loan = state.slots.borrowed = Loan()
        state.slots.at_wait = lambda: bool(state.waits.current) or self._waits_for_budget
        self._waits_for_budget = False
        self._returned = 0

    @property
    def root_id(self) -> str:
        """The run that the whole tree works for."""
        return self._nested.run.run_id

    # --- reports ----------------------------------------------------------------------------------

    def report(self) -> None:
        """Reports upward if enough has changed.

        One signal is under way at a time, as they could overtake each other: what changes meanwhile goes with the next.
        """
        if self._is_due() and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._report())

    def _is_due(self) -> bool:
        changed = self._milestone() != self._reported or self._waits() != (self._reported_waits or {})
        return self._slots_are_due() or changed

    def _slots_are_due(self) -> bool:
        """True if slots were returned, or if it lacks others than it has asked for."""
        slots = self._state.slots
        slots.return_spare()
        return self._loan.returned != self._returned or self._loan.out < slots.wanted != self._loan.wanted

    def _milestone(self) -> tuple[object, ...]:
        state = self._state
        return milestone(state.phase, state.board.counts() + state.nested.counts)

    async def _report(self) -> None:
        while self._is_due():
            self._reported = self._milestone()
            self._returned, self._loan.wanted = self._loan.returned, self._state.slots.wanted
            report = NestedReport(
                subtask_id=self._nested.subtask_id,
                report_key=self._nested.terms.report_key,
                run=nested_run(self._state),
                waits=self._wait_changes(),
                slots_given=self._loan.given,
                slots_returned=self._returned,
                slots_wanted=self._loan.wanted,
            )
            # What changes while this waits is reported next.
            await self._signal("nested_report", report)

    def _waits(self) -> dict[str, Wait]:
        return {wait.id: wait for wait in self._state.waits.current}

    def _wait_changes(self) -> WaitChanges:
        """Returns the next changes to report, at most NESTED_WAITS, and counts them as reported."""
        now, before = self._waits(), self._reported_waits or {}
        ended = [wait for key, wait in before.items() if key not in now][:_NESTED_WAITS]
        begun = [wait for key, wait in now.items() if before.get(key) != wait][:_NESTED_WAITS]
        changes = WaitChanges(begun=begun, ended=ended, anew=self._reported_waits is None)
        gone = {wait.id for wait in ended}
        self._reported_waits = {k: w for k, w in before.items() if k not in gone} | {w.id: w for w in begun}
        return changes

    # --- budget and terms -------------------------------------------------------------------------

    async def more_budget(self, tokens: int) -> bool:
        """Asks for so much budget that `tokens` are free. Returns False if there is none, or the run's time is over.

        After a refusal it asks again only when a person has changed the limits: what others give back is theirs
        that ask first.
        """
        budget = self._state.time_and_budget
        ledger = budget.ledger
        if ledger.has_room(tokens):
            return True
        if not self.may_give:
            return False
        if self._asked == self._answered:
            self._asked += 1
            self._waits_for_budget = True
            self.report()  # others may need its slots, to end and give back
            request = NestedRequest(
                subtask_id=self._nested.subtask_id,
                report_key=self._nested.terms.report_key,
                number=self._asked,
                tokens=ledger.shortfall(tokens),
            )
            await self._signal("nested_request", request)
        number = self._asked
        with contextlib.suppress(TimeoutError):
            # The parent may wait for other work to give something back; own work may be quicker.
            await workflow.wait_condition(
                lambda: self._answered >= number or ledger.has_room(tokens) or self._is_over(),
                timeout=max(budget.deadline_at - workflow.now(), limits.LEAST_CALL_TIME),
                timeout_summary="budget from above",
            )
        return ledger.has_room(tokens) or self.may_give

    @property
    def may_give(self) -> bool:
        """True if there is time, and the supervisor above has not refused since a person changed the limits."""
        return not (self._refused or self._is_over())

    def _is_over(self) -> bool:
        return self._state.finished_at is not None or workflow.now() >= self._state.time_and_budget.deadline_at

    def take(self, terms: NestedTerms) -> bool:
        """Takes over the terms that the parent has sent. Returns False if they are a stranger's."""
        if not terms.report_key or terms.report_key != self._nested.terms.report_key:
            return False
        state = self._state
        before = state.time_and_budget.budget
        state.root_has_finding = state.root_has_finding or terms.root_has_finding
        state.time_and_budget.set_slice(terms.grant, terms.deadline_at)
        self._loan.given, self._loan.cap = max(self._loan.given, terms.slots_given), terms.slots_cap
        state.slots.serve()
        if state.time_and_budget.budget != before or terms.changed > self.limits_changes:
            self._refused = False
        elif terms.answered > self._answered:
            self._refused = True
        self._answered, self.limits_changes = max(self._answered, terms.answered), terms.changed
        self._waits_for_budget &= self._answered < self._asked
        return True

    async def _signal(self, name: str, message: BaseModel) -> None:
        parent = workflow.info().parent
        if parent is None:
            return
        try:
            await workflow.get_external_workflow_handle(parent.workflow_id).signal(name, message)
        except FailureError:
            workflow.logger.debug("the parent has ended: nobody to send %s to", name)
