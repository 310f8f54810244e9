"""The Temporal Workers of a process, with queues, workflows and activities, and replayers."""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.converter import DataConverter
from temporalio.worker import (
    FixedSizeSlotSupplier,
    HandleQueryInput,
    Interceptor,
    Replayer,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerDeploymentConfig,
    WorkerTuner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from temporal_supervisor.runtime.payloads import data_converter
from temporal_supervisor.runtime.sdk_patches import (
    TaskSlots,
    UpdatesLast,
    WholeTasks,
    leave_plain_payloads,
)
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.queues import (
    DEPLOYMENT,
    MODEL_QUEUE,
    OUTWARD_QUEUE,
    TOOLS_QUEUE,
    WORKFLOW_QUEUE,
    pool_queue,
    worker_identity,
)

_CACHED_TASK_SLOTS = 10  # polls that wait hold one each: with fewer a task waits for a poll
# They share one interpreter: side by side, large replays would outlast their ten seconds.
_REPLAY_SLOTS = 3
_NO_BUILD = "unversioned"  # without a name the SDK makes one by hashing all modules: 0.4 s of CPU

WorkerRole = Literal["workflows", "model", "tools", "outward"]
ALL_ROLES: tuple[WorkerRole, ...] = ("workflows", "model", "tools", "outward")
POOL_ROLES = ("model", "tools")

_PASSED_THROUGH = (
    "activities",
    "temporal_supervisor",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "obstore",
)


def workflow_runner(*, strict: bool = True) -> WorkflowRunner:
    """Returns the runner of workflow code, which uses the SDK's sandbox if `strict`.

    Tests use the sandbox. It loads modules for each workflow and is entered for each payload, which
    costs a fifth of a Worker's CPU.
    """
    if not strict:
        return UpdatesLast(UnsandboxedWorkflowRunner())
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*_PASSED_THROUGH)
    return UpdatesLast(SandboxedWorkflowRunner(restrictions))


def replayer(
    workflows: Sequence[type],
    *,
    converter: DataConverter = data_converter,
    strict: bool = False,
    interceptors: Sequence[Interceptor] = (),
) -> Replayer:
    """Returns a replayer that runs workflows as Workers do; for `strict` see `workflow_runner`."""
    return Replayer(
        workflows=workflows,
        data_converter=converter,
        workflow_runner=workflow_runner(strict=strict),
        interceptors=interceptors,
        build_id=_NO_BUILD,
        debug_mode=True,  # a workflow task may take its time on a busy machine
    )


def workers(
    client: Client,
    roles: Sequence[WorkerRole],
    *,
    workflows: Sequence[type],
    run_activities: Sequence[Callable[..., Any]],
    model_activities: Sequence[Callable[..., Any]],
    tool_activities: Sequence[Callable[..., Any]],
    interceptors: Sequence[Interceptor],
    model_rate: float | None,
    model_slots: int,
    pool: str | None,
    strict_sandbox: bool,
    build_id: str | None,
    store_id: str | None,
    teams: str,
) -> list[Worker]:
    """Returns one Worker for each queue.

    Workflow processes also run tools: on their workflows' own queue these start eagerly. A process
    of a `pool` serves only the pool's queue, with tools and, if "model" is one of its roles, model
    calls. `model_rate` limits model calls per second in a queue, unless the queue itself is
    configured. With a `build_id` runs stay with the Workers of the build that began them. The
    identity of each Worker contains the `store_id` and the mark of its folders of `teams`, so that
    programs with others notice.
    """
    leave_plain_payloads()
    sys.setswitchinterval(limits.SWITCH_INTERVAL.total_seconds())
    common: dict[str, Any] = {
        "client": client,
        "interceptors": [*interceptors, ShownDetails()],
        "graceful_shutdown_timeout": limits.GRACEFUL_SHUTDOWN,
        "max_heartbeat_throttle_interval": limits.HEARTBEAT_THROTTLE,
        "default_heartbeat_throttle_interval": limits.HEARTBEAT_THROTTLE,
        "identity": worker_identity(client.identity, store_id, teams),
        **_build_options(build_id),
    }
    of_tools = {
        **common,
        "activities": tool_activities,
        "max_concurrent_activities": limits.ACTIVITY_SLOTS,
    }
    of_model = {
        **common,
        "activities": model_activities,
        "max_task_queue_activities_per_second": model_rate,
        # Calls beyond these slots stay in the queue, where the server hands them out by run.
        "max_concurrent_activities": model_slots,
    }
    has_model = "model" in roles
    if pool:
        own = of_tools
        if has_model:
            own = {**of_model, "activities": [*model_activities, *tool_activities]}
        return [Worker(**own, task_queue=pool_queue(pool))]

    serving: list[Worker] = []
    if "workflows" in roles:
        activities = [*run_activities, *tool_activities]
        if has_model:
            activities += model_activities
        worker = _workflow_worker(common, workflows, activities, strict_sandbox=strict_sandbox)
        serving.append(worker)
    if has_model:
        serving.append(Worker(**of_model, task_queue=MODEL_QUEUE))
    if "tools" in roles:
        serving.append(Worker(**of_tools, task_queue=TOOLS_QUEUE))
    if "outward" in roles:
        serving.append(Worker(**of_tools, task_queue=OUTWARD_QUEUE))
    return serving


def _build_options(build_id: str | None) -> dict[str, Any]:
    """Returns the options by which runs stay with a build, if there is one."""
    if build_id is None:
        return {"build_id": _NO_BUILD}
    config = WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, build_id),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )
    return {"deployment_config": config}


def _workflow_worker(
    common: Mapping[str, Any],
    workflows: Sequence[type],
    activities: Sequence[Callable[..., Any]],
    *,
    strict_sandbox: bool,
) -> Worker:
    runner = WholeTasks(workflow_runner(strict=strict_sandbox), limits.CACHED_WORKFLOWS)
    tuner = WorkerTuner.create_composite(
        workflow_supplier=TaskSlots(_CACHED_TASK_SLOTS, _REPLAY_SLOTS),
        activity_supplier=FixedSizeSlotSupplier(limits.ACTIVITY_SLOTS),
        # Neither of these is used, but a Worker wants a number.
        local_activity_supplier=FixedSizeSlotSupplier(1),
        nexus_supplier=FixedSizeSlotSupplier(1),
    )
    worker = Worker(
        **common,
        task_queue=WORKFLOW_QUEUE,
        workflows=workflows,
        activities=activities,
        workflow_runner=runner,
        tuner=tuner,
        max_cached_workflows=runner.cache_size,
        sticky_queue_schedule_to_start_timeout=limits.STICKY_TIMEOUT,
    )
    runner.serve(worker)
    return worker


class ShownDetails(Interceptor):
    """Adds the Web UI's Markdown to replies to the SDK's query for workflow metadata.

    Setting it with every change, as the SDK intends, costs a large run more than all other work.
    """

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002
    ) -> type[WorkflowInboundInterceptor]:
        """Returns the interceptor class that handles queries."""
        return _Rendering


class _Rendering(WorkflowInboundInterceptor):
    async def handle_query(self, input: HandleQueryInput) -> Any:  # noqa: A002
        """Answers a query, and adds the details to metadata."""
        reply = await super().handle_query(input)
        details = getattr(workflow.instance(), "details", None)
        if isinstance(reply, WorkflowMetadata) and details is not None:
            reply.current_details = details()
        return reply
