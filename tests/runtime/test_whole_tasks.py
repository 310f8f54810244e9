"""A query that brings events ahead of their workflow task: refused, so that every history replays."""

import asyncio
import time
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.worker import (
    Replayer,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)

from runtime.queues.whole_tasks import ASK_AGAIN, WholeTasks

RUNS = 12  # by chance the server gives a Worker the workflow task first, or the query


@workflow.defn
class Listening:
    """Begins an activity when another one is done, and a timer at a signal: in which order is in its history."""

    def __init__(self) -> None:
        self.heard = False

    @workflow.signal
    def hear(self) -> None:
        self.heard = True

    @workflow.query
    def state(self) -> bool:
        return self.heard

    async def _timed(self) -> None:
        await workflow.wait_condition(lambda: self.heard)
        await workflow.sleep(0.01)

    @workflow.run
    async def run(self, calls: str) -> None:
        timed = asyncio.create_task(self._timed())
        for _ in range(2):
            await workflow.execute_activity("step", task_queue=calls, start_to_close_timeout=timedelta(minutes=1))
        await timed


class Slow(UnsandboxedWorkflowRunner):
    """Takes its time with each activation, so that a signal can come meanwhile."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        activate = instance.activate

        def slowly(act: WorkflowActivation) -> WorkflowActivationCompletion:
            if not act.is_replaying:
                time.sleep(0.3)
            return activate(act)

        instance.activate = slowly  # type: ignore[method-assign]
        return instance


async def asked_after_a_restart(client: Client, queue: str, runner: WorkflowRunner) -> tuple[list[str], int]:
    """Returns what does not replay of runs that are queried, go on and hear a signal; and how many queries failed."""
    released = asyncio.Event()

    @activity.defn
    async def step() -> None:
        await released.wait()

    def workflows() -> Worker:
        return Worker(client, task_queue=queue, workflows=[Listening], workflow_runner=runner)

    handles: list[WorkflowHandle[Any, Any]] = []
    async with Worker(client, task_queue=f"{queue}-calls", activities=[step]):
        async with workflows():
            for number in range(RUNS):
                run_id = f"{queue}-{number}"
                handles.append(
                    await client.start_workflow(Listening.run, f"{queue}-calls", id=run_id, task_queue=queue)
                )
            await asyncio.gather(*(handle.query(Listening.state) for handle in handles))
        asked = [asyncio.create_task(handle.query(Listening.state)) for handle in handles]
        await asyncio.sleep(0.5)  # nothing shows that a query waits at the server
        released.set()
        for handle in handles:
            await are_done(handle)
        async with workflows():
            answered = asyncio.gather(*asked, return_exceptions=True)
            await asyncio.gather(*(handle.signal(Listening.hear) for handle in handles))
            await asyncio.gather(*(handle.result() for handle in handles))
            refused = [error for error in await answered if isinstance(error, BaseException)]
    assert {str(error) for error in refused} <= {ASK_AGAIN}
    assert all(isinstance(error, WorkflowQueryFailedError) for error in refused)
    replayer = Replayer(workflows=[Listening], workflow_runner=UnsandboxedWorkflowRunner())
    problems = []
    for handle in handles:
        result = await replayer.replay_workflow(await handle.fetch_history(), raise_on_replay_failure=False)
        problems += [str(result.replay_failure)] if result.replay_failure else []
    return problems, len(refused)


async def are_done(handle: WorkflowHandle[Any, Any]) -> None:
    """Returns when the run's activity is done, which nobody has told its workflow yet."""
    while (await handle.describe()).raw_description.pending_activities:
        await asyncio.sleep(0.01)


async def test_a_query_after_a_restart_leaves_a_history_that_replays(client: Client, run_id: str) -> None:
    problems, refused = await asked_after_a_restart(client, run_id, WholeTasks(Slow()))
    assert problems == []
    assert refused > 0
