"""The contents of a store, by run and upload, for cleaning up."""

from dataclasses import dataclass, field
from datetime import datetime

from activities.store.artifacts import ArtifactStore
from temporal_supervisor.supervision.base import store_keys


@dataclass
class Stored:
    """The objects of a run, or an upload; `digests` are the hashes of their contents."""

    key: str
    modified: datetime
    bytes: int = 0
    objects: int = 0
    digests: set[str] = field(default_factory=set)


async def read_contents(store: ArtifactStore) -> tuple[list[Stored], list[Stored]]:
    """Returns all runs and all uploads in the store, oldest first, from one listing.

    Raises ArtifactUnavailable.
    """
    runs: dict[str, Stored] = {}
    uploads: dict[str, Stored] = {}
    async for meta in store.objects():
        key, modified = meta["path"], meta["last_modified"]
        segment, slash, _ = key.partition("/")
        if not slash or (segment in store_keys.OF_NO_RUN and segment != store_keys.UPLOADS):
            continue
        kind, name = (uploads, key) if segment == store_keys.UPLOADS else (runs, segment + slash)
        stored = kind.setdefault(name, Stored(name, modified))
        stored.modified = max(stored.modified, modified)
        stored.bytes += meta["size"]
        stored.objects += 1
        stored.digests |= {digest} if (digest := store_keys.digest_of(key)) else set()
    by_age = [sorted(kind.values(), key=lambda stored: stored.modified) for kind in (runs, uploads)]
    return by_age[0], by_age[1]
