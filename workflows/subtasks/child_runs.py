"""A child workflow from its start to its end: a stop always reaches it, and a reset ends what it would meet again."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.exceptions import FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ChildRef
    from supervision.base.errors import ErrorKind
    from supervision.contract.finding import Finding
    from supervision.contract.result import Problem
    from supervision.contract.usage import Usage
    from workflows.calls import run_calls
    from workflows.children.child_contracts import WorkerAgentResult
    from workflows.calls.failures import CallFailed, cancelled, details_of, problem_of
    from workflows.run_context import let_ready_tasks_finish, RunContext

Start = Callable[[str], Coroutine[Any, Any, workflow.ChildWorkflowHandle[Any, Any]]]

_CANCELLED = Problem(type=ErrorKind.CANCELLED, message="its worker agent was cancelled")
_MAX_NAMESAKES = 100  # workflows of strangers that may stand in the way of one child


@dataclass(frozen=True)
class Booked:
    """What the supervisor has booked of the earlier executions of a child, which began under the same id."""

    usage: Usage = Usage()
    turns: int = 0

    def plus(self, result: WorkerAgentResult) -> "Booked":
        """Returns the same with one more execution."""
        return Booked(self.usage + result.usage, self.turns + result.turns)


@dataclass(frozen=True)
class AttemptOutcome:
    """How an attempt of a subtask ended. `problem` is None if it succeeded or the run stopped it: `result` says which.

    `model` is the one that it worked with.
    """

    result: WorkerAgentResult
    problem: Problem | None = None
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
    booked: Booked,
    start: Start,
    read: Callable[[object], WorkerAgentResult],
) -> AttemptOutcome:
    """Runs a child to its end; when the caller is cancelled, the child is stopped and what it had is returned.

    `read` takes the child's result, or the details of its error. A caller that is cancelled a second time does not
    wait for the child any longer: its cost then comes from the journal, less what is `booked`.
    """
    child = _Child(context, workflow_id, booked, start, read)
    try:
        # Shielded here and below: a cancellation must not end the child's task, on which its start or end depends.
        return await asyncio.shield(child.life)
    except asyncio.CancelledError:
        try:
            await child.cancel()
            outcome = await asyncio.shield(child.life)  # whole, if it had finished before the cancellation came
        except asyncio.CancelledError:
            consumed = await child.consumed()
            await let_ready_tasks_finish()
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
        booked: Booked,
        start: Start,
        read: Callable[[object], WorkerAgentResult],
    ) -> None:
        self._id = workflow_id
        self._run = context.run
        self._booked = booked
        self._start = start
        self._read = read
        self._is_started = False
        self.life = asyncio.create_task(self._live())

    async def cancel(self) -> None:
        """Asks the child to stop, as soon as it can be reached."""
        await workflow.wait_condition(lambda: self._is_started or self.life.done())
        if self.life.done():
            return
        try:
            await workflow.get_external_workflow_handle(self._id).cancel()
        except FailureError:
            workflow.logger.debug("child %s had ended before it was cancelled", self._id)

    async def consumed(self) -> WorkerAgentResult:
        """Returns what the child consumed by the journal of its calls: it can't say so itself."""
        if not self._is_started:
            return WorkerAgentResult()
        try:
            consumed = await run_calls.child_consumed(ChildRef(run=self._run, workflow_id=self._id))
        except CallFailed as failed:
            workflow.logger.warning("the cost of %s is not known: %s", self._id, failed)
            return WorkerAgentResult()
        return WorkerAgentResult(
            usage=consumed.usage - self._booked.usage, turns=max(0, consumed.turns - self._booked.turns)
        )

    async def _live(self) -> AttemptOutcome:
        try:
            handle = await self._started()
            result = self._read(await handle)
        except FailureError as error:
            if cancelled(error):
                return AttemptOutcome(await self.consumed(), _CANCELLED)
            details = details_of(error)
            result = self._read(details) if isinstance(details, dict) else await self.consumed()
            return AttemptOutcome(result, problem_of(error))
        return AttemptOutcome(result, _CANCELLED if result.stopped else None)

    async def _started(self) -> workflow.ChildWorkflowHandle[Any, Any]:
        """Starts the child.

        An open workflow of the same id is the child of an execution before a reset, which is ended, or a stranger's:
        ids of children can be guessed, and a stranger must not be able to end the subtask. Then the id is another one.
        """
        wanted, number = self._id, 0
        while True:
            try:
                handle = await self._start(self._id)
            except WorkflowAlreadyStartedError:
                if number > _MAX_NAMESAKES:
                    raise
                if not await self._end_earlier():
                    number += 1
                    self._id = f"{wanted}.{number}x"
                continue
            self._is_started = True
            return handle

    async def _end_earlier(self) -> bool:
        """True if the id is free now."""
        try:
            return await run_calls.end_earlier_child(ChildRef(run=self._run, workflow_id=self._id))
        except CallFailed as failed:
            workflow.logger.warning("%s can't be looked up: %s", self._id, failed)
            return False
