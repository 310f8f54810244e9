"""A supervisor's side: it takes the reports of nested supervisors, funds them, and sends them their terms."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.budget.amount import Amount
    from supervision.contract.progress import NestedRun
    from supervision.run.decisions import Instructions
    from supervision.run.run_state import RunState
    from supervision.run.slots import SlotLease
    from workflows.children.child_contracts import NestedReport, NestedTerms
    from workflows.children.parent_link import ParentLink


@dataclass
class _Mailbox:
    """Sends a child that has started the latest of something, one signal at a time: two could overtake each other.

    The child is signalled by its id: through its handle no signal arrives after this run was reset.
    """

    signal: str
    latest: Callable[[], Instructions | NestedTerms]
    sent: Instructions | NestedTerms
    workflow_id: str = ""
    _sending: asyncio.Task[None] | None = None

    def post(self) -> None:
        """Sends what the child does not have yet."""
        busy = self._sending is not None and not self._sending.done()
        if self.workflow_id and not busy and self.latest() != self.sent:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        # It may change while a signal is on its way: then it is sent next.
        while (latest := self.latest()) != self.sent:
            self.sent = latest
            await _signal(self.workflow_id, self.signal, latest)


class _Link:
    """One nested supervisor: its `account` in the ledger, its terms, whether it `asks` for budget."""

    def __init__(self, account: str, terms: NestedTerms) -> None:
        self.account = account
        self.terms = terms
        self.asks = False
        self.mailbox = _Mailbox("nested_terms", lambda: self.terms, terms)


class ChildLinks:
    """The links of a supervisor to those nested in it, by the subtasks that they work on."""

    def __init__(self, state: RunState, parent: ParentLink | None) -> None:
        self._state = state
        self._parent = parent
        self._links: dict[str, _Link] = {}
        self._listeners: dict[str, _Mailbox] = {}
        self._changed = 0
        self._resumed_at: datetime | None = None
        self._delivered: dict[str, asyncio.Task[None]] = {}

    # --- instructions of people -------------------------------------------------------------------

    def listen(self, name: str, subtask_id: str) -> Instructions:
        """Returns the instructions for a child that is about to start; later ones are sent to it."""
        latest = partial(self._state.steering.instructions, subtask_id)
        instructions = latest()
        self._listeners[name] = _Mailbox("instructions", latest, instructions)
        return instructions

    def listens(self, name: str, workflow_id: str) -> None:
        """Sends a child that has started the instructions that came meanwhile."""
        if mailbox := self._listeners.get(name):
            mailbox.workflow_id = workflow_id
            mailbox.post()

    def leave(self, name: str) -> None:
        """Sends nothing more to a child that has ended."""
        self._listeners.pop(name, None)

    def send_instructions(self) -> None:
        """Sends new instructions to the children."""
        for mailbox in self._listeners.values():
            mailbox.post()

    # --- their lives ------------------------------------------------------------------------------

    def open(self, subtask_id: str, account: str, grant: Amount) -> NestedTerms:
        """Opens the link to a nested supervisor that is about to start. Returns its first terms."""
        terms = NestedTerms(
            report_key=str(workflow.uuid4()),
            grant=grant,
            deadline_at=self._deadline(),
            root_has_finding=self._state.has_finding,
            changed=self._changed,
            resumed_at=self._resumed_at,
        )
        self._links[subtask_id] = _Link(account, terms)
        self._state.nested.begin(subtask_id)
        self._state.slots.leases[subtask_id] = SlotLease()
        return terms

    def started(self, subtask_id: str, account: str, workflow_id: str) -> None:
        """Sends a nested supervisor that has started what changed while it did."""
        if link := self._link(subtask_id, account):
            link.mailbox.workflow_id = workflow_id
            self.update()

    def close(self, subtask_id: str, account: str, run: NestedRun | None) -> None:
        """Closes the link to a nested supervisor that has ended; its late messages are ignored."""
        if self._link(subtask_id, account) is None:
            return
        del self._links[subtask_id]
        self._state.slots.leases.pop(subtask_id, None)
        self._state.slots.serve()
        self._state.nested.end(subtask_id, run)

    def _link(self, subtask_id: str, account: str) -> _Link | None:
        """Returns the link if it is still of the attempt with that account, not of the next one at the subtask."""
        link = self._links.get(subtask_id)
        return link if link is not None and link.account == account else None

    # --- reports ----------------------------------------------------------------------------------

    def take(self, report: NestedReport) -> bool:
        """Takes over a report. Returns False if it is a stranger's, or of an attempt that has ended."""
        link, slots = self._links.get(report.subtask_id), self._state.slots
        if link is None or report.report_key != link.terms.report_key:
            return False
        self._state.nested.report(report.subtask_id, report.run, report.waits)
        lease = slots.leases[report.subtask_id]
        # The run may know of more grants than this one, if this one was reset.
        lease.granted = max(lease.granted, report.slots_granted)
        lease.returned = max(lease.returned, report.slots_returned)
        lease.wanted = report.slots_wanted
        slots.serve()
        return True

    async def fund(self, report: NestedReport) -> None:
        """Decides the request for budget in a report: raises the grant as far as there is budget, here or above.

        While other work holds grants it waits: some may be returned. Grants of runs that ask themselves are not.
        """
        link = self._links.get(report.subtask_id)
        if link is None or link.asks or report.asked <= link.terms.answered:
            return
        budget = self._state.time_and_budget
        ledger = budget.ledger
        link.asks = True
        try:
            while self._is_open(report.subtask_id, link):
                shares = budget.shares(self._state.board.agents(self._state.request.max_parallel))
                grant = ledger.top_up(link.account, shares, report.tokens)
                if grant is not None:
                    link.terms = link.terms.model_copy(update={"grant": grant})
                    break
                least = max(report.tokens, limits.LEAST_GRANT_TOKENS)
                if self._parent is not None and await self._parent.more_budget(least):
                    continue
                if self._nothing_comes_back() or not ledger.exhausted:  # or its grant is settled: nothing to raise
                    break
                # Several requests may wake from this wait at once, and the first takes what is free.
                await workflow.wait_condition(
                    lambda: (
                        not ledger.exhausted or self._nothing_comes_back() or not self._is_open(report.subtask_id, link)
                    )
                )
        finally:
            link.asks = False
        link.terms = link.terms.model_copy(update={"answered": report.asked})
        self.update()

    def _is_open(self, subtask_id: str, link: _Link) -> bool:
        return self._links.get(subtask_id) is link and self._state.finished_at is None

    def _nothing_comes_back(self) -> bool:
        asking = sum(link.asks for link in self._links.values())
        return self._state.time_and_budget.ledger.open_grants <= asking

    # --- terms ------------------------------------------------------------------------------------

    def lend_slots(self) -> None:
        """Shares the slots among the runs that work; `update` sends the result."""
        self._state.slots.lend()
        for subtask_id, link in self._links.items():
            lease = self._state.slots.leases[subtask_id]
            link.terms = link.terms.model_copy(update={"slots_granted": lease.granted, "slots_cap": lease.cap})

    def limits_changed(self) -> None:
        """Passes on that a person has changed the limits."""
        self._changed += 1
        self._set(changed=self._changed, deadline_at=self._deadline())

    def resumed(self) -> None:
        """Passes on that a person has resumed the run."""
        self._resumed_at = workflow.now()
        self._set(resumed_at=self._resumed_at)

    def _set(self, **changes: object) -> None:
        for link in self._links.values():
            link.terms = link.terms.model_copy(update=changes)
        self.update()

    def update(self) -> None:
        """Sends changed terms to the runs that have started, and what people decided."""
        if not self._links:
            return  # after every event of a run without nested ones
        if self._parent is None:
            self._deliver()
        has_finding = self._state.has_finding
        for link in self._links.values():
            if has_finding and not link.terms.root_has_finding:
                link.terms = link.terms.model_copy(update={"root_has_finding": True})
            link.mailbox.post()

    def _deliver(self) -> None:
        """Sends what was decided to the supervisors whose work waits for it, once to each wait."""
        waits = {f"{wait.id} {wait.since}": wait for wait in self._state.nested.waits() if wait.for_decision}
        self._delivered = {key: task for key, task in self._delivered.items() if key in waits}
        for key, wait in waits.items():
            decision = self._state.decisions.on(wait)
            if decision is not None and key not in self._delivered:
                own = decision.model_copy(update={"id": wait.own_id})
                self._delivered[key] = asyncio.create_task(_signal(wait.workflow_id, "decided", own))

    def _deadline(self) -> datetime:
        left = (self._state.time_and_budget.work_until - workflow.now()) * limits.NESTED_DEADLINE_SHARE
        return workflow.now() + max(left, limits.MIN_DEADLINE)


async def _signal(workflow_id: str, signal: str, what: object) -> None:
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, what)
    except FailureError:
        workflow.logger.debug("%s has ended and takes no %s", workflow_id, signal)
