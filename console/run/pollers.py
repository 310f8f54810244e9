"""The Workers that serve a queue and the rate at which they may, as the server knows them."""

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import RateLimitSource, TaskQueueType, VersionDrainageStatus
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    DescribeWorkerDeploymentRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from console.run.run_handle import RPC_TIMEOUT
from supervision.base.queues import DEPLOYMENT, WORKFLOW_QUEUE

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
SET_CURRENT = f"`temporal worker deployment set-current-version --yes --deployment-name {DEPLOYMENT} --build-id BUILD`"
_FRESH = timedelta(seconds=70)  # a live Worker polls again every 60 s; the server lists dead ones for minutes
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> dict[str, datetime]:
    """Returns the identities of the Workers that polled a queue a moment ago, each with the time of that."""
    return named(await polled(client, queue, kind))


def named(seen: list[PollerInfo]) -> dict[str, datetime]:
    """Returns the identities of Workers, each with the time when it polled."""
    return dict(sorted((poller.identity, poller.last_access_time.ToDatetime(tzinfo=UTC)) for poller in seen))


async def polled(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[PollerInfo]:
    """Returns what is known of the Workers that polled a queue a moment ago."""
    described, oldest = await _described(client, queue, kind), datetime.now(UTC) - _FRESH
    return [poller for poller in described.pollers if poller.last_access_time.ToDatetime(tzinfo=UTC) >= oldest]


@dataclass(frozen=True)
class Build:
    """A build of Workers: runs that began with the current one stay with it; `open` while it has such runs."""

    build_id: str
    current: bool
    open: bool
    served: bool


async def builds(client: Client, seen: list[PollerInfo] | None = None) -> tuple[list[Build], str]:
    """Returns the builds that Workers have named, the newest first, and what `none_current` says of them."""
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=DEPLOYMENT)
    try:
        reply = await client.workflow_service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.UNIMPLEMENTED):
            return [], ""
        raise
    info = reply.worker_deployment_info
    seen = await polled(client, WORKFLOW_QUEUE, WORKFLOWS) if seen is None else seen
    served = {poller.deployment_options.build_id for poller in seen if not gone(poller.identity)}
    current = info.routing_config.current_deployment_version.build_id
    draining = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING
    ids = [(version.deployment_version.build_id, version) for version in info.version_summaries]
    known = [Build(name, name == current, version.drainage_status == draining, name in served) for name, version in ids]
    if not all(poller.deployment_options.build_id for poller in seen) or any(build.current for build in known):
        return known, ""
    listed = ", ".join(build.build_id for build in known if build.served)
    return known, f"none is current, so new runs wait; served: {listed}" if listed else ""


async def none_current(client: Client, seen: list[PollerInfo]) -> str:
    """Returns that no build is current, if every Worker has a build: then no run begins; else nothing."""
    if all(poller.deployment_options.build_id for poller in seen):
        with suppress(RPCError):  # the server answers for a new deployment only after a while
            return (await builds(client, seen))[1]
    return ""


def shown(workers: dict[str, datetime]) -> str:
    """Returns Workers as people read them: one that was killed stays listed for a while."""
    now = datetime.now(UTC)
    ages = {name: max(0, int((now - at).total_seconds())) for name, at in workers.items()}
    return ", ".join(f"{name} ({'ended, ' * gone(name)}polled {seconds} s ago)" for name, seconds in ages.items())


def gone(identity: str) -> bool:
    """True if an identity is of a process of this machine that has ended."""
    pid, _, host = identity.partition("@")
    if host != socket.gethostname() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


async def limited(client: Client, queue: str) -> str | None:
    """Returns the rate that bounds a queue of activities, and why; None if only the server's own limits do."""
    described = await _described(client, queue, ACTIVITIES)
    effective = described.effective_rate_limit
    rate = f"{effective.requests_per_second * 60:.4g} calls a minute"
    if effective.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_WORKER:
        return f"{rate}, by SUPERVISOR_MODEL_RPM of its Workers"
    if effective.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_API:
        config = described.config.queue_rate_limit.metadata
        return f"{rate}, {config.reason or 'set by ' + (config.update_identity or 'an unknown client')}"
    return None


async def _described(client: Client, queue: str, kind: TaskQueueType.ValueType) -> DescribeTaskQueueResponse:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind, report_config=True
    )
    return await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
