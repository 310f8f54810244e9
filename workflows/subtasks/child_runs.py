"""A child workflow from its start to its end: a stop always reaches it, and a reset finds it again."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ChildQuestion, ChildRef
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.errors import ErrorKind
    from workflows.background import results_are_in
    from workflows.calls import run_calls
    from workflows.child_contracts import WorkerAgentResult
    from workflows.failures import CallFailed, cancelled, details_of, problem_of
    from workflows.run_context import RunContext

Start = Callable[[str, WorkflowIDReusePolicy], Coroutine[Any, Any, workflow.ChildWorkflowHandle[Any, Any]]]

_CANCELLED = Problem(type=ErrorKind.CANCELLED, message="somebody cancelled its worker agent")
_LOST = Problem(type=ErrorKind.UNEXPECTED, message="its worker agent was terminated")


@dataclass(frozen=True)
class AttemptOutcome:
    """How an attempt of a subtask ended. `problem` is None if it succeeded or the run stopped it: `result` says which.

    `earlier`: this is how it ended before the run was reset; one that was stopped then goes on now. `model` is the
    one that it worked with.
    """

    result: WorkerAgentResult
    problem: Problem | None = None
    earlier: bool = False
    model: str = ""

    @property
    def finding(self) -> Finding | None:
        """The finding of an attempt that succeeded; that of another one is what it had, and is in its result."""
        return self.result.finding if self.problem is None and not self.result.stopped else None


def stopped(result: WorkerAgentResult | None = None) -> AttemptOutcome:
    """Returns the outcome of an attempt that was stopped, with what it had."""
    return AttemptOutcome((result or WorkerAgentResult()).model_copy(update={"stopped": True}))


async def run_child(
    context: RunContext,
    workflow_id: str,
    number: int,
    start: Start,
    read: Callable[[object], WorkerAgentResult],
    join: Callable[[ChildRef], None] = lambda _: None,
) -> AttemptOutcome:
    """Runs a child to its end; when the caller is cancelled, the child is stopped and what it had is returned.

    `number` counts the starts under this id, from 0. `read` takes the child's result, or the details of its error.
    `join` takes a child that is not started, because it was at work before a reset.
    The caller that is cancelled once more does not wait for the child any longer: its cost comes from the journal.
    """
    child = _Child(context, workflow_id, number, start, read, join)
    try:
        # Shielded here and below: a cancellation must not end the child's task, on which its start or end depends.
        return await asyncio.shield(child.life)
    except asyncio.CancelledError:
        try:
            await child.cancel()
            outcome = await asyncio.shield(child.life)  # whole, if it had finished before the cancellation came
        except asyncio.CancelledError:
            consumed = await child.consumed()
            await results_are_in()
            if not child.life.done():
                return stopped(consumed)
            outcome = child.life.result()  # it came meanwhile, with this, or together with the second cancellation
    return stopped(outcome.result) if outcome.problem or outcome.result.stopped else outcome


class _Child:
    """A child from the command that starts it to its end, in a task of its own.

    A cancel that is sent before the server confirmed the start gets lost. So `cancel` waits for that, and a start
    that is under way is never given up. The child is cancelled by its id: a cancel through its handle reaches only the
    first execution, and a worker agent that has continued as new would go on.
    """

    def __init__(
        self,
        context: RunContext,
        workflow_id: str,
        number: int,
        start: Start,
        read: Callable[[object], WorkerAgentResult],
        join: Callable[[ChildRef], None],
    ) -> None:
        self._context = context
        self._id = workflow_id
        self._number = number
        self._start = start
        self._read = read
        self._join = join
        self._ref: ChildRef | None = None
        self.life = asyncio.create_task(self._live())

    async def cancel(self) -> None:
        """Asks the child to stop, as soon as it can be reached."""
        await workflow.wait_condition(lambda: self._ref is not None or self.life.done())
        if self.life.done():
            return
        try:
            await workflow.get_external_workflow_handle(self._id).cancel()
        except FailureError:
            workflow.logger.debug("child %s had ended before it was cancelled", self._id)

    async def consumed(self) -> WorkerAgentResult:
        """Returns what the child consumed by the journal of its calls: it can't say so itself."""
        if self._ref is None:
            return WorkerAgentResult()
        try:
            consumed = await run_calls.child_consumed(self._ref)
        except CallFailed as failed:
            workflow.logger.warning("the cost of %s is not known: %s", self._id, failed)
            return WorkerAgentResult()
        return WorkerAgentResult(usage=consumed.usage, turns=consumed.turns)

    async def _live(self) -> AttemptOutcome:
        try:
            handle = await self._started()
            if handle is None:
                return await self._joined()
            result = self._read(await handle)
        except FailureError as error:
            if cancelled(error):
                return AttemptOutcome(await self.consumed(), _CANCELLED)
            details = details_of(error)
            result = self._read(details) if isinstance(details, dict) else await self.consumed()
            return AttemptOutcome(result, problem_of(error))
        return AttemptOutcome(result, _CANCELLED if result.stopped else None)

    async def _started(self) -> workflow.ChildWorkflowHandle[Any, Any] | None:
        """Starts the child. Returns None if this run had started it before a reset: nothing is done twice."""
        state = self._context.state
        try:
            # A reset is told after the messages of its workflow task, which it brings again.
            if state.resets or state.heard_at == workflow.now():
                return await self._begin(self._id, WorkflowIDReusePolicy.REJECT_DUPLICATE)
            return await self._begin(self._id)
        except WorkflowAlreadyStartedError:
            if state.resets and await self._find():
                return None
        try:
            return await self._begin(self._id)
        except WorkflowAlreadyStartedError:
            # Ids of children can be guessed: whoever has taken this one must not be able to end the subtask.
            return await self._begin(f"{self._id}.{workflow.random().getrandbits(40)}")

    async def _begin(
        self, workflow_id: str, reuse: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    ) -> workflow.ChildWorkflowHandle[Any, Any]:
        handle = await self._start(workflow_id, reuse)
        self._id = workflow_id
        first_run_id = handle.first_execution_run_id or ""
        self._ref = ChildRef(run=self._context.run, workflow_id=workflow_id, first_run_id=first_run_id)
        return handle

    async def _find(self) -> bool:
        """True if an execution of this run before a reset had started this child.

        That one may have started it right after it had asked itself: an answer from before a reset is asked for anew.
        """
        question = ChildQuestion(run=self._context.run, workflow_id=self._id, start=self._number)
        asked_after = None
        while self._ref is None and asked_after != self._context.state.resets:
            asked_after = self._context.state.resets
            try:
                self._ref = await run_calls.find_child(question)
            except CallFailed as failed:
                workflow.logger.warning("%s can't be looked up: %s", self._id, failed)
        return self._ref is not None

    async def _joined(self) -> AttemptOutcome:
        """Awaits the child that was started before a reset."""
        assert self._ref is not None
        self._join(self._ref)
        end = await run_calls.await_child(self._ref, f"{self._id}: at work since before the reset")
        if end.given_up:
            return AttemptOutcome(await self.consumed(), _LOST, earlier=True)
        if end.lost:
            result = (await self.consumed()).model_copy(update={"stopped": True})
        else:
            result = self._read(end.value) if isinstance(end.value, dict) else WorkerAgentResult()
        return AttemptOutcome(result, end.problem, earlier=True)
