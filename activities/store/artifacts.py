"""The artifact store: content lives here, history only names it by key.

One local directory, or a bucket of an S3-compatible service, Google Cloud Storage or Azure, by URL. Objects
are written whole or not at all and are on the device of the store before a write returns, so a killed process
loses nothing; a local directory is not flushed to disk at each write, so a power cut may.
"""

import asyncio
import hashlib
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from activities.store.backends import Backend, open_backend, reason
from supervision.base import limits
from supervision.base.store_keys import (
    STORE_ID,
    UPLOADS,
    digest_of,
    grant_key,
    is_ended,
    is_key,
    is_upload,
    output_key,
    run_prefix,
    team_key,
    upload_key,
)

if TYPE_CHECKING:
    from obstore import ObjectMeta

_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")


class ArtifactError(Exception):
    """A failure of the artifact store."""


class ArtifactUnavailable(ArtifactError):
    """The store can't be used now, or is not the one that a run uses. A Worker may try again."""


class ArtifactMissing(ArtifactError):
    """The store works and has no object of that key."""

    def __init__(self, key: str, where: str) -> None:
        super().__init__(f"artifact store {where} has no object '{key}': it was never stored there, or pruned")
        self.key = key


class ArtifactTooLarge(ArtifactError):
    """An object above `limits.ARTIFACT_BYTES`; nothing was written."""


class ArtifactChanged(ArtifactError):
    """Content that is not what its key says: somebody wrote to the store behind our back."""


