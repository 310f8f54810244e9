"""Deleting what ended runs left in the artifact store, by age."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import StoredRun
from console import console_limits
from console.access import Access
from console.command_errors import BAD_INPUT, CommandFailed
from console.run.run_handle import RUN_TYPE, is_open
from console.terminal import say, tell
from supervision.store_keys import run_of, run_prefix

_AGE = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_age(text: str) -> timedelta:
    """`30d`, `12h`, `2w`, `90m`; CommandFailed for anything else."""
    found = _AGE.fullmatch(text.strip().lower())
    try:
        if found:
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        pass
    raise CommandFailed(BAD_INPUT, f"'{text}' is no age: write a number and m, h, d or w, such as 30d")


async def prune(access: Access, older_than: str, confirmed: Callable[[str], bool]) -> int:
    """Lists what ended runs stored before that age, and deletes it once `confirmed`.

    A run of which anything is younger stays whole, and so does every run that the server has open: it is asked
    for all open runs first, and again for each run right before its objects go.
    """
    age = parse_age(older_than)
    client, store = await access.client(), access.store
    try:
        oldest = datetime.now(UTC) - age
    except OverflowError:
        raise CommandFailed(BAD_INPUT, f"'{older_than}' is before all time") from None
    held = await _open_prefixes(client)
    old = [run for run in await store.runs() if run.modified < oldest and run.run_prefix not in held]
    found = [run for run in old if not await _is_open(client, run)]
    if not found:
        say(f"nothing to delete: no ended run stored its last object before {oldest:%Y-%m-%d %H:%M} UTC")
        return 0
    for run in found:
        tell(f"{run.modified:%Y-%m-%d}  {run.bytes:>12,} bytes  {run.objects:>6} objects  {run_of(run.run_prefix)}")
    total = sum(run.bytes for run in found)
    if not confirmed(f"delete {len(found)} runs, {total:,} bytes, from {store.url}?"):
        say("nothing was deleted: pass --yes to delete these")
        return 0
    deleted = 0
    for run in found:
        if not await _is_open(client, run):
            deleted += await store.delete_run(run.run_prefix)
    say(f"deleted {deleted} objects of {len(found)} runs")
    return 0


async def _open_prefixes(client: Client) -> set[str]:
    query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
    return {run_prefix(execution.id) async for execution in client.list_workflows(query)}


async def _is_open(client: Client, run: StoredRun) -> bool:
    """Whether the server has the run open; of ids too long to be read back, the list of open runs decides."""
    if "~" in run.run_prefix:
        return run.run_prefix in await _open_prefixes(client)
    try:
        handle = client.get_workflow_handle(run_of(run.run_prefix))
        return is_open(await handle.describe(rpc_timeout=console_limits.RPC_TIMEOUT))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
