"""A nested supervisor's side: it reports to the supervisor above it, asks for budget, and takes its terms."""

import contextlib

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from supervision.base import limits
    from supervision.run.nested_runs import milestone
    from supervision.run.run_state import RunState
    from workflows.children.child_contracts import NestedInput, NestedReport, NestedTerms
    from workflows.children.mailbox import Mailbox
    from workflows.children.nested_result import nested_run

_NESTED_WAITS = 50  # waits in one report, people's first: more would make it larger than a payload may be


class ParentLink:
    """The link of a nested supervisor to its parent. `terms` are the latest that it got."""

    def __init__(self, nested: NestedInput, state: RunState) -> None:
        self.terms = nested.terms
        self._nested = nested
        self._state = state
        self._asked, self._tokens = 0, 0
        self._lease = state.slots.lease = nested.terms.lease.model_copy()
        # Work that waits for budget needs no slot: other work may need it, to end and return budget.
        state.slots.is_waiting = lambda: bool(state.waits.current) or self._asked > self.terms.answered
        self._reports = Mailbox("nested_report", self._latest, news=_news)

    @property
    def root_id(self) -> str:
        """The run that the whole tree works for."""
        return self._nested.run.run_id

    @property
    def subtask_id(self) -> str:
        """The subtask of the supervisor above that this one works on."""
        return self._nested.subtask_id

    def report(self) -> None:
        """Reports upward if enough has changed."""
        parent = workflow.info().parent
        self._reports.workflow_id = parent.workflow_id if parent else ""
        self._reports.post()

    def _latest(self) -> NestedReport:
        self._state.slots.settle()
        return NestedReport(
            subtask_id=self._nested.subtask_id,
            report_key=self._nested.terms.report_key,
            run=nested_run(self._state),
            waits=sorted(self._state.waits.current, key=lambda wait: not wait.for_decision)[:_NESTED_WAITS],
            lease=self._lease.model_copy(),
            asked=self._asked,
            tokens=self._tokens,
        )

    async def more_budget(self, tokens: int) -> bool:
        """Asks for so much budget that `tokens` are free. Returns False if the supervisor above has none left."""
        budget, ledger = self._state.time_and_budget, self._state.time_and_budget.ledger
        if ledger.has_room(tokens) or self._state.finished_at is not None:
            return ledger.has_room(tokens)
        if self._asked <= self.terms.answered:
            self._asked, self._tokens = self.terms.answered + 1, ledger.shortfall(tokens)
            self.report()
        number = self._asked
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self.terms.answered >= number or ledger.has_room(tokens),
                timeout=max(budget.deadline_at - workflow.now(), limits.LEAST_CALL_TIME),
                timeout_summary="budget from above",
            )
        return ledger.has_room(tokens)

    def take(self, terms: NestedTerms) -> bool:
        """Takes over the terms that the parent has sent. Returns False if they are a stranger's."""
        if not terms.report_key or terms.report_key != self._nested.terms.report_key:
            return False
        state = self._state
        state.root_has_finding = state.root_has_finding or terms.root_has_finding
        state.time_and_budget.set_slice(terms.grant, terms.deadline_at)
        self._lease.take(terms.lease)
        state.slots.serve()
        self.terms = terms.model_copy(update={"answered": max(self.terms.answered, terms.answered)})
        return True


def _news(report: NestedReport) -> object:
    """Returns what is worth a report when it changes."""
    return milestone(report.run.phase, report.run.counts), report.waits, report.lease, report.asked
