"""A supervisor's side: it takes the reports of nested supervisors, funds them, and sends them their terms."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.budget.amount import Amount
    from supervision.contract.progress import NestedRun
    from supervision.run.run_state import RunState
    from supervision.run.slots import Loan
    from workflows.children.child_contracts import NestedReport, NestedRequest, NestedTerms
    from workflows.children.parent_link import ParentLink


@dataclass
class _Link:
    """One nested supervisor. `account` is its grant's in the ledger, `sent` what it knows of its terms.

    It is signalled by its id: through the handle of a child no signal arrives after this run was reset.
    """

    account: str
    terms: NestedTerms
    sent: NestedTerms
    workflow_id: str = ""
    asks: bool = False
    sending: asyncio.Task[None] | None = field(default=None)


async def _signalled(link: _Link, name: str, *message: NestedTerms) -> bool:
    """Signals a nested supervisor that has started. Returns False if it has ended."""
    try:
        await workflow.get_external_workflow_handle(link.workflow_id).signal(name, args=message)
    except FailureError:
        workflow.logger.debug("nested run %s has ended", link.workflow_id)
        return False
    return True


class ChildLinks:
    """The links of a supervisor to those nested in it, by the subtasks that they work on."""

    def __init__(self, state: RunState, parent: ParentLink | None) -> None:
        self._state = state
        self._parent = parent
        self._links: dict[str, _Link] = {}
        self._changed = 0

    # --- their lives ------------------------------------------------------------------------------

    def open(self, subtask_id: str, account: str, grant: Amount) -> NestedTerms:
        """Opens the link to a nested supervisor that is about to start. Returns its first terms."""
        key = str(workflow.uuid4())
        self._state.nested.begin(subtask_id, key)
        self._state.board.show_nested(subtask_id, self._state.nested.of(subtask_id))
        terms = NestedTerms(
            report_key=key,
            grant=grant,
            deadline_at=self._deadline(),
            root_has_finding=self._state.has_finding,
            changed=self._changed,
        )
        self._links[subtask_id] = _Link(account, terms, terms)
        self._state.slots.loans[subtask_id] = Loan()
        return terms

    def started(self, subtask_id: str, workflow_id: str) -> None:
        """Sends a nested supervisor that has started what changed while it did."""
        if link := self._links.get(subtask_id):
            link.workflow_id = workflow_id
            self.update()

    def close(self, subtask_id: str, run: NestedRun | None) -> None:
        """Closes the link to a nested supervisor that has ended; later messages of its are ignored."""
        self._links.pop(subtask_id, None)
        self._state.slots.loans.pop(subtask_id, None)
        self._state.slots.serve()
        self._state.nested.end(subtask_id, run)
        self._state.board.show_nested(subtask_id, self._state.nested.of(subtask_id))

    # --- what they send ---------------------------------------------------------------------------

    def take(self, report: NestedReport) -> bool:
        """Takes a report over. Returns False if it is a stranger's, or of an attempt that has ended."""
        nested = self._state.nested
        if not nested.expects(report.subtask_id, report.report_key):
            return False
        nested.report(report.subtask_id, report.run, report.waits)
        slots = self._state.slots
        if loan := slots.loans.get(report.subtask_id):
            loan.given, loan.returned = max(loan.given, report.slots_given), max(loan.returned, report.slots_returned)
            loan.wanted = report.slots_wanted
            slots.serve()
        self._state.board.show_nested(report.subtask_id, report.run)
        return True

    async def fund(self, request: NestedRequest) -> None:
        """Raises the grant of a nested supervisor as far as there is budget, here or above, and answers its request.

        While other work holds grants it waits: it may give some back. Those that ask themselves give nothing back.
        """
        link = self._links.get(request.subtask_id)
        if link is None or not self._state.nested.expects(request.subtask_id, request.report_key):
            return
        budget = self._state.time_and_budget
        ledger = budget.ledger
        link.asks = True
        try:
            while self._is_open(request.subtask_id, link):
                shares = budget.shares(self._state.board.agents(self._state.request.max_parallel))
                grant = ledger.top_up(link.account, shares, request.tokens)
                if grant is not None:
                    link.terms = link.terms.model_copy(update={"grant": grant})
                    break
                least = max(request.tokens, limits.LEAST_GRANT_TOKENS)
                if self._parent is not None and await self._parent.more_budget(least):
                    continue
                if self._nothing_comes_back() or not ledger.exhausted:  # or its grant is settled: nothing to raise
                    break
                # Several may wake from this wait at once, and the first takes what is free: so the loop asks again.
                await workflow.wait_condition(
                    lambda: (
                        not ledger.exhausted
                        or self._nothing_comes_back()
                        or not self._is_open(request.subtask_id, link)
                    )
                )
        finally:
            link.asks = False
        link.terms = link.terms.model_copy(update={"answered": request.number})
        self.update()

    def _is_open(self, subtask_id: str, link: _Link) -> bool:
        return self._links.get(subtask_id) is link and self._state.finished_at is None

    def _nothing_comes_back(self) -> bool:
        asking = sum(link.asks for link in self._links.values())
        return self._state.time_and_budget.ledger.open_grants <= asking

    # --- what they are sent -----------------------------------------------------------------------

    def lend_slots(self) -> None:
        """Shares the slots anew among those that work; `update` sends what it comes to."""
        if not self._links:
            return
        self._state.slots.lend()
        for subtask_id, link in self._links.items():
            loan = self._state.slots.loans[subtask_id]
            link.terms = link.terms.model_copy(update={"slots_given": loan.given, "slots_cap": loan.cap})

    def limits_changed(self) -> None:
        """Passes on that a person has changed the limits, and the deadline that follows for each."""
        self._changed += 1
        deadline_at = self._deadline()
        for link in self._links.values():
            link.terms = link.terms.model_copy(update={"deadline_at": deadline_at, "changed": self._changed})
        self.update()

    def update(self) -> None:
        """Sends those that have started what is new in their terms, one signal at a time to each."""
        if not self._links:
            return  # after every event of a run without nested ones
        has_finding = self._state.has_finding
        for link in self._links.values():
            if has_finding and not link.terms.root_has_finding:
                link.terms = link.terms.model_copy(update={"root_has_finding": True})
            busy = link.sending is not None and not link.sending.done()
            if link.workflow_id and not busy and link.terms != link.sent:
                link.sending = asyncio.create_task(self._send(link))

    async def _send(self, link: _Link) -> None:
        while link.terms != link.sent:
            link.sent = link.terms
            # The terms may change while this waits: then they are sent next.
            if not await _signalled(link, "nested_terms", link.sent):
                return

    async def resume(self) -> None:
        """Passes `resume` on to all that have started: each passes it on to its own."""
        for link in list(self._links.values()):
            if link.workflow_id:
                await _signalled(link, "nested_resume")

    def _deadline(self) -> datetime:
        left = (self._state.time_and_budget.work_until - workflow.now()) * limits.NESTED_DEADLINE_SHARE
        return workflow.now() + max(left, limits.MIN_DEADLINE)
