"""The contents of an artifact store, as `starter.py prune` needs them: its runs, its uploads, and who uses them."""

from dataclasses import dataclass, field
from datetime import datetime

from activities.store.artifacts import ArtifactStore
from supervision.base.store_keys import OF_NO_RUN, UPLOADS, digest_of, is_grant


@dataclass
class StoredRun:
    """The objects of one run; `modified` is the time of the newest.

    `grant_ref` is a grant, which has the run's whole id. `digests` are the hashes of its content: also of uploads that
    it copied.
    """

    run_prefix: str
    modified: datetime
    bytes: int = 0
    objects: int = 0
    grant_ref: str = ""
    digests: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class StoredUpload:
    """A text that belongs to no run."""

    ref: str
    bytes: int
    modified: datetime


@dataclass(frozen=True)
class Contents:
    """All runs and all uploads, oldest first."""

    runs: list[StoredRun]
    uploads: list[StoredUpload]


async def read_contents(store: ArtifactStore) -> Contents:
    """Returns what is in the store, by one listing. Raises as the store does."""
    runs: dict[str, StoredRun] = {}
    uploads = []
    async for meta in store.objects():
        key, modified = meta["path"], meta["last_modified"]
        segment, slash, _ = key.partition("/")
        if segment == UPLOADS and slash:
            uploads.append(StoredUpload(key, meta["size"], modified))
        elif slash and segment not in OF_NO_RUN:
            run = runs.setdefault(segment, StoredRun(segment + slash, modified))
            run.modified = max(run.modified, modified)
            run.bytes += meta["size"]
            run.objects += 1
            run.grant_ref = key if is_grant(key) else run.grant_ref
            run.digests |= {digest} if (digest := digest_of(key)) else set()
    by_age = sorted(runs.values(), key=lambda run: run.modified)
    return Contents(by_age, sorted(uploads, key=lambda upload: upload.modified))
