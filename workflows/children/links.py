"""The links between a supervisor and its children: waits and spending go up, instructions go down.

A nested supervisor gets all that it may use when it starts. While it works, it reports the number
of its waits for people and its spending, and it hears the instructions of people to its root.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

from temporalio import workflow
from temporalio.exceptions import FailureError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.text import size
    from temporal_supervisor.supervision.contract.finding import Finding
    from temporal_supervisor.supervision.contract.progress import NestedRun
    from temporal_supervisor.supervision.contract.result import RunResult
    from temporal_supervisor.supervision.grounding.citations import with_valid_marks
    from temporal_supervisor.supervision.results.answer import answer_record
    from temporal_supervisor.supervision.run.decisions import Instructions
    from temporal_supervisor.supervision.run.nested_runs import spent_step
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import in_background
    from workflows.children.child_contracts import NestedReport, NestedResult


T = TypeVar("T")


@dataclass
class Mailbox(Generic[T]):
    """Sends a workflow the latest value when its `change_key` differs from the last one sent.

    There is one signal at a time, because two could overtake each other. The workflow is signalled
    by its id, once that is known: a signal through a child's handle is lost after this run was
    reset. `arrived` is called after each signal. `stamped` marks a value when it is sent, so that a
    repeated delivery is recognised.
    """

    signal: str
    latest: Callable[[], T]
    sent: T
    arrived: Callable[[], None]
    workflow_id: str = ""
    change_key: Callable[[T], object] = lambda value: value
    stamped: Callable[[T], T] = lambda value: value
    _sending: asyncio.Task[None] | None = None

    def open(self, workflow_id: str) -> None:
        """Opens the way to a workflow that has started."""
        self.workflow_id = workflow_id

    def send(self) -> None:
        """Begins to send the latest value, unless it was sent already or a signal is on its way."""
        is_sending = self._sending is not None and not self._sending.done()
        if is_sending or not self.workflow_id:
            return
        latest = self.latest()
        if self.change_key(latest) != self.change_key(self.sent):
            self.sent = latest
            self._sending = in_background(self._signal(latest))

    async def _signal(self, value: T) -> None:
        try:
            handle = workflow.get_external_workflow_handle(self.workflow_id)
            await handle.signal(self.signal, self.stamped(value))
        except FailureError:
            workflow.logger.debug("%s has ended and takes no %s", self.workflow_id, self.signal)
        # The value may have changed while the signal was on its way.
        self.arrived()


class ParentLink:
    """Reports the waits and the spending of a nested run to the supervisor above."""

    def __init__(self, state: RunState, issue_soon: Callable[[], None]) -> None:
        """`issue_soon` has the outbox call `report` again."""
        self._state = state
        info = workflow.info()
        assert info.parent is not None  # only a parent can start a nested run
        # Nothing waits and nothing is spent until it says otherwise.
        nothing = NestedReport(workflow_id=info.workflow_id)
        parent_id = info.parent.workflow_id
        self._reports = Mailbox(
            "nested_report",
            self._latest,
            sent=nothing,
            arrived=issue_soon,
            workflow_id=parent_id,
            change_key=self._change_key,
        )

    def report(self) -> None:
        """Sends a report if enough has changed."""
        self._reports.send()

    def _latest(self) -> NestedReport:
        state = self._state
        return NestedReport(
            workflow_id=workflow.info().workflow_id,
            waits=state.people_awaited,
            waits_for_people=state.waits_for_people,
            spent=state.usage + state.nested.spent,
        )

    def _change_key(self, report: NestedReport) -> object:
        budget = self._state.time_and_budget.budget
        return report.waits, report.waits_for_people, spent_step(report.spent, budget.tokens)


class ChildLinks:
    """Sends people's instructions to the children of a supervisor, to nested runs also the time.

    There may be a thousand children: only those that may have news are looked at.
    """

    def __init__(self, state: RunState, issue_soon: Callable[[], None]) -> None:
        """`issue_soon` has the outbox call `send_news`."""
        self._state = state
        self._issue_soon = issue_soon
        self._mailboxes: dict[str, Mailbox[Instructions]] = {}  # by the child's id
        self._to_tell: dict[str, None] = {}  # likewise

    def register(self, workflow_id: str, subtask_id: str, *, is_nested: bool) -> Instructions:
        """Returns the instructions for a child that is about to start.

        Later instructions are sent to it.
        """
        latest: Callable[[], Instructions]
        if is_nested:
            began = self._state.time_and_budget.elapsed
            latest = partial(self._with_deadline, subtask_id, began)
        else:
            latest = partial(self._state.steering.instructions, subtask_id)
        instructions = latest()
        again = partial(self._mark_news_for, workflow_id)
        # Its own id is set once it has started: until then nothing is sent.
        self._mailboxes[workflow_id] = Mailbox(
            "instructions", latest, sent=instructions, arrived=again, stamped=_stamped
        )
        return instructions

    def _with_deadline(self, subtask_id: str, began: timedelta) -> Instructions:
        """Returns the instructions for a nested run that began at `began` of the run's clock."""
        state = self._state
        instructions = state.steering.instructions(subtask_id)
        if state.time_and_budget.held:
            return instructions
        seconds = state.timeout_of(subtask_id)
        own = None if seconds is None else timedelta(seconds=seconds)
        deadline_at = state.time_and_budget.nested_deadline(began, own)
        return instructions.model_copy(update={"deadline_at": deadline_at})

    def mark_started(self, workflow_id: str) -> None:
        """Marks a child as started, and sends it the instructions that came meanwhile."""
        mailbox = self._mailboxes.get(workflow_id)
        if mailbox is not None:
            mailbox.open(workflow_id)
            self._mark_news_for(workflow_id)

    def remove(self, workflow_id: str) -> None:
        """Removes a child that has ended."""
        self._mailboxes.pop(workflow_id, None)

    def mark_news(self) -> None:
        """Marks all children as ones with news: people's words, a pause, the time."""
        for workflow_id in self._mailboxes:
            self._mark_news_for(workflow_id)

    def _mark_news_for(self, workflow_id: str) -> None:
        self._to_tell[workflow_id] = None
        self._issue_soon()

    def send_news(self) -> None:
        """Begins to send instructions to the children that may have news."""
        to_tell, self._to_tell = self._to_tell, {}
        for workflow_id in to_tell:
            mailbox = self._mailboxes.get(workflow_id)
            if mailbox is not None:
                mailbox.send()


