"""The files of a run: uploaded by content, listed in one manifest, read on any machine that has the store."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from activities.files.file_cache import FileCache, FileReport, SourceFile, are_there
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from supervision.base import limits
from supervision.base.store_keys import is_upload, upload_key
from supervision.contract.base import Model

MANIFEST_TYPE = "application/vnd.temporal-supervisor.files+json"
"""The media type of an attachment that is a manifest, not a text."""
_PART_BYTES = limits.ARTIFACT_BYTES


class FileEntry(Model):
    """One file: its path below the folder, and the references of its parts in order."""

    name: str
    bytes: int
    sha256: str
    parts: list[str]


class Manifest(Model):
    """Files by name; each name once."""

    files: list[FileEntry]


class FilesRefused(Exception):
    """Files beyond a ceiling; the message says which. Nothing was stored."""


def found_files(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Returns name and path of each file that is given or lies in a given folder, hidden ones left out.

    Raises FilesRefused if there are none, too many or too large ones.
    """
    found: dict[str, Path] = {}
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            if not file.is_file() or any(part.startswith((".", "~$")) for part in PurePosixPath(name).parts):
                continue
            if path.is_dir() and not file.resolve().is_relative_to(path.resolve()):
                raise FilesRefused(f"{file} leads out of {path}: copy the file itself, or remove the link")
            if found.setdefault(name, file) != file:
                raise FilesRefused(f"two files have the name {name}: pass the folder above them")
    total = sum(file.stat().st_size for file in found.values())
    if not found:
        raise FilesRefused(f"there is no file in {', '.join(map(str, paths))}")
    if len(found) > limits.DATA_FILES:
        raise FilesRefused(f"{len(found):,} files, at most {limits.DATA_FILES:,} are taken: pass a smaller folder")
    if total > limits.DATA_BYTES:
        raise FilesRefused(f"{total >> 20:,} MiB, at most {limits.DATA_BYTES >> 20:,} are taken: pass a smaller folder")
    return list(found.items())


async def put_files(
    store: ArtifactStore, files: Iterable[tuple[str, Path]], uploaded: Callable[[str, int], None] = lambda *_: None
) -> str:
    """Stores files by content and returns the reference of their manifest. What is there is not sent again.

    `uploaded` is called with the name of each file and the bytes that were sent for it.
    """
    entries = []
    for name, path in files:
        whole, parts, size, sent = hashlib.sha256(), list[str](), 0, 0
        with path.open("rb") as file:
            while part := await asyncio.to_thread(file.read, _PART_BYTES):
                whole.update(part)
                size += len(part)
                key = upload_key(hashlib.sha256(part).hexdigest())
                sent += len(part) if await store.create(key, part) else 0
                parts.append(key)
        entries.append(FileEntry(name=name, bytes=size, sha256=whole.hexdigest(), parts=parts))
        uploaded(name, sent)
    return await store.put_upload(Manifest(files=entries).model_dump_json().encode())


async def read_manifest(store: ArtifactStore, ref: str) -> Manifest:
    """Returns an uploaded manifest. Raises ArtifactMissing, and ValueError unless `put_files` could have made it."""
    if not is_upload(ref):
        raise ArtifactMissing(f"'{ref}' is no upload")
    manifest = Manifest.model_validate_json(await store.get(ref))
    if not all(is_upload(part) for file in manifest.files for part in file.parts):
        raise ValueError("a manifest names uploads only")
    if len(manifest.files) > limits.DATA_FILES or sum(file.bytes for file in manifest.files) > limits.DATA_BYTES:
        raise ValueError("a manifest beyond the ceilings")
    if any(len(file.parts) > file.bytes // _PART_BYTES + 1 for file in manifest.files):
        raise ValueError("a file of too many parts")
    return manifest


async def adopt_files(store: ArtifactStore, run_id: str, manifests: Iterable[Manifest]) -> str:
    """Copies the uploads of some manifests into a run and returns the reference of its own manifest.

    So uploads may be deleted while the run is open. Parts that are the run's already stay. Raises ArtifactMissing
    if a part is there no longer.
    """
    files = {file.name: file for manifest in manifests for file in manifest.files}
    entries = []
    for file in files.values():
        parts = [await store.adopt(run_id, part) if is_upload(part) else part for part in file.parts]
        entries.append(file.model_copy(update={"parts": parts}))
    return await store.put_output(run_id, Manifest(files=entries).model_dump_json().encode())


class RunFiles:
    """The files of one run on this machine. They are fetched when a tool first needs them."""

    def __init__(self, store: ArtifactStore, cache: FileCache, run_id: str, ref: str) -> None:
        self._store = store
        self._cache = cache
        self._run_id = run_id
        self.ref = ref
        self._reading: asyncio.Task[list[FileReport]] | None = None

    async def reports(self) -> list[FileReport]:
        """Returns what each file holds. Raises as the store does.

        All callers wait for the same reading, and it continues when one of them stops waiting: a large file takes
        longer than a tool call may, so the next call finds it done. What was deleted since is made again.
        """
        reading = self._reading
        if reading and (not reading.done() or await asyncio.to_thread(_usable, reading)):
            return await asyncio.shield(reading)
        if self._reading is reading or self._reading is None:  # else another caller began while this one looked
            self._reading = asyncio.create_task(self._read())
        return await asyncio.shield(self._reading)

    async def rows(self, file: str, count: int) -> list[str]:
        """Returns the first rows of the converted table in a file of `reports`, each as JSON."""
        return await self._cache.rows(file, count, self._run_id)

    async def _read(self) -> list[FileReport]:
        manifest = Manifest.model_validate_json(await self._store.get(self.ref))
        return await self._cache.reports(map(self._source, manifest.files), self._run_id)

    def _source(self, file: FileEntry) -> SourceFile:
        async def fetch(target: Path) -> None:
            with target.open("wb") as out:
                for part in file.parts:
                    await asyncio.to_thread(out.write, await self._store.get(part))

        return SourceFile(file.name, file.sha256, file.bytes, fetch)


def _usable(reading: asyncio.Task[list[FileReport]]) -> bool:
    return not reading.cancelled() and reading.exception() is None and are_there(reading.result())


def is_text(data: bytes) -> bool:
    """True if it can be shown to a model as it is."""
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
