"""The child workflows of a supervisor: worker agents and nested supervisors.

A stop always reaches the child, and a reset ends the children of the earlier execution.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, TypeAlias

from temporalio import workflow
from temporalio.common import Priority, WorkflowIDReusePolicy
from temporalio.exceptions import FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from activities.contracts.run_contracts import ChildRef
    from activities.run.run_activities import RunActivities
    from temporal_supervisor.supervision.base import limits
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.base.text import label
    from temporal_supervisor.supervision.contract.request import RunRequest
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.team import RoleCard
    from temporal_supervisor.supervision.run.decisions import Instructions
    from temporal_supervisor.supervision.run.run_state import RunState

    from workflows.background import let_ready_tasks_finish
    from workflows.calls import activity_calls
    from workflows.calls.activity_calls import CallFailed, details_of, problem_of
    from workflows.children.child_contracts import NestedInput, WorkerAgentInput, WorkerAgentResult
    from workflows.children.links import ChildLinks
    from workflows.run.run_terms import RunTerms
    from workflows.worker_agent import WorkerAgentWorkflow

_Handle: TypeAlias = "workflow.ChildWorkflowHandle[Any, Any]"

_CANCELLED = Problem(type=ErrorKind.CANCELLED, message="its worker agent was cancelled")
# Of workflow tasks; a run has the middle one, 3, unless its caller gives it another. Lower ones
# come first.
NESTED_PRIORITY = 4
AGENTS_PRIORITY = 5
# A message to the server holds 4 MiB, so 12 inputs of 256 KiB, the most that one may have.
STARTS_AT_ONCE = 12
_LABEL_BYTES = 64  # a child's label in the timeline: longer ones run out of the picture


@dataclass(frozen=True)
class ChildStart:
    """The start of a child: its id, the role that works, and its input.

    A nested run has a `request`, too. `booked` is the usage of earlier executions with the same id.
    """

    workflow_id: str
    role: RoleCard
    given: WorkerAgentInput | NestedInput
    booked: WorkerAgentResult
    request: RunRequest | None = None

    @property
    def subtask_id(self) -> str:
        """The subtask that the child works on."""
        return self.given.brief.subtask_id

    @property
    def is_nested(self) -> bool:
        """True for the supervisor of a team."""
        return isinstance(self.given, NestedInput)

    @property
    def worker(self) -> str:
        """The role, or the team, as the timeline names it."""
        return f"team {self.role.team}" if self.is_nested else self.role.name

    async def begin(self, instructions: Instructions, summary: str) -> _Handle:
        """Starts the child with people's instructions. Returns once the server has confirmed it."""
        given = self.given.with_instructions(instructions)
        # By its name, as the supervisor's module imports this one.
        child: Any = "SupervisorWorkflow" if self.is_nested else WorkerAgentWorkflow.run
        handle: _Handle = await workflow.start_child_workflow(
            child,
            args=[given] if self.request is None else [self.request, given],
            id=self.workflow_id,
            result_type=WorkerAgentResult,
            # An open workflow of the same id is the child that an execution before a reset left.
            id_reuse_policy=WorkflowIDReusePolicy.TERMINATE_IF_RUNNING,
            # After the loss of a Worker the supervisors replay first: nothing new begins without
            # them.
            priority=Priority(priority_key=NESTED_PRIORITY if self.is_nested else AGENTS_PRIORITY),
            static_summary=summary,
        )
        return handle


class ChildRuns:
    """Runs the children of a supervisor, starting a few at once; `links` sends them messages."""

    def __init__(self, terms: RunTerms, state: RunState, links: ChildLinks) -> None:
        self.run = terms.run
        self.links = links
        self.starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self._state = state

    async def run_child(self, start: ChildStart) -> WorkerAgentResult:
        """Runs a child. Returns its result; the finding of a nested run is its answer."""
        child, nested = _Child(self, start), self._state.nested
        if not isinstance(start.given, NestedInput):
            return await child.run()

        nested.begin(start.workflow_id, start.subtask_id, start.given.grant)
        result = WorkerAgentResult()
        try:
            result = await child.run()
        finally:
            nested.end(start.workflow_id, result.nested)
        return result

    def label_of(self, start: ChildStart) -> str:
        """Returns the label of a child in the timeline: `t1 · researcher: Find the rates`."""
        description = self._state.board.subtask(start.subtask_id).description
        return label(f"{start.subtask_id} · {start.worker}: {description}", _LABEL_BYTES)