def _stamped(instructions: Instructions) -> Instructions:
    return instructions.model_copy(update={"sent_at": workflow.now()})


def nested_result(
    state: RunState, whole: RunResult, fitted: RunResult, record_ref: str
) -> NestedResult:
    """Returns the result of a nested run for the supervisor above.

    `whole` and its record are in the store; `fitted` is the part of it that is returned.
    """
    below = [report.nested for report in state.board.reports() if report.nested]
    nested = NestedRun(
        spent=state.usage,
        status=whole.status,
        counts=sum((run.counts for run in below), state.board.counts()),
        named=state.board.named_count + state.nested.subtasks,
        result_ref=whole.result_ref,
        trace_ref=whole.trace_ref,
    )
    return NestedResult(
        finding=_answer_as_finding(state, whole, record_ref),
        nested=nested,
        stopped=state.phase == "cancelled",
        turns=sum(report.turns for report in whole.subtasks),
        effects=state.work_done.effects[-limits.EFFECTS_TOLD :],
        was_denied=state.work_done.was_denied,
        labels=state.work_done.labels,
        **dict(fitted),
    )


def _answer_as_finding(state: RunState, whole: RunResult, record_ref: str) -> Finding | None:
    """Returns the answer of a nested run as a finding; its gaps become limitations.

    None for a run that failed.
    """
    if not whole.answer_ref or state.phase == "failed":
        return None
    # Its marks name its own subtasks: above, [t1] is another one.
    answer = with_valid_marks(whole.answer, {subtask.id for subtask in state.plan.subtasks}, set())
    own: dict[str, object] = {"summary": answer, "labels": state.work_done.labels}
    if state.answer.current.is_findings:
        own["outcome"] = "partial"
    record = answer_record(whole).model_copy(update=own)
    return Finding(
        **record.model_dump(exclude={"checked", "evidence"}),
        text_ref=whole.answer_ref,
        text_bytes=size(whole.answer),
        artifacts=whole.artifacts[: limits.FINDING_SOURCES],
        record_ref=record_ref,
    )
