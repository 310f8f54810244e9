"""The artifact store: content lives here, history only names it by key.

One local directory, or a bucket of an S3-compatible service, Google Cloud Storage or Azure, by URL.
An object is written whole or not at all, and has reached the store's device before a write returns,
so a killed process loses nothing. A local directory is not flushed to disk at each write, so a
power cut may lose some.
"""

import asyncio
import contextlib
import hashlib
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import obstore
from cachetools import LRUCache
from obstore.exceptions import AlreadyExistsError, BaseError

from temporal_supervisor.supervision.base import limits, store_keys
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_PARSED_BYTES = 64 * 1024 * 1024  # of the objects whose parsed content is kept in a process

_NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
_SECRET_PARTS = re.compile(r"(?<=//)[^/@\s]*@|\?\S*")
_CODE = re.compile(r"<Code>(\w+)</Code>")

T = TypeVar("T")


class ArtifactError(SupervisionError):
    """A failure of the artifact store; each subclass has its kind."""

    of_kind = ErrorKind.UNEXPECTED

    def __init__(self, message: str) -> None:
        super().__init__(self.of_kind, message)


class ArtifactUnavailable(ArtifactError):
    """The store can't be used now, or is not the store of the run. A Worker may try again."""

    of_kind = ErrorKind.ARTIFACT_UNAVAILABLE


class ArtifactMissing(ArtifactError):
    """The store works, but has no object with that key."""

    of_kind = ErrorKind.ARTIFACT_MISSING


class ArtifactChanged(ArtifactError):
    """Content that does not match its key: another program has written to the store."""

    of_kind = ErrorKind.ARTIFACT_CHANGED


class Seal(Protocol):
    """The encryption of objects; each object is bound to its place in the store."""

    def seal(self, data: bytes, place: str) -> bytes:
        """Returns the data encrypted."""

    def open(self, sealed: bytes, place: str) -> bytes:
        """Returns the decrypted content.

        Raises LookupError if the encryption key is missing, ValueError if the content was changed.
        """


