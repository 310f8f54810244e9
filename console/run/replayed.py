"""A supervisor where no Worker answers for it: its history, replayed in this process."""

from typing import Any, NamedTuple

from temporalio import workflow
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from console.run.run_handle import RunHandle
from supervision.contract.plan import Plan
from supervision.contract.status import TraceEvent


class Replayed(NamedTuple):
    """The plan and all events of a supervisor."""

    plan: Plan
    events: list[TraceEvent]


async def replayed(run: RunHandle, workflow_id: str) -> Replayed | None:
    """Returns a supervisor of a run as its history has it; None if the history does not replay with this program."""
    # these load the workflows with their contracts: 0.3 s for some commands only
    from runtime.workers import replayer
    from workflows.supervisor import SupervisorWorkflow

    seen: list[SupervisorWorkflow] = []
    events: list[TraceEvent] = []

    class Watched(WorkflowInboundInterceptor):
        async def execute_workflow(self, given: ExecuteWorkflowInput) -> Any:
            supervisor: SupervisorWorkflow = workflow.instance()
            events.extend(supervisor.trace().events)
            supervisor._run_state().trace.seen = events.append
            seen.append(supervisor)
            return await super().execute_workflow(given)

    class Watching(Interceptor):
        def workflow_interceptor_class(self, given: WorkflowInterceptorClassInput) -> type[Watched]:
            return Watched

    replays = replayer([SupervisorWorkflow], converter=run.client.data_converter, interceptors=[Watching()])
    history = await run.client.get_workflow_handle(workflow_id).fetch_history()
    done = await replays.replay_workflow(history, raise_on_replay_failure=False)
    return Replayed(seen[-1].plan(), events) if seen and done.replay_failure is None else None
