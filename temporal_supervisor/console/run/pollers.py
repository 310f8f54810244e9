"""The Workers that poll a queue, and their builds, as the server knows them."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from temporal_supervisor.messages import RPC_TIMEOUT
from temporal_supervisor.supervision.base.queues import (
    DEPLOYMENT,
    MODEL_QUEUE,
    OUTWARD_QUEUE,
    TOOLS_QUEUE,
    WORKFLOW_QUEUE,
    other_store,
    process_of,
    teams_of,
)

_SET_CURRENT = "temporal worker deployment set-current-version --yes"
WORK = {
    WORKFLOW_QUEUE: "runs",
    MODEL_QUEUE: "model calls",
    TOOLS_QUEUE: "tools",
    OUTWARD_QUEUE: "outward tools",
}
# A live Worker polls again every 60 s; the server lists dead ones for minutes.
_FRESH = timedelta(seconds=70)


@dataclass(frozen=True)
class Polled:
    """The Workers that polled a queue recently, and its `current` build."""

    workers: list[PollerInfo]
    current: str

    @property
    def served(self) -> set[str]:
        """The builds of Workers that still run; "" stands for Workers without one."""
        return {worker.deployment_options.build_id for worker in self._running}

    @property
    def _running(self) -> list[PollerInfo]:
        return [worker for worker in self.workers if not has_ended_here(worker.identity)]

    def polled_since(self, moment: datetime, build: str = "") -> list[PollerInfo]:
        """Returns the Workers, optionally of one build, that polled after a moment.

        A lost Worker stays listed, but polls no more.
        """
        later = [worker for worker in self._running if _polled_at(worker) > moment]
        return [worker for worker in later if build in ("", worker.deployment_options.build_id)]

    def read_teams_of(self, mark: str) -> bool:
        """True if all running Workers use the team folders with this mark."""
        return {teams_of(worker.identity) for worker in self._running} == {mark}

    @property
    def set_current(self) -> str:
        """The command that makes a build current: the only one that is served, else any."""
        build = "".join(self.served) if len(self.served) == 1 else ""
        named = f"--deployment-name {DEPLOYMENT} --build-id {build or 'BUILD'}"
        return f"`{_SET_CURRENT} {named}`"

    @property
    def none_current(self) -> str:
        """The problem of new runs if all builds are not current; empty otherwise."""
        if self.current or not self.served or "" in self.served:
            return ""
        return f"none is current, so new runs wait; served: {', '.join(sorted(self.served))}"


async def read_pollers(client: Client, queue: str) -> Polled:
    """Returns the Workers of a queue, as the server lists them."""
    kind = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    if queue == WORKFLOW_QUEUE:  # a process that serves it serves its activities, too
        kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=kind,
    )
    described = await client.workflow_service.describe_task_queue(request, timeout=RPC_TIMEOUT)
    fresh = [poller for poller in described.pollers if _time_since_poll(poller) <= _FRESH]
    fresh.sort(key=lambda worker: worker.identity)
    current = described.versioning_info.current_deployment_version.build_id
    return Polled(fresh, current)


def worker_of(queue: str) -> tuple[str, Sequence[str]]:
    """Returns a queue's kind of Worker in words, and the options that start one."""
    pool = queue.removeprefix(f"{WORKFLOW_QUEUE}.")
    if pool != queue:
        return f"a Worker of pool {pool}", ("--pool", pool)
    options = ("--roles", "outward") if queue == OUTWARD_QUEUE else ()
    return f"a Worker for {WORK.get(queue, f'queue {queue}')}", options


def workers_line(workers: list[PollerInfo]) -> str:
    """Returns Workers in words; a killed one stays listed for a while."""
    words: list[str] = []
    for worker in workers:
        ended = "ended, " if has_ended_here(worker.identity) else ""
        seconds = max(0, int(_time_since_poll(worker).total_seconds()))
        words.append(f"{process_of(worker.identity)} ({ended}polled {seconds} s ago)")
    return ", ".join(words)


async def worker_of_other_store(client: Client, store_id: str | None) -> tuple[str, str]:
    """Returns a running Worker with another store, and that store's first characters.

    ("", "") without one. A Worker that began before its store had an id does not state any.
    """
    polled = await read_pollers(client, WORKFLOW_QUEUE)
    for worker in polled.workers:
        other = other_store(worker.identity, store_id)
        if other and not has_ended_here(worker.identity):
            return process_of(worker.identity), other
    return "", ""


def has_ended_here(identity: str) -> bool:
    """True if an identity belongs to a process of this machine that has ended."""
    pid, _, host = process_of(identity).partition("@")
    try:
        if host == socket.gethostname() and pid.isdecimal():
            os.kill(int(pid), 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, ProcessLookupError)
    return False


def _time_since_poll(poller: PollerInfo) -> timedelta:
    return datetime.now(UTC) - _polled_at(poller)


def _polled_at(poller: PollerInfo) -> datetime:
    return poller.last_access_time.ToDatetime(tzinfo=UTC)
