"""The commands `put` and `prune`: storing a text, and deleting the objects of ended runs by age."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.store.artifacts import ArtifactStore, StoredRun
from console import console_limits
from console.access import Access
from console.command import BAD_INPUT, DONE, CommandFailed
from console.run.request_options import read_text_file
from console.run.run_handle import RUN_TYPE, is_open
from console.terminal import print_err, print_out
from supervision.contract.base import Duration
from supervision.store_keys import run_of, run_prefix

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


async def put_file(store: ArtifactStore, path: Path) -> int:
    """Stores a text file and prints its reference, alone on standard output."""
    print_out(await store.put_upload(read_text_file(path)))
    return DONE


def parse_age(text: str) -> timedelta:
    """Returns the duration of `30d`, `12h`, `2w`, `PT90M`. Raises CommandFailed for anything else."""
    try:
        age: timedelta = _DURATION.validate_python(text)
    except ValidationError:
        raise CommandFailed(BAD_INPUT, f"'{text}' is no age: write one such as 30d, 12h or PT12H") from None
    return age


async def prune(access: Access, older_than: str, confirmed: Callable[[str], bool]) -> int:
    """Lists the ended runs that stored nothing since that age, and deletes their objects once `confirmed`.

    A run with any younger object stays whole, and so does every open run: the server is asked for all open runs
    first, and again for each run right before its objects are deleted.
    """
    age = parse_age(older_than)
    client, store = await access.client(), access.store
    try:
        oldest = datetime.now(UTC) - age
    except OverflowError:
        raise CommandFailed(BAD_INPUT, f"'{older_than}' is before all time") from None
    in_use = await _open_prefixes(client)
    old = [run for run in await store.runs() if run.modified < oldest and run.run_prefix not in in_use]
    ended = [run for run in old if not await _is_open(client, run)]
    if not ended:
        print_err(f"nothing to delete: no ended run stored its last object before {oldest:%Y-%m-%d %H:%M} UTC")
        return DONE
    for run in ended:
        size = f"{run.bytes:>12,} bytes  {run.objects:>6} objects"
        print_out(f"{run.modified:%Y-%m-%d}  {size}  {run_of(run.run_prefix)}")
    total = sum(run.bytes for run in ended)
    if not confirmed(f"delete {len(ended)} runs, {total:,} bytes, from {store.url}?"):
        print_err("nothing was deleted: pass --yes to delete these")
        return DONE
    deleted = 0
    for run in ended:
        if not await _is_open(client, run):  # it may have been started again in the meantime
            deleted += await store.delete_run(run.run_prefix)
    print_err(f"deleted {deleted} objects of {len(ended)} runs")
    return DONE


async def _open_prefixes(client: Client) -> set[str]:
    query = f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'"
    return {run_prefix(execution.id) async for execution in client.list_workflows(query)}


async def _is_open(client: Client, run: StoredRun) -> bool:
    """True if the server has the run open. For ids too long to be read back the list of open runs decides."""
    if "~" in run.run_prefix:
        return run.run_prefix in await _open_prefixes(client)
    try:
        handle = client.get_workflow_handle(run_of(run.run_prefix))
        return is_open(await handle.describe(rpc_timeout=console_limits.RPC_TIMEOUT))
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
