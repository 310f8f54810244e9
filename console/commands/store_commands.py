"""The commands `put` and `prune`: storing a text, and deleting what nobody uses any more, by age."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from activities.store.artifacts import ArtifactStore
from activities.store.contents import Contents, StoredRun, StoredUpload, read_contents
from console.access import Access
from console.command import BAD_INPUT, DONE, CommandFailed
from console.commands.store_owner import Owner, Unreadable
from console.run.request_options import read_text_file
from console.terminal import print_err, print_out
from supervision.contract.base import Duration
from supervision.store_keys import digest_of, run_of

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
    """Lists what nobody uses any more and stored nothing since that age, and deletes it once `confirmed`.

    That is ended runs of this namespace, by its own server's word, which is asked again right before each is deleted;
    runs of other namespaces and servers that share the store are left and counted. And uploads that neither a run that
    stays nor an open run's request has.
    """
    age = parse_age(older_than)
    client, store = await access.client(), access.store
    try:
        oldest = datetime.now(UTC) - age
    except OverflowError:
        raise CommandFailed(BAD_INPUT, f"'{older_than}' is before all time") from None
    owner = await Owner.of(client, store)
    contents = await read_contents(store)
    if foreign := sum(run.modified < oldest and not owner.owns(run) for run in contents.runs):
        print_err(f"left alone: {foreign} old runs that another namespace or server may use")
    runs = [run for run in contents.runs if run.modified < oldest and await owner.has_ended(run)]
    uploads = await _unused_uploads(owner, contents, runs, oldest)
    if not runs and not uploads:
        print_err(f"nothing to delete: no ended run stored its last object before {oldest:%Y-%m-%d %H:%M} UTC")
        return DONE
    for run in runs:
        print_out(_line(run.modified, run.bytes, run.objects, run_of(run.run_prefix)))
    for upload in uploads:
        print_out(_line(upload.modified, upload.bytes, 1, upload.ref))
    total = sum(run.bytes for run in runs) + sum(upload.bytes for upload in uploads)
    if not confirmed(f"delete {len(runs)} runs and {len(uploads)} uploads, {total:,} bytes, from {store.url}?"):
        print_err("nothing was deleted: pass --yes to delete these")
        return DONE
    deleted = 0
    for run in runs:
        if await owner.has_ended(run):  # it may have been started again in the meantime
            deleted += await store.delete_run(run.run_prefix)
    for upload in uploads:
        await store.delete(upload.ref)
    print_err(f"deleted {deleted} objects of {len(runs)} runs, and {len(uploads)} uploads")
    return DONE


async def _unused_uploads(
    owner: Owner, contents: Contents, ended: list[StoredRun], oldest: datetime
) -> list[StoredUpload]:
    """Returns the old uploads that no other run than the ended ones has, and that no open run asks for."""
    old = [upload for upload in contents.uploads if upload.modified < oldest]
    if not old:
        return []
    stays = [run for run in contents.runs if run not in ended]
    try:
        in_use = await owner.requested(stays)
    except Unreadable as error:
        print_err(f"uploads are left alone: {error}")
        return []
    for run in stays:
        in_use |= run.digests
    return [upload for upload in old if digest_of(upload.ref) not in in_use]


def _line(modified: datetime, size: int, objects: int, name: str) -> str:
    return f"{modified:%Y-%m-%d}  {size:>12,} bytes  {objects:>6} objects  {name}"