@dataclass
class _Child:
    """A child, from the command that starts it to its end, in a task of its own.

    A cancel that is sent before the server confirmed the start gets lost. So `cancel` waits for the
    confirmation, and a start that is under way is never abandoned. The child is cancelled by its
    id: a cancel through its handle reaches only the first execution, and misses a worker agent that
    has continued as new.
    """

    runs: ChildRuns
    start: ChildStart
    is_started: bool = False
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        """Begins the task."""
        self.life = asyncio.create_task(self._run_to_end())

    async def run(self) -> WorkerAgentResult:
        """Returns the child's result.

        If the caller is cancelled, the child is stopped and its partial result is returned. If the
        caller is cancelled a second time, it no longer waits for the child, and its cost is read
        from the journal.
        """
        try:
            # Shielded here and below: a cancellation must not end the child's task, on which its
            # start or end depends.
            return await asyncio.shield(self.life)
        except asyncio.CancelledError:
            result = await self._result_after_stop()
        finally:
            self.runs.links.remove(self.start.workflow_id)
        # Whole, if it had finished before the cancellation came.
        return result.as_stopped() if result.problem or result.stopped else result

    async def _result_after_stop(self) -> WorkerAgentResult:
        """Stops the child. Returns its result, or its usage if the caller is cancelled again."""
        try:
            await self.cancel()
            return await asyncio.shield(self.life)
        except asyncio.CancelledError:
            await let_ready_tasks_finish()
        if not self.life.done():
            consumed = await self.consumed()
            await let_ready_tasks_finish()
            if not self.life.done():
                return consumed.as_stopped()
        # It came meanwhile, or together with the second cancellation.
        return self.life.result()

    async def cancel(self) -> None:
        """Asks the child to stop, as soon as it can be reached."""
        child_id = self.start.workflow_id
        self.is_cancelled = True
        await workflow.wait_condition(lambda: self.is_started or self.life.done())
        if self.life.done():
            return
        try:
            await workflow.get_external_workflow_handle(child_id).cancel()
        except FailureError:
            workflow.logger.debug("child %s had ended before it was cancelled", child_id)

    async def consumed(self) -> WorkerAgentResult:
        """Returns the child's usage by the journal, for a child that cannot report it."""
        if not self.is_started:
            return WorkerAgentResult()
        child_id, booked = self.start.workflow_id, self.start.booked
        try:
            child = ChildRef(run=self.runs.run, workflow_id=child_id)
            summary = f"cost of {child_id}"
            consumed = await activity_calls.store_call(
                RunActivities.child_consumed,
                limits.PUBLISH_TIMEOUT,
                summary,
                child,
                patience=limits.CLOSING_PATIENCE if self.is_cancelled else None,
            )
        except CallFailed as failed:
            workflow.logger.warning("the cost of %s is not known: %s", child_id, failed)
            return WorkerAgentResult()
        return WorkerAgentResult(
            usage=consumed.usage - booked.usage,
            turns=max(0, consumed.turns - booked.turns),
        )

    async def _run_to_end(self) -> WorkerAgentResult:
        runs, start = self.runs, self.start
        try:
            async with runs.starts:
                if self.is_cancelled:  # while others started
                    return WorkerAgentResult(stopped=True)
                # As they are now: the run may have been paused meanwhile.
                instructions = runs.links.register(
                    start.workflow_id, start.subtask_id, is_nested=start.is_nested
                )
                handle = await start.begin(instructions, runs.label_of(start))
            self.is_started = True
            runs.links.mark_started(start.workflow_id)
            result: WorkerAgentResult = await handle
        except FailureError as error:
            is_cancelled = is_cancelled_exception(error)
            details = None if is_cancelled else details_of(error)
            if isinstance(details, dict):
                result = WorkerAgentResult.model_validate(details)
            else:
                result = await self.consumed()
            problem = _CANCELLED if is_cancelled else problem_of(error)
            return result.model_copy(update={"problem": problem})
        return result.model_copy(update={"problem": _CANCELLED if result.stopped else None})
