"""The commands `put`, `prune` and `delete`: store files, delete old objects, delete a run."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer
from pydantic import TypeAdapter, ValidationError
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.contracts.eval_contracts import EVAL_TYPE
from activities.files.manifest import MANIFEST_TYPE, put_files
from activities.files.values import is_data
from activities.store.contents import Stored, read_contents
from temporal_supervisor.console.base.command import (
    BAD_INPUT,
    DONE,
    FAILED,
    Access,
    CommandFailed,
    hint,
)
from temporal_supervisor.console.base.terminal import console, counted, print_err, print_out
from temporal_supervisor.console.run.again_requests import built_on_words, runs_built_on
from temporal_supervisor.console.run.command_line import RunId
from temporal_supervisor.console.run.found_runs import list_tree, short_id
from temporal_supervisor.console.run.request_options import (
    data_files,
    is_small_text,
    read_text_file,
)
from temporal_supervisor.messages import RPC_TIMEOUT
from temporal_supervisor.outcomes import is_open
from temporal_supervisor.starting import RUN_TYPE
from temporal_supervisor.supervision.base.store_keys import digest_of, run_of, run_prefix
from temporal_supervisor.supervision.contract.base import Duration
from temporal_supervisor.supervision.run.attempt_rules import is_child_id

Yes = Annotated[bool, typer.Option("--yes", help="delete without asking")]
_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


async def put_path(
    access: Access,
    path: Annotated[Path, typer.Argument(help="a text file, or a folder or file of data")],
) -> int:
    """Store a file or a folder and print its reference, for `attachments`."""
    store = await access.store()
    if path.is_dir() or (is_data(path.name) and not is_small_text(path)):
        print_out(await put_files(store, data_files([path])))
        print_err(f'as an attachment it needs "media_type": "{MANIFEST_TYPE}"')
    else:
        print_out(await store.put_upload(read_text_file(path)))
    return DONE


async def prune(
    access: Access,
    older_than: Annotated[str, typer.Option(help="such as 30d, 12h or 2w")],
    yes: Yes = False,
) -> int:
    """Delete objects of old runs and uploads from the store; never what may still be in use."""
    oldest = _time_before(older_than)
    store = await access.store()
    client = await access.client()

    stored, uploads = await read_contents(store)
    old_runs = [run for run in stored if run.modified < oldest]
    runs = [run for run in old_runs if await _has_ended(client, run)]
    ended = {run.key for run in runs}
    stays = [run for run in stored if run.key not in ended]
    old_uploads = [upload for upload in uploads if upload.modified < oldest]
    uploads = await _unused_uploads(client, old_uploads, stays)
    if not runs and not uploads:
        none = f"no ended run stored its last object before {oldest:%Y-%m-%d %H:%M} UTC"
        print_err(f"nothing to delete: {none}")
        return DONE

    total = 0
    for each in [*runs, *uploads]:
        total += each.bytes
        size = f"{each.bytes:>12,} bytes  {each.objects:>6} objects"
        print_out(f"{each.modified:%Y-%m-%d}  {size}  {unquote(each.key).rstrip('/')}")
    await _print_built_on(client, [run_of(run.key) for run in runs])
    counts = f"{counted(len(runs), 'run')} and {counted(len(uploads), 'upload')}"
    what = f"{counts}, {total / 1e6:,.1f} MB"
    print_err(f"in all {what}")
    if not _confirm(f"delete {what}, from {store.url}?", yes):
        print_err("nothing was deleted: pass --yes to delete these")
        return DONE

    deleted = 0
    for run in runs:
        if await _has_ended(client, run):  # it may have been started again in the meantime
            deleted += await store.delete_run(run.key)
    for upload in uploads:
        await store.delete(upload.key)
    print_err(f"deleted {deleted} objects of {len(runs)} runs, and {len(uploads)} uploads")
    return DONE


async def delete_run(run: RunId, access: Access, yes: Yes = False) -> int:
    """Delete an ended run: its objects in the store, and its workflows from the server."""
    store = await access.store()
    keys = await store.list_keys(run_prefix(run.id))
    workflows = await list_tree(run.client, run.id)
    if not keys and not workflows:
        await run.require()
    if any(map(is_open, workflows)):
        raise _open_run_error(run.id)
    await _check_closed(run)
    await _print_built_on(run.client, [run.id])
    parts = counted(len(workflows), "workflow")
    if not _confirm(f"delete run '{run.id}', {counted(len(keys), 'object')} and {parts}?", yes):
        print_err("nothing was deleted: pass --yes to delete it")
        return FAILED

    await _check_closed(run)  # it may have been started again in the meantime
    deleted = await store.delete_run(run_prefix(run.id))
    service = run.client.workflow_service
    for found in workflows:
        request = DeleteWorkflowExecutionRequest(
            namespace=run.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=found.id, run_id=found.run_id),
        )
        await service.delete_workflow_execution(request, timeout=RPC_TIMEOUT)
    going = f"; the server is deleting {parts}, which may take a minute" if workflows else ""
    print_err(f"deleted run '{run.id}': {counted(deleted, 'object')}{going}")
    return DONE


async def _print_built_on(client: Client, run_ids: list[str]) -> None:
    """Prints the runs that build on these."""
    built_on = await runs_built_on(client, run_ids)
    for run_id, others in built_on.items():
        print_err(built_on_words(run_id, others))


async def _check_closed(run: RunId) -> None:
    """Raises CommandFailed if the run is open."""
    if not await _is_closed(run.client, run.id):
        raise _open_run_error(run.id)


def _open_run_error(run_id: str) -> CommandFailed:
    return CommandFailed(
        FAILED, f"run '{run_id}' is open: {hint('cancel', short_id(run_id))} ends it"
    )


def _confirm(question: str, yes: bool) -> bool:
    return yes or (console().is_terminal and typer.confirm(question))


def _time_before(age: str) -> datetime:
    """Returns the time that was `30d`, `12h`, `2w` or `PT90M` ago.

    Raises CommandFailed for anything else.
    """
    try:
        duration = _DURATION.validate_python(age)
        if age.strip().startswith("-") or duration < timedelta(0):
            raise OverflowError
        return datetime.now(UTC) - duration
    except (ValidationError, OverflowError):
        helps = "write one such as 30d, 12h or PT12H"
        raise CommandFailed(BAD_INPUT, f"'{age}' is no age: {helps}") from None


async def _unused_uploads(client: Client, old: list[Stored], stays: list[Stored]) -> list[Stored]:
    """Returns the `old` uploads that no remaining run uses.

    There are none while an open run may still ask for any upload.
    """
    if not old:
        return []
    open_eval = await _open_eval(client)
    if open_eval:
        print_err(f"uploads are left alone until the eval '{open_eval}' has ended, which uses them")
        return []

    known = {run.key for run in stays}
    for run_id in await _open_runs(client):
        if run_prefix(run_id) not in known:  # it has not read its uploads yet, which may be any
            until = f"the open run '{run_id}' has read its own, or is cancelled"
            print_err(f"uploads are left alone until {until}")
            return []

    in_use = set[str]().union(*(run.digests for run in stays))
    return [upload for upload in old if digest_of(upload.key) not in in_use]


async def _has_ended(client: Client, run: Stored) -> bool:
    """True if the run is closed, or unknown to the server."""
    run_id = run_of(run.key)
    if run_prefix(run_id) == run.key:
        return await _is_closed(client, run_id)
    # Its id was too long for a key, and is known only while the run is open.
    return run.key not in [run_prefix(open_id) for open_id in await _open_runs(client)]


async def _is_closed(client: Client, run_id: str) -> bool:
    try:
        return not is_open(
            await client.get_workflow_handle(run_id).describe(rpc_timeout=RPC_TIMEOUT)
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:  # its retention is over
            return True
        raise


async def _open_runs(client: Client) -> list[str]:
    found = client.list_workflows(f"WorkflowType = '{RUN_TYPE}' AND ExecutionStatus = 'Running'")
    return [each.id async for each in found if not is_child_id(each.id, each.parent_id)]


async def _open_eval(client: Client) -> str | None:
    """Returns the id of an open eval, whose next questions may need any upload.

    None if there is no open eval.
    """
    query = f"WorkflowType = '{EVAL_TYPE}' AND ExecutionStatus = 'Running'"
    ids = [each.id async for each in client.list_workflows(query, limit=1)]
    return next(iter(ids), None)
