"""One attempt at one subtask as a workflow: its input, its end, its trace.

The work is in `tool_loop/`.
"""

import asyncio
import contextlib

from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from temporal_supervisor.supervision.base.errors import ErrorKind
    from temporal_supervisor.supervision.contract.result import Problem
    from temporal_supervisor.supervision.contract.status import TracePage
    from temporal_supervisor.supervision.run.decisions import Instructions

    from workflows.calls.activity_calls import CallFailed
    from workflows.children.child_contracts import WorkerAgentInput, WorkerAgentResult
    from workflows.tool_loop.agent_attempt import AgentAttempt
    from workflows.tool_loop.loop import ToolLoop


@workflow.defn
class WorkerAgentWorkflow:
    """The tool loop of one subtask attempt.

    Fails with TurnLimit, Refused, Timeout or ModelUnavailable. If it can be resumed it fails with
    BudgetExhausted, CircuitOpen, Paused or an account's error; otherwise with the error of the
    provider or of the artifact store.
    """

    @workflow.init
    def __init__(self, agent: WorkerAgentInput | None = None, *surplus: object) -> None:
        """Reads the input.

        A bad input is rejected by `run`: an error raised here would block the workflow.
        """
        self._attempt: AgentAttempt | None = None
        with contextlib.suppress(ValueError):
            self._attempt = AgentAttempt(WorkerAgentInput.model_validate(agent))

    @workflow.run
    async def run(
        self, agent: WorkerAgentInput | None = None, *surplus: object
    ) -> WorkerAgentResult:
        """Works until there is a finding; a cancelled worker agent returns a partial result."""
        attempt = self._attempt
        if attempt is None or workflow.info().parent is None:
            raise ApplicationError(
                "worker agents are started by a SupervisorWorkflow only",
                type=ErrorKind.INVALID_REQUEST,
                non_retryable=True,
            )
        try:
            async with asyncio.timeout(attempt.time_left):
                return await ToolLoop(attempt).run()
        except TimeoutError as error:
            why = Problem(type=ErrorKind.TIMEOUT, message="the subtask's own time is over")
            raise attempt.failure(why) from error
        except CallFailed as error:
            raise attempt.failure(error.problem, error.retry_after) from error
        except asyncio.CancelledError:
            return attempt.stopped()

    @workflow.signal
    def instructions(self, instructions: object = None, *surplus: object) -> None:
        """Instructions of people.

        An invalid message is ignored, as an error would block the workflow.
        """
        try:
            new = Instructions.model_validate(instructions)
        except ValueError:
            return
        if self._attempt is not None:
            self._attempt.follow(new)

    @workflow.query
    def trace(self, cursor: int = 0) -> TracePage:
        """The turns and tool calls of this run of the workflow, after a cursor."""
        return self._attempt.trace.page(cursor) if self._attempt else TracePage()
