"""The Workers that serve a queue, and their builds, as the server knows them."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType, VersionDrainageStatus
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeWorkerDeploymentRequest
from temporalio.client import Client
from temporalio.service import RPCError

from console.run.run_handle import RPC_TIMEOUT
from supervision.base.queues import DEPLOYMENT, MODEL_QUEUE, OUTWARD_QUEUE, TOOLS_QUEUE, WORKFLOW_QUEUE

WORKFLOWS, ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
SET_CURRENT = f"`temporal worker deployment set-current-version --yes --deployment-name {DEPLOYMENT} --build-id BUILD`"
WORK = {WORKFLOW_QUEUE: "runs", MODEL_QUEUE: "model calls", TOOLS_QUEUE: "tools", OUTWARD_QUEUE: "outward tools"}
_FRESH = timedelta(seconds=70)  # a live Worker polls again every 60 s; the server lists dead ones for minutes


async def pollers(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[PollerInfo]:
    """Returns the Workers that polled a queue a moment ago, by their identity."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
    )
    described = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
    seen = [poller for poller in described.pollers if _age(poller) <= _FRESH]
    return sorted(seen, key=lambda poller: poller.identity)


def worker_of(queue: str) -> tuple[str, Sequence[str]]:
    """Returns the Worker that serves a queue, in words, and the options that start it."""
    pool = queue.removeprefix(f"{WORKFLOW_QUEUE}.")
    if pool != queue:
        return f"a Worker of pool {pool}", ("--pool", pool)
    return f"a Worker for {WORK.get(queue, f'queue {queue}')}", ("--roles", "outward") if queue == OUTWARD_QUEUE else ()


@dataclass(frozen=True)
class Build:
    """A build of Workers: runs that began with the current one stay with it; `open` while it has such runs."""

    build_id: str
    current: bool
    open: bool
    served: bool


async def builds(client: Client, seen: list[PollerInfo]) -> tuple[list[Build], str]:
    """Returns the builds that Workers have named, the newest first, and that new runs wait as none is current.

    The latter is empty if one is, or if some of the Workers that were `seen` have no build.
    """
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=DEPLOYMENT)
    with suppress(RPCError):  # there are none, or the server has just been told of the first
        reply = await client.workflow_service.describe_worker_deployment(request, timeout=RPC_TIMEOUT)
        info = reply.worker_deployment_info
        served = {poller.deployment_options.build_id for poller in seen if not gone(poller.identity)}
        current = info.routing_config.current_deployment_version.build_id
        draining = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINING
        ids = [(each.deployment_version.build_id, each.drainage_status == draining) for each in info.version_summaries]
        known = [Build(name, name == current, is_open, name in served) for name, is_open in ids]
        listed = ", ".join(build.build_id for build in known if build.served)
        waits = listed and not current and all(poller.deployment_options.build_id for poller in seen)
        return known, f"none is current, so new runs wait; served: {listed}" if waits else ""
    return [], ""


def shown(workers: list[PollerInfo]) -> str:
    """Returns Workers as people read them: one that was killed stays listed for a while."""
    words = [(each.identity, "ended, " * gone(each.identity), int(_age(each).total_seconds())) for each in workers]
    return ", ".join(f"{identity} ({ended}polled {max(0, seconds)} s ago)" for identity, ended, seconds in words)


def gone(identity: str) -> bool:
    """True if an identity is of a process of this machine that has ended."""
    pid, _, host = identity.partition("@")
    if host == socket.gethostname() and pid.isdecimal():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        except (PermissionError, OverflowError):
            pass
    return False


def _age(poller: PollerInfo) -> timedelta:
    return datetime.now(UTC) - poller.last_access_time.ToDatetime(tzinfo=UTC)
