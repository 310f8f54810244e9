"""The Workers that a run needs before it starts, with the same artifact store."""

import asyncio
import time

from temporalio.client import Client

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.console.base.command import (
    UNREACHABLE,
    CommandFailed,
    hint,
    server_address,
)
from temporal_supervisor.console.run.pollers import Polled, read_pollers, worker_of_other_store
from temporal_supervisor.runtime.local_models import find_local_model
from temporal_supervisor.supervision.base.queues import MODEL_QUEUE, WORKFLOW_QUEUE

_LISTED_AFTER = 2.0  # seconds after which the server lists a Worker that is ready


async def require_workers(client: Client, otherwise: str = ", or pass --queue-anyway") -> Polled:
    """Returns the Workers that serve runs.

    Raises CommandFailed with the remedy if a queue that runs need has none.
    """
    latest = time.monotonic() + _LISTED_AFTER
    while True:
        workers = await read_pollers(client, WORKFLOW_QUEUE)
        why = await _unserved_queue(client, workers)
        if why is None:
            return workers
        if time.monotonic() > latest:
            raise CommandFailed(UNREACHABLE, f"{why}{otherwise}")
        await asyncio.sleep(_LISTED_AFTER / 10)


async def require_same_store(client: Client, store: ArtifactStore) -> None:
    """Raises CommandFailed if a Worker uses another store, which lacks our uploads."""
    own = await store.identity()
    worker, other = await worker_of_other_store(client, own)
    if not worker:
        return
    here = f"{store.url} ({own})" if own else f"{store.url}, which is new"
    ours = f"this program uses the artifact store {here}"
    theirs = f"the Worker {worker} another one ({other}...)"
    helps = "set SUPERVISOR_ARTIFACTS_URL to the same store in both, or pass --queue-anyway"
    raise CommandFailed(UNREACHABLE, f"{ours}, {theirs}: {helps}")


async def _unserved_queue(client: Client, seen: Polled) -> str | None:
    """Returns the problem of a queue that runs need and no Worker serves, with the remedy."""
    server = server_address(client)
    key = "ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"
    start = f"start one with {hint('worker')}"
    if not seen.served:
        problem = f"no worker serves queue '{WORKFLOW_QUEUE}' at {server}"
        needs = f"it needs {key}; with --standin neither"
        return f"{problem}: {start} ({needs}){await _local_model_hint()}"

    if seen.none_current:
        problem = f"no run begins at {server}: of the builds of its Workers {seen.none_current}"
        return f"{problem}. Give {seen.set_current}"

    calling = await read_pollers(client, MODEL_QUEUE)
    if not calling.served:
        problem = f"no worker makes model calls (queue '{MODEL_QUEUE}' at {server})"
        return f"{problem}: set {key} and {start}{await _local_model_hint()}"
    return None


async def _local_model_hint() -> str:
    """Returns a sentence about a model server on this machine; empty without one."""
    found = await asyncio.to_thread(find_local_model)
    return f". {found.worker_hint}" if found else ""
