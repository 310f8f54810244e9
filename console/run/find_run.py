"""The run that a person means: by its id, the beginning of it, the last word of it, or just the newest."""

import re

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from console.base.command import BAD_INPUT, FAILED, CommandFailed
from console.base.hints import EXAMPLE_GOAL, hint
from console.run.run_handle import RPC_TIMEOUT, RUN_TYPE

SEARCHED_RUNS = 1000  # one page of the server's list, for the newest run and the beginning of an id
_GENERATED = "supervise-"
_KEY_CHARS = 6
_SHOWN = 5
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def short_id(run_id: str) -> str:
    """Returns what `find_run` needs of an id: its last word if it was made of a goal, its first if it is a UUID."""
    if _UUID.fullmatch(run_id):
        return run_id.partition("-")[0]
    head, _, key = run_id.rpartition("-")
    made = head.startswith(_GENERATED) and len(key) == _KEY_CHARS and set(key) <= set("0123456789abcdef")
    return key if made else run_id


def no_runs(namespace: str) -> str:
    """Returns what to say where there is no run yet."""
    return f"there is no run in namespace '{namespace}': start one with {hint('run', EXAMPLE_GOAL)}"


async def find_run(client: Client, given: str | None) -> str:
    """Returns the id of the run that `given` means, the newest one's without it. Raises CommandFailed.

    An id that nothing matches is returned as it is: the artifact store may still have it.
    """
    if given is None:
        if newest := await roots(client, 1):
            return newest[0].id
        raise CommandFailed(FAILED, no_runs(client.namespace))
    try:
        await client.get_workflow_handle(given).describe(rpc_timeout=RPC_TIMEOUT)
        return given
    except RPCError as error:
        if error.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            raise
    ids = [execution.id for execution in await roots(client, SEARCHED_RUNS)] if given.strip() else []
    matches = [run_id for run_id in ids if run_id.startswith(given)] or [i for i in ids if short_id(i) == given]
    if len(matches) > 1:
        shown = ", ".join(matches[:_SHOWN]) + (f" and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else "")
        raise CommandFailed(BAD_INPUT, f"'{given}' is the beginning of several runs: {shown}")
    return matches[0] if matches else given


async def roots(client: Client, limit: int, state: str | None = None) -> list[WorkflowExecution]:
    """Returns at most `limit` runs, newest first, without nested ones. The server lists by the time of the end."""
    query = f"WorkflowType = '{RUN_TYPE}'" + (f" AND ExecutionStatus = '{state}'" if state else "")
    most = max(limit, SEARCHED_RUNS)
    runs = [run async for run in client.list_workflows(query, limit=most) if run.parent_id is None]
    newest: dict[str, WorkflowExecution] = {}
    for run in sorted(runs, key=lambda run: run.start_time, reverse=True):
        newest.setdefault(run.id, run)  # a reset leaves older executions of the same id
    return list(newest.values())[:limit]
