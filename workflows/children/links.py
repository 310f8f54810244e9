"""The links between a supervisor and its children: reports and results upward, terms and people's words downward.

A nested supervisor reports, asks for budget and takes its terms through its `ParentLink`. The supervisor above takes
the reports, funds the runs below and sends them terms through its `ChildLinks`.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import size
    from temporal_supervisor.supervision.budget.ledger import Amount
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.progress import NestedRun
    from temporal_supervisor.supervision.contract.result import RunResult
    from temporal_supervisor.supervision.grounding.citations import with_valid_marks
    from temporal_supervisor.supervision.results.answer import answer_record
    from temporal_supervisor.supervision.run.decisions import Instructions
    from temporal_supervisor.supervision.run.nested_runs import milestone
    from temporal_supervisor.supervision.run.run_state import RunState
    from workflows.background import in_background
    from workflows.children.child_contracts import NestedInput, NestedReport, NestedResult, NestedTerms

_NESTED_WAITS = 50  # waits in one report, people's first: more would make it larger than a payload may be


T = TypeVar("T")


@dataclass
class Mailbox(Generic[T]):
    """Sends a workflow the latest of something whenever the `news` in it changed, one signal at a time.

    Two at a time could overtake each other. The workflow is signalled by its id, once that is known: through a child's
    handle no signal arrives after this run was reset.
    """

    signal: str
    latest: Callable[[], T]
    sent: T | None = None
    workflow_id: str = ""
    news: Callable[[T], object] = lambda value: value
    _sending: asyncio.Task[None] | None = None

    def post(self) -> None:
        """Sends the latest value if the workflow does not have it yet."""
        if self.workflow_id and (self._sending is None or self._sending.done()) and self._due():
            self._sending = in_background(self._send())

    def _due(self) -> T | None:
        latest = self.latest()
        return latest if self.sent is None or self.news(latest) != self.news(self.sent) else None

    async def _send(self) -> None:
        # It may change while a signal is on its way: then it is sent next.
        while (latest := self._due()) is not None:
            self.sent = latest
            await send_signal(self.workflow_id, self.signal, latest)


async def send_signal(workflow_id: str, signal: str, what: object) -> None:
    """Signals a workflow; one that has ended takes nothing."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, what)
    except FailureError:
        workflow.logger.debug("%s has ended and takes no %s", workflow_id, signal)