class ArtifactStore:
    """Objects by key, see `supervision.base.store_keys`; `store_urls` opens it.

    `url` contains no secret. `root` is the directory of a local store. With a `seal` content is
    encrypted, except the store's id; keys contain hashes of the plain content. Every method raises
    ArtifactUnavailable for any failure of the backend.

    A store that is not mounted, or another one in its place, looks like an empty one. So after
    `require` a missing object counts as missing only once the store has shown the id of the run's
    store again, and nothing is written to another store.
    """

    def __init__(
        self,
        backend: "ObjectStore",
        url: str,
        fix: str,
        root: Path | None = None,
        seal: Seal | None = None,
    ) -> None:
        self.url = url
        self._backend = backend
        self._root = root
        self._fix = fix
        self._seal = seal
        # The id that the run at work in a task knows: a process serves runs of many, and its store
        # may be swapped.
        self._wanted_id: ContextVar[str | None] = ContextVar("wanted_id", default=None)
        self._known_id: str | None = None  # the last one that was required and there
        # When it was, by `time.monotonic`; None if it no longer is.
        self._seen_at: float | None = None
        self._parsed: LRUCache[object, tuple[Any, int]] = LRUCache(
            _PARSED_BYTES,
            getsizeof=itemgetter(1),
        )

    async def identity(self) -> str | None:
        """Returns the random id of the store; None if it has none. Only `begin` creates one."""
        if self._root is None:
            data = await self._lookup(store_keys.STORE_ID)
            return None if data is None else data.decode()

        # Before each operation, so it is read as a plain file: that takes a tenth of the CPU.
        with self._reported(f"read '{store_keys.STORE_ID}'"):
            try:
                return (self._root / store_keys.STORE_ID).read_bytes().decode()
            except (FileNotFoundError, NotADirectoryError):
                return None

    async def begin(self, *, again: bool = False) -> str:
        """Returns the id of the store for a run that begins, and requires it from then on.

        An empty store gets an id. Raises ArtifactUnavailable if this process has seen another id
        here, or if a run begins `again` and there is none: then the store was lost or swapped.
        """
        found = await self.identity()
        if found is None and self._known_id is None and not again:
            await self._write(store_keys.STORE_ID, secrets.token_hex(16).encode(), "create")
            found = await self.identity()  # of several that begin at once one has made it
        wanted = self._known_id or found
        if wanted is None:
            lost = f"artifact store {self.url} has no id, though the run used one"
            raise ArtifactUnavailable(f"{lost}. {self._fix}")
        self._wanted_id.set(wanted)
        await self._check_identity(now=True)
        return wanted

    async def require(self, store_id: str) -> None:
        """Makes this the store of the run at work in this task.

        Raises ArtifactUnavailable if it has another id.
        """
        self._wanted_id.set(store_id)
        await self._check_identity()

    async def _check_identity(self, *, now: bool = False) -> None:
        """Raises ArtifactUnavailable unless the store has the id that the current run requires.

        The id of a local store is read each time (0.1 ms), the id of a remote one after
        STORE_ID_AGE, or `now`.
        """
        wanted = self._wanted_id.get()
        if wanted is None:
            return
        if self._root is None and not now and self._known_id == wanted and self._is_recent:
            return
        self._seen_at = None
        found = await self.identity()
        if found != wanted:
            has = f"has the id {found}" if found else "has no id"
            words = f"artifact store {self.url} {has}, the run uses the store {wanted}"
            other = "SUPERVISOR_ARTIFACTS_URL of this process names another one"
            raise ArtifactUnavailable(f"{words}: it is not mounted, was emptied, or {other}")
        self._known_id = found
        self._seen_at = time.monotonic()

    @property
    def _is_recent(self) -> bool:
        """True if the known id was seen within STORE_ID_AGE."""
        if self._seen_at is None:
            return False
        return time.monotonic() - self._seen_at < limits.STORE_ID_AGE.total_seconds()

    async def put(self, key: str, data: bytes) -> None:
        """Writes an object, replacing an older one.

        Raises SupervisionError, and ValueError for an invalid key.
        """
        await self._check_identity()
        await self._write(key, data, "overwrite")

    async def create(self, key: str, data: bytes) -> bool:
        """Writes an object unless the key exists. Returns True if it was written.

        Raises SupervisionError, and ValueError for an invalid key.
        """
        await self._check_identity()
        return await self._write(key, data, "create")

    async def get(self, key: str) -> bytes:
        """Returns the content of an object. Raises ArtifactMissing if there is none."""
        data = await self.find(key)
        if data is None:
            raise self._missing(key)
        return data

    async def find(self, key: str) -> bytes | None:
        """Returns the content of an object; None if there is none.

        Raises ArtifactChanged if the content does not match its key.
        """
        if not store_keys.is_key(key):  # references come from people, too
            return None
        data = await self._lookup(key)
        if data is None and self._wanted_id.get() is not None:
            # It was looked for while the store was away, perhaps: once that is back, it may be
            # there.
            await self._check_identity(now=True)
            data = await self._lookup(key)
        if data is None:
            return None
        data = self._decrypted(key, data)
        digest = store_keys.digest_of(key)
        if digest is not None and hashlib.sha256(data).hexdigest() != digest:
            changed = f"'{key}' in artifact store {self.url} is not what was stored"
            raise ArtifactChanged(f"{changed}: it was changed")
        return data

    async def _lookup(self, key: str) -> bytes | None:
        """Returns an object as it is stored, None if there is none at this moment."""
        with self._reported(f"read '{key}'"):
            try:
                found = await self._execute("get", key)
                return bytes(found.bytes() if self._root else await found.bytes_async())
            except FileNotFoundError as error:
                if _NO_BUCKET.search(str(error)):
                    raise
        return None

    async def find_parsed(self, key: str, parse: Callable[[bytes], T]) -> T | None:
        """Returns the parsed content of an immutable object, or None if it is missing.

        It is shared with other callers, so do not change it.
        """
        kept = self._parsed.get((parse, key))
        if kept is not None:
            value: T = kept[0]
            return value
        data = await self.find(key)
        return None if data is None else self.cache_parsed(key, data, parse)

    async def read(self, key: str, parse: Callable[[bytes], T]) -> T:
        """Returns the parsed content of an object. Raises ArtifactMissing if there is none."""
        value = await self.find_parsed(key, parse)
        if value is None:
            raise self._missing(key)
        return value

    async def read_all(
        self,
        keys: Iterable[str],
        parse: Callable[[bytes], T],
        problems: list[str] | None = None,
    ) -> dict[str, T]:
        """Reads and parses objects concurrently. Returns them by key.

        Missing or damaged ones are added to `problems` if it is given, else raised.
        """
        reading = asyncio.Semaphore(limits.STORE_READS)
        wanted = dict.fromkeys(keys)
        found: dict[str, T] = {}

        async def read_one(key: str) -> None:
            async with reading:
                try:
                    found[key] = await self.read(key, parse)
                except (ArtifactChanged, ArtifactMissing) as error:
                    if problems is None:
                        raise
                    problems.append(str(error))

        await asyncio.gather(*map(read_one, wanted))
        return {key: found[key] for key in wanted if key in found}

    def cache_parsed(self, key: str, data: bytes, parse: Callable[[bytes], T]) -> T:
        """Parses an object and caches the result in this process. Raises ArtifactChanged."""
        try:
            value = parse(data)
        except (ValueError, KeyError, TypeError):
            damaged = f"artifact store {self.url} holds a damaged object '{key}'"
            raise ArtifactChanged(f"{damaged}: restore it, or start a new run") from None
        with contextlib.suppress(ValueError):  # larger than all that is kept
            self._parsed[parse, key] = (value, len(key) + len(data))
        return value

    async def latest_ended(self, run_id: str) -> bytes | None:
        """Returns the record of the last execution of a run that has ended; None if none has."""
        objects = self.objects(store_keys.run_prefix(run_id))
        ended = [meta async for meta in objects if store_keys.is_named("ended", meta["path"])]
        if not ended:
            return None
        latest = max(ended, key=itemgetter("last_modified"))
        return await self.find(latest["path"])

    async def put_output(self, run_id: str, content: bytes | str) -> str:
        """Stores content of a run under its hash. Returns the key.

        Existing content is not written again.
        """
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        return await self.put_hashed(partial(store_keys.output_key, run_id), data)

    async def put_upload(self, data: bytes) -> str:
        """Stores content that belongs to no run yet. Returns its key.

        Existing content is written again, so that its age counts from now.
        """
        key = store_keys.upload_key(hashlib.sha256(data).hexdigest())
        await self.put(key, data)
        return key

    async def copy_upload(self, run_id: str, upload: str) -> str:
        """Copies an upload into a run. Returns its key there.

        Raises ArtifactMissing if there is no such upload.
        """
        if not store_keys.is_upload(upload):
            raise self._missing(upload)
        return await self.copy_output(run_id, upload)

    async def copy_output(self, run_id: str, ref: str) -> str:
        """Copies content of another run into a run. Returns its key there.

        Raises ArtifactMissing if it is gone.
        """
        digest = store_keys.digest_of(ref)
        if digest is None:
            raise self._missing(ref)
        return await self._copy(ref, store_keys.output_key(run_id, digest))

    async def _copy(self, source: str, key: str) -> str:
        await self._check_identity()
        with self._reported(f"copy '{source}'"):
            try:
                await self._execute("copy", source, key)
            except FileNotFoundError:
                await self._check_identity(now=True)
                raise self._missing(source) from None
        return key

    async def put_hashed(self, key_for: Callable[[str], str], data: bytes) -> str:
        """Stores content under the key that `key_for` makes of its hash. Returns the key."""
        key = key_for(hashlib.sha256(data).hexdigest())
        await self.create(key, data)
        return key

    async def list_keys(self, prefix: str = "") -> list[str]:
        """Returns all keys below `prefix`, sorted.

        The prefix consists of whole segments and ends in "/", as `run_prefix` returns it.
        """
        return sorted([meta["path"] async for meta in self.objects(prefix)])

    async def folders(self) -> list[str]:
        """Returns the names of the top-level folders.

        In a whole store these are the encoded ids of namespaces.
        """
        with self._reported("list its folders"):
            return list((await obstore.list_with_delimiter_async(self._backend))["common_prefixes"])

    async def delete(self, key: str) -> None:
        """Deletes an object, if it exists."""
        with self._reported(f"delete '{key}'"), contextlib.suppress(FileNotFoundError):
            await self._execute("delete", key)

    async def delete_run(self, run_prefix: str) -> int:
        """Deletes all objects below a `store_keys.run_prefix`. Returns their number.

        Raises ValueError for another prefix.
        """
        if not store_keys.run_of(run_prefix) or run_prefix.count("/") > 1:
            raise ValueError(f"'{run_prefix}' is not the prefix of one run")
        keys = await self.list_keys(run_prefix)
        # Another process may have deleted it meanwhile.
        with self._reported(f"delete '{run_prefix}'"), contextlib.suppress(FileNotFoundError):
            if self._root:  # with the folders, and with what a killed process left half written
                await asyncio.to_thread(shutil.rmtree, self._root / run_prefix)
            elif keys:
                await obstore.delete_async(self._backend, keys)
        return len(keys)

    async def _write(self, key: str, data: bytes, mode: Literal["create", "overwrite"]) -> bool:
        if len(data) > limits.ARTIFACT_BYTES:
            size = f"'{key}' would have {len(data)} bytes"
            words = f"{size}, at most {limits.ARTIFACT_BYTES} are stored as one object"
            raise SupervisionError(ErrorKind.ARTIFACT_TOO_LARGE, words)
        if self._seal and key != store_keys.STORE_ID:
            data = self._seal.seal(data, store_keys.digest_of(key) or key)
        with self._reported(f"write '{key}'"), contextlib.suppress(AlreadyExistsError):
            await self._execute("put", key, data, mode=mode, use_multipart=False)
            return True
        return False

    async def _execute(self, name: str, key: str, *arguments: Any, **options: Any) -> Any:
        """Returns the result of a backend operation on an object."""
        if not store_keys.is_key(key):
            raise ValueError(f"'{key}' is not a key of the artifact store")
        if self._root:  # measured: 0.1 ms, against up to 35 ms of an asynchronous call in a burst
            return getattr(obstore, name)(self._backend, key, *arguments, **options)
        return await getattr(obstore, f"{name}_async")(self._backend, key, *arguments, **options)

    def _decrypted(self, key: str, data: bytes) -> bytes:
        if key == store_keys.STORE_ID:
            return data
        if self._seal is None:
            if data.startswith(store_keys.SEALED):
                words = f"artifact store {self.url} is encrypted: set SUPERVISOR_KEYS_FILE"
                raise ArtifactUnavailable(words)
            return data
        where = f"'{key}' in artifact store {self.url}"
        try:
            return self._seal.open(data, store_keys.digest_of(key) or key)
        except LookupError as error:
            raise ArtifactUnavailable(f"{where} can't be read: {error}") from None
        except ValueError as error:
            raise ArtifactChanged(f"{where}: {error}") from None

    async def objects(self, prefix: str = "") -> AsyncIterator["ObjectMeta"]:
        """Yields path, size and time of each object below `prefix`, in no order."""
        with self._reported(f"list '{prefix}'"):
            async for batch in obstore.list(self._backend, prefix or None, chunk_size=1000):
                for meta in batch:
                    yield meta
        await self._check_identity(now=True)  # a store that is away has no objects either

    def _missing(self, key: str) -> ArtifactMissing:
        words = f"artifact store {self.url} has no object '{key}'"
        return ArtifactMissing(f"{words}: it was never stored there, or pruned")

    @contextlib.contextmanager
    def _reported(self, doing: str) -> Iterator[None]:
        """Turns failures of the backend into ArtifactUnavailable."""
        try:
            yield
        except (BaseError, OSError) as error:
            problem = f"artifact store {self.url} could not {doing}"
            words = f"{problem}: {backend_message(error)}. {self._fix}"
            raise ArtifactUnavailable(words) from None


def text_of(data: bytes) -> str:
    """Decodes a stored text."""
    return data.decode("utf-8", "replace")


def backend_message(error: Exception) -> str:
    """Returns the backend's message on one line, without secrets.

    Raise the new error `from None`: causes are recorded in history.
    """
    text = str(error)
    message = re.split(r"\n|[<{]", text, maxsplit=1)[0].strip(" :.")
    shown = _SECRET_PARTS.sub("", message)
    code = _CODE.search(text)
    return f"{shown} ({code[1]})" if code else shown
