"""A nested supervisor's side: it reports to the supervisor above it, asks for budget, and takes its terms."""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.contract.status import Wait
    from supervision.run.nested_runs import WaitChanges, milestone
    from supervision.run.run_state import RunState
    from supervision.run.slots import SlotLease
    from workflows.children.child_contracts import NestedInput, NestedReport, NestedTerms
    from workflows.children.nested_result import nested_run

_NESTED_WAITS = 50  # changed waits in one report; the others follow with the next


class ParentLink:
    """The link of a nested supervisor to its parent. `terms` are the latest that it got."""

    def __init__(self, nested: NestedInput, state: RunState) -> None:
        self.terms = nested.terms
        self._nested = nested
        self._state = state
        self._reported: object = None
        self._reported_waits: dict[str, Wait] = {}
        self._sending: asyncio.Task[None] | None = None
        self._asked, self._answered, self._tokens = 0, 0, 0
        self._refused = False
        self._lease = state.slots.lease = SlotLease()
        # Work that waits for budget needs no slot: other work may need it, to end and return budget.
        state.slots.is_waiting = lambda: bool(state.waits.current) or self._answered < self._asked

    @property
    def root_id(self) -> str:
        """The run that the whole tree works for."""
        return self._nested.run.run_id

    @property
    def subtask_id(self) -> str:
        """The subtask of the supervisor above that this one works on."""
        return self._nested.subtask_id

    # --- reports ----------------------------------------------------------------------------------

    def report(self) -> None:
        """Reports upward if enough has changed, one signal at a time: two could overtake each other."""
        if self._is_due() and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._report())

    def _is_due(self) -> bool:
        self._state.slots.return_spare()
        return self._news() != self._reported or self._waits() != self._reported_waits

    def _news(self) -> tuple[object, ...]:
        """Returns what is worth a report when it changes; of the slots that it could use, only that there are more."""
        state, lease = self._state, self._lease
        wanted = state.slots.wanted if state.slots.wanted > lease.held else lease.wanted
        return milestone(state.phase, state.board.counts() + state.nested.counts), lease.returned, wanted, self._asked

    async def _report(self) -> None:
        parent = workflow.info().parent
        while parent is not None and self._is_due():
            self._lease.wanted = self._state.slots.wanted
            self._reported = self._news()
            report = NestedReport(
                subtask_id=self._nested.subtask_id,
                report_key=self._nested.terms.report_key,
                run=nested_run(self._state),
                waits=self._wait_changes(),
                slots_granted=self._lease.granted,
                slots_returned=self._lease.returned,
                slots_wanted=self._lease.wanted,
                asked=self._asked,
                tokens=self._tokens,
            )
            try:
                # What changes while the signal is on its way is reported next.
                await workflow.get_external_workflow_handle(parent.workflow_id).signal("nested_report", report)
            except FailureError:
                workflow.logger.debug("the parent has ended and takes no report")

    def _waits(self) -> dict[str, Wait]:
        return {wait.id: wait for wait in self._state.waits.current}

    def _wait_changes(self) -> WaitChanges:
        """Returns the next changes to report, at most _NESTED_WAITS, and counts them as reported."""
        now, before = self._waits(), self._reported_waits
        ended = [wait_id for wait_id in before if wait_id not in now][:_NESTED_WAITS]
        begun = [wait for wait_id, wait in now.items() if before.get(wait_id) != wait][:_NESTED_WAITS]
        kept = {wait_id: wait for wait_id, wait in before.items() if wait_id not in ended}
        self._reported_waits = kept | {wait.id: wait for wait in begun}
        return WaitChanges(begun=begun, ended=ended)

    # --- budget and terms -------------------------------------------------------------------------

    async def more_budget(self, tokens: int) -> bool:
        """Asks for so much budget that `tokens` are free. Returns False if there is none, or the run's time is over.

        After a refusal it asks again only when a person has changed the limits.
        """
        budget = self._state.time_and_budget
        ledger = budget.ledger
        if ledger.has_room(tokens):
            return True
        if not self.may_give:
            return False
        if self._asked == self._answered:
            self._asked, self._tokens = self._asked + 1, ledger.shortfall(tokens)
            self.report()
        number = self._asked
        with contextlib.suppress(TimeoutError):
            # The parent may wait until other work returns budget; own work may do so earlier.
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
        self._lease.granted, self._lease.cap = max(self._lease.granted, terms.slots_granted), terms.slots_cap
        state.slots.serve()
        if state.time_and_budget.budget != before or terms.changed > self.terms.changed:
            self._refused = False
        elif terms.answered > self._answered:
            self._refused = True
        self._answered = max(self._answered, terms.answered)
        self.terms = terms
        return True