class ArtifactStore:
    """Objects by key, see `supervision.base.store_keys`; made by `open_store`. `url` holds no secret.

    Every method raises ArtifactUnavailable for any failure of the backend.
    """

    def __init__(self, backend: Backend) -> None:
        self.url = backend.shown
        self._backend = backend.objects
        self._root = backend.root
        self._fix = backend.fix
        self._identity: str | None = None

    async def identity(self) -> str:
        """Returns the store's random id, made when the store is used for the first time."""
        if self._identity is None:
            if await self.find(STORE_ID) is None:
                await self.create(STORE_ID, secrets.token_hex(16).encode())
            self._identity = (await self.get(STORE_ID)).decode()
        return self._identity

    async def require(self, store_id: str) -> None:
        """Raises ArtifactUnavailable if this is not the store of that id."""
        if (own_id := await self.identity()) != store_id:
            raise ArtifactUnavailable(
                f"artifact store {self.url} has the id {own_id}, the run uses the store {store_id}: "
                "set SUPERVISOR_ARTIFACTS_URL to the same store in every process"
            )

    async def put(self, key: str, data: bytes) -> None:
        """Writes an object, over an older one if there is one. Raises ArtifactTooLarge; ValueError for a bad key."""
        await self._write(key, data, "overwrite")

    async def create(self, key: str, data: bytes) -> bool:
        """Writes an object unless the key is taken. Returns True if it was written; raises as `put` does."""
        return await self._write(key, data, "create")

    async def get(self, key: str) -> bytes:
        """Returns the object's content. Raises ArtifactMissing if there is none."""
        data = await self.find(key)
        if data is None:
            raise ArtifactMissing(key, self.url)
        return data

    async def find(self, key: str) -> bytes | None:
        """Returns the object's content, None if there is none."""
        if not is_key(key):  # references come from people, too
            return None
        self._refuse_links(key, f"read '{key}'")
        try:
            if self._root:  # measured: 0.1 ms, against up to 35 ms of an asynchronous call in a burst
                data = bytes(obstore.get(self._backend, key).bytes())
            else:
                data = bytes(await (await obstore.get_async(self._backend, key)).bytes_async())
        except FileNotFoundError as error:
            if _NO_BUCKET.search(str(error)):
                raise self._unavailable(f"read '{key}'", error) from None
            return None
        except (BaseError, OSError) as error:
            raise self._unavailable(f"read '{key}'", error) from None
        digest = digest_of(key)
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            raise ArtifactChanged(f"'{key}' in artifact store {self.url} is not what was stored: somebody changed it")
        return data

    async def latest_ended(self, run_id: str) -> bytes | None:
        """Returns what the latest execution of a run left when it ended; None if none of them ended."""
        ended = [meta async for meta in self.objects(run_prefix(run_id)) if is_ended(meta["path"])]
        if not ended:
            return None
        return await self.find(max(ended, key=lambda meta: meta["last_modified"])["path"])

    async def put_output(self, run_id: str, data: bytes) -> str:
        """Stores content under its hash. Returns the key; content that is there is not written again."""
        return await self._put_hashed(partial(output_key, run_id), data)

    async def put_upload(self, data: bytes) -> str:
        """Stores content that belongs to no run yet. Returns the key that requests may refer to.

        Content that is there is written again, so that its age is counted from now.
        """
        key = upload_key(hashlib.sha256(data).hexdigest())
        await self.put(key, data)
        return key

    async def adopt(self, run_id: str, upload: str) -> str:
        """Copies an upload into a run. Returns its key there. Raises ArtifactMissing if there is no such upload."""
        key = output_key(run_id, digest_of(upload) or "")
        if not is_upload(upload):
            raise ArtifactMissing(upload, self.url)
        try:
            if self._root:
                obstore.copy(self._backend, upload, key)
            else:
                await obstore.copy_async(self._backend, upload, key)
        except FileNotFoundError:
            raise ArtifactMissing(upload, self.url) from None
        except (BaseError, OSError) as error:
            raise self._unavailable(f"copy '{upload}'", error) from None
        return key

    async def put_team(self, run_id: str, data: bytes) -> str:
        """Stores a team as frozen for a run, under its hash. Returns the key, which no other content can have."""
        return await self._put_hashed(partial(team_key, run_id), data)

    async def put_grant(self, run_id: str, data: bytes) -> str:
        """Stores a grant of a run under its hash. Returns the key."""
        return await self._put_hashed(partial(grant_key, run_id), data)

    async def _put_hashed(self, key_for: Callable[[str], str], data: bytes) -> str:
        key = key_for(hashlib.sha256(data).hexdigest())
        await self.create(key, data)
        return key

    async def list_keys(self, prefix: str = "") -> list[str]:
        """Returns all keys below `prefix`, sorted; it is whole segments that end in "/", as `run_prefix` gives."""
        return sorted([meta["path"] async for meta in self.objects(prefix)])

    async def delete(self, key: str) -> None:
        """Deletes an object, if there is one of that key."""
        if not is_key(key):
            raise ValueError(f"'{key}' is not a key of the artifact store")
        try:
            if self._root:
                (self._root / key).unlink(missing_ok=True)
            else:
                await obstore.delete_async(self._backend, key)
        except FileNotFoundError:
            pass  # not all backends take it as done
        except (BaseError, OSError) as error:
            raise self._unavailable(f"delete '{key}'", error) from None

    async def delete_run(self, run_prefix: str) -> int:
        """Deletes all objects of one run. Returns how many there were.

        Raises ValueError if `run_prefix` is not one of `store_keys.run_prefix`.
        """
        segment, slash, rest = run_prefix.partition("/")
        if not is_key(segment) or segment in (STORE_ID, UPLOADS) or slash + rest != "/":
            raise ValueError(f"'{run_prefix}' is not the prefix of one run")
        keys = await self.list_keys(run_prefix)
        try:
            if self._root:  # with the folders, and with what a killed process left half written
                await asyncio.to_thread(shutil.rmtree, self._root / segment)
            elif keys:
                await obstore.delete_async(self._backend, keys)
        except FileNotFoundError:
            pass  # deleted by another process meanwhile
        except (BaseError, OSError) as error:
            raise self._unavailable(f"delete '{run_prefix}'", error) from None
        return len(keys)

    async def _write(self, key: str, data: bytes, mode: Literal["create", "overwrite"]) -> bool:
        if not is_key(key):
            raise ValueError(f"'{key}' is not a key of the artifact store")
        if len(data) > limits.ARTIFACT_BYTES:
            raise ArtifactTooLarge(
                f"'{key}' would have {len(data)} bytes, at most {limits.ARTIFACT_BYTES} are stored as one object"
            )
        self._refuse_links(key, f"write '{key}'")
        try:
            if self._root:
                obstore.put(self._backend, key, data, mode=mode, use_multipart=False)
            else:
                await obstore.put_async(self._backend, key, data, mode=mode, use_multipart=False)
        except AlreadyExistsError:
            return False
        except (BaseError, OSError) as error:
            raise self._unavailable(f"write '{key}'", error) from None
        return True

    async def objects(self, prefix: str = "") -> AsyncIterator["ObjectMeta"]:
        """Yields path, size and time of each object below `prefix`, in no order."""
        try:
            async for batch in obstore.list(self._backend, prefix or None, chunk_size=1000):
                for meta in batch:
                    yield meta
        except (BaseError, OSError) as error:
            raise self._unavailable(f"list '{prefix}'", error) from None

    def _refuse_links(self, key: str, doing: str) -> None:
        """The store makes no links: one below its folder leads to what is not the store's."""
        if self._root is None:
            return
        path = self._root
        for segment in key.split("/"):
            path = path / segment
            if path.is_symlink():
                raise self._unavailable(doing, OSError(f"'{path}' is a symbolic link"))

    def _unavailable(self, doing: str, error: Exception) -> ArtifactUnavailable:
        return ArtifactUnavailable(f"artifact store {self.url} could not {doing}: {reason(error)}. {self._fix}")


def open_store(url: str | Path) -> ArtifactStore:
    """Returns the store at `url`: a directory, file://, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix.

    Credentials and endpoints come from the environment (AWS_*, GOOGLE_*, AZURE_*). Raises ValueError if the
    URL names no store, ArtifactUnavailable if a directory can't be made.
    """
    return ArtifactStore(open_backend(str(url)))