class ParentLink:
    """The link of a nested supervisor to its parent. `terms` are the latest that it got."""

    def __init__(self, nested: NestedInput, state: RunState) -> None:
        self.terms = nested.terms
        self._nested = nested
        self._state = state
        self._asked, self._tokens = 0, 0
        self._lease = nested.terms.lease.model_copy()
        # Work that waits for budget needs no slot: other work may need it, to end and return budget.
        state.slots.live_on(self._lease, lambda: bool(state.waits.current) or self._asked > self.terms.answered)
        self._reports = Mailbox("nested_report", self._latest, news=_news)

    @property
    def root_id(self) -> str:
        """The run that the whole tree works for."""
        return self._nested.run.run_id

    def report(self) -> None:
        """Reports upward if enough has changed."""
        parent = workflow.info().parent
        self._reports.workflow_id = parent.workflow_id if parent else ""
        self._reports.post()

    def _latest(self) -> NestedReport:
        self._state.slots.settle()
        return NestedReport(
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
        has_room = ledger.has_room(tokens)
        if has_room or self._state.finished_at is not None:
            return has_room
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

    def knows(self, instructions: Instructions) -> bool:
        """True if the parent has sent these instructions: a stranger does not know their key."""
        key = self._nested.instructions.key
        return bool(key) and instructions.key == key

    def take(self, terms: NestedTerms) -> bool:
        """Takes over the terms that the parent has sent. Returns False if they are a stranger's."""
        if not terms.report_key or terms.report_key != self._nested.terms.report_key:
            return False
        state = self._state
        state.note_root_finding(terms.root_has_finding)
        state.time_and_budget.set_slice(terms.grant, terms.deadline_at)
        self._lease.take(terms.lease)
        state.slots.serve()
        self.terms = terms.model_copy(update={"answered": max(self.terms.answered, terms.answered)})
        return True


def _news(report: NestedReport) -> object:
    return milestone(report.run.phase, report.run.counts), report.waits, report.lease, report.asked


def nested_run(state: RunState) -> NestedRun:
    """Returns the progress of a nested supervisor, for the one above it."""
    return NestedRun(
        phase=state.phase, counts=state.board.counts() + state.nested.counts, usage=state.usage + state.nested.usage
    )


def nested_result(state: RunState, whole: RunResult, fitted: RunResult, record_ref: str) -> NestedResult:
    """Returns the `fitted` result for the supervisor above; the `whole` one and its record are in the store."""
    ended = {"status": whole.status, "result_ref": whole.result_ref, "trace_ref": whole.trace_ref}
    return NestedResult(
        finding=_finding(state, whole, record_ref),
        nested=nested_run(state).model_copy(update=ended),
        stopped=state.phase == "cancelled",
        turns=sum(report.turns for report in whole.subtasks),
        effects=state.effects[-limits.EFFECTS_TOLD :],
        labels=state.labels,
        **dict(fitted),
    )


def _finding(state: RunState, whole: RunResult, record_ref: str) -> Finding | None:
    """Returns the answer as a finding; what is missing from it are its limitations. A run that failed has none."""
    if not whole.answer_ref or state.phase == "failed":
        return None
    # Its marks name its own subtasks: above, [t1] is another one.
    answer = with_valid_marks(whole.answer, {subtask.id for subtask in state.plan.subtasks}, set())
    record = answer_record(whole)
    record.summary, record.labels = answer, state.labels
    if state.answer.is_findings:
        record.outcome = "partial"
    return Finding(
        **record.model_dump(exclude={"checked", "evidence"}),
        text_ref=whole.answer_ref,
        text_bytes=size(whole.answer),
        artifacts=whole.artifacts[: limits.FINDING_SOURCES],
        record_ref=record_ref,
    )


@dataclass
class _Link:
    """One nested supervisor: its `account` in the ledger, the end of its subtask's own time, how often it `asked`."""

    subtask_id: str
    account: str
    own_end: datetime | None
    terms: NestedTerms
    asked: int = 0

    def __post_init__(self) -> None:
        self.mailbox = Mailbox("nested_terms", lambda: self.terms, self.terms)


class ChildLinks:
    """The links of a supervisor to those nested in it, by the keys that only both know; mailboxes to all children."""

    def __init__(self, state: RunState, parent: ParentLink | None) -> None:
        self._state = state
        self._parent = parent
        self._links: dict[str, _Link] = {}
        self._mailboxes: dict[str, list[Mailbox[Any]]] = defaultdict(list)  # by the child's id

    # --- their lives ------------------------------------------------------------------------------

    def listen(self, workflow_id: str, subtask_id: str) -> Instructions:
        """Returns the instructions of people for a child that is about to start; later ones are sent to it."""
        latest = partial(self._instructions, str(workflow.uuid4()), subtask_id)
        instructions = latest()
        self._mailboxes[workflow_id].append(Mailbox("instructions", latest, instructions))
        return instructions

    def _instructions(self, key: str, subtask_id: str) -> Instructions:
        """Returns the instructions for the child that has that key."""
        return self._state.steering.instructions(subtask_id).model_copy(update={"key": key})

    def started(self, workflow_id: str) -> None:
        """Sends a child that has started what came meanwhile."""
        for mailbox in self._mailboxes.get(workflow_id, ()):
            mailbox.workflow_id = workflow_id
            mailbox.post()
        self.update()

    def leave(self, workflow_id: str) -> None:
        """Sends nothing more to a child that has ended."""
        self._mailboxes.pop(workflow_id, None)

    def send_instructions(self) -> None:
        """Sends new instructions to the children."""
        for mailbox in chain(*self._mailboxes.values()):
            mailbox.post()

    def open(self, subtask_id: str, workflow_id: str, grant: Amount) -> NestedTerms:
        """Opens the link to a nested supervisor that is about to start. Returns its first terms."""
        state = self._state
        own = state.timeout_of(subtask_id)
        own_end = workflow.now() + max(timedelta(seconds=own), limits.MIN_DEADLINE) if own else None
        terms = NestedTerms(
            report_key=str(workflow.uuid4()),
            grant=grant,
            deadline_at=self._deadline(own_end),
            root_has_finding=state.has_finding,
            lease=state.slots.lend(subtask_id, state.board.under_way).model_copy(),
        )
        link = self._links[terms.report_key] = _Link(subtask_id, workflow_id, own_end, terms)
        self._mailboxes[workflow_id].append(link.mailbox)
        state.nested.begin(subtask_id)
        return terms

    def close(self, report_key: str, run: NestedRun | None) -> None:
        """Closes the link to a nested supervisor that has ended; its late messages are ignored."""
        link = self._links.pop(report_key, None)
        if link is not None:
            self._state.slots.end_lease(link.subtask_id)
            self._state.nested.end(link.subtask_id, run)

    # --- reports ----------------------------------------------------------------------------------

    def take(self, report: NestedReport) -> bool:
        """Takes over a report. Returns False if it is a stranger's, or of an attempt that has ended."""
        link = self._links.get(report.report_key)
        if link is None:
            return False
        self._state.nested.report(link.subtask_id, report.run, report.waits)
        self._state.slots.leases[link.subtask_id].take(report.lease)
        self._state.slots.serve()
        return True

    async def fund(self, report: NestedReport) -> None:
        """Decides the request for budget in a report: raises the grant as far as there is budget, here or above.

        While other work holds grants it waits: some may be returned. Grants of runs that ask themselves are not.
        """
        link = self._links.get(report.report_key)
        if link is None or report.asked <= link.asked:
            return
        link.asked = report.asked
        budget = self._state.time_and_budget
        if self._parent is not None:
            await self._parent.more_budget(max(report.tokens, limits.LEAST_GRANT_TOKENS))
        await workflow.wait_condition(
            lambda: (
                not budget.ledger.exhausted
                or budget.ledger.open_grants <= sum(each.asked > each.terms.answered for each in self._links.values())
                or report.report_key not in self._links
            )
        )
        # One that has ended meanwhile has no grant any more: it gets nothing.
        shares = budget.shares(self._state.board.agents(self._state.request.max_parallel))
        grant = budget.ledger.top_up(link.account, shares, report.tokens) or link.terms.grant
        link.terms = link.terms.model_copy(update={"grant": grant, "answered": report.asked})
        self.update()

    # --- terms ------------------------------------------------------------------------------------

    def limits_changed(self) -> None:
        """Passes on that the deadline has moved."""
        for link in self._links.values():
            link.terms = link.terms.model_copy(update={"deadline_at": self._deadline(link.own_end)})
        self.update()

    def update(self) -> None:
        """Sends changed terms to the runs that have started."""
        if not self._links:
            return  # after every event of a run without nested ones
        self._state.slots.grow(self._state.board.under_way)
        for link in self._links.values():
            lease = self._state.slots.leases[link.subtask_id].model_copy(update={"returned": 0, "wanted": False})
            changes = {"root_has_finding": self._state.has_finding, "lease": lease}
            link.terms = link.terms.model_copy(update=changes)
            link.mailbox.post()

    def _deadline(self, own_end: datetime | None) -> datetime:
        left = (self._state.time_and_budget.work_until - workflow.now()) * limits.NESTED_DEADLINE_SHARE
        end = workflow.now() + max(left, limits.MIN_DEADLINE)
        return min(end, own_end) if own_end else end
