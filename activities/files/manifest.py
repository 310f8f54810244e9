"""The files of a run: uploaded by content, listed in a manifest, readable wherever the store is."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from activities.files.file_cache import GONE, FileCache, FileEntry, Files
from activities.files.file_reports import FileReport
from activities.files.report_room import length
from activities.files.values import DATA_TOML, unread_kind
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.store_keys import is_upload, upload_key
from temporal_supervisor.supervision.contract.base import Model

MANIFEST_TYPE = "application/vnd.temporal-supervisor.files+json"
"""The media type of an attachment that is a manifest, not a text."""
LONGER = "its content is longer than its list says"
_PART_BYTES = limits.ARTIFACT_BYTES
_NAMED = 5  # of the files that can't be read, in one line


class DataFile(NamedTuple):
    """A file of this machine, with its name in a run; it has a `problem` if it can't be read."""

    name: str
    path: Path
    problem: str | None = None


class Manifest(Model):
    """Files with unique names."""

    files: list[FileEntry]


class FilesRefused(ValueError):
    """Files above a ceiling, which the message names. Nothing was stored."""


def found_files(paths: Sequence[Path]) -> list[DataFile]:
    """Returns the given files, and those in given folders, without hidden ones.

    Raises FilesRefused.
    """
    found: dict[str, DataFile] = {}
    for path in paths:
        folder = path if path.is_dir() else None
        for file in _first_inside(path) if folder else [path]:
            name = file.relative_to(path).as_posix() if folder else file.name
            if any(map(_is_hidden, PurePosixPath(name).parts)):
                continue
            name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            # What is never read is not uploaded either: it may be a private key in the folder.
            unread = "" if PurePosixPath(name).name == DATA_TOML else unread_kind(name)
            problem = _problem(file, folder) or unread or None
            if found.setdefault(name, DataFile(name, file, problem)).path != file:
                raise FilesRefused(f"two files have the name {name}: pass the folder above them")

    if not found:
        raise FilesRefused(f"there is no file in {', '.join(map(str, paths))}")
    if len(found) > limits.DATA_FILES:
        most = f"at most {limits.DATA_FILES:,} are taken"
        raise FilesRefused(f"{len(found):,} files, {most}: pass a smaller folder")
    total = sum(file.path.stat().st_size for file in found.values() if not file.problem)
    if total > limits.DATA_BYTES:
        most = f"at most {limits.DATA_BYTES >> 20:,} are taken"
        raise FilesRefused(f"{total >> 20:,} MiB, {most}: pass a smaller folder")
    return list(found.values())


def _first_inside(folder: Path) -> list[Path]:
    """Returns the files of a folder in order.

    Raises FilesRefused, before any is opened, if there are too many.
    """
    seen = (path for path in _walk_folder(folder) if not _is_hidden(path.name))
    files = sorted(islice(seen, limits.DATA_FILES + 1))
    if len(files) > limits.DATA_FILES:
        most = f"{limits.DATA_FILES:,} files"
        raise FilesRefused(f"{folder} holds more than {most}: pass a smaller folder")
    return files


def _walk_folder(folder: Path) -> Iterator[Path]:
    """Yields the files, links and unreadable folders in a folder, without hidden folders."""
    closed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=closed.append):
        # In place: these folders are walked next. Links to folders are not.
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in files:
            yield Path(place, name)
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                yield Path(place, name)
    for error in closed:
        yield Path(error.filename)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "~$"))


def _problem(file: Path, folder: Path | None) -> str | None:
    """Returns the reason why something can't be read; None if it can.

    A pipe or a device, which may never end, is not opened.
    """
    try:
        if folder and not file.resolve().is_relative_to(folder.resolve()):
            return "it leads out of its folder: copy the file itself"
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            is_link = file.is_symlink()
            return "it is a link to a folder" if is_link else "this folder can't be listed"
        if not stat.S_ISREG(mode):
            return "it is a pipe, a socket or a device"
        file.open("rb").close()
    except (OSError, RuntimeError) as error:  # the latter of a link to itself
        return f"it can't be read: {getattr(error, 'strerror', 'its link leads nowhere')}"
    return None


async def put_files(
    store: ArtifactStore,
    files: Iterable[DataFile],
    uploaded: Callable[[str, int], None] = lambda *_: None,
) -> str:
    """Stores files by content, except parts that are there. Returns their manifest.

    `uploaded(name, bytes)` is called after each file.
    """
    entries = []
    for file in files:
        if file.problem:
            entries.append(FileEntry(name=file.name, problem=file.problem))
            continue
        entry, sent = await _put_file(store, file)
        entries.append(entry)
        uploaded(file.name, sent)
    return await store.put_upload(Manifest(files=entries).model_dump_json().encode())


async def _put_file(store: ArtifactStore, file: DataFile) -> tuple[FileEntry, int]:
    """Stores the parts of a file. Returns its entry, and the number of bytes that were sent."""
    whole = hashlib.sha256()
    parts: list[str] = []
    size = sent = 0
    with file.path.open("rb") as content:
        while part := await asyncio.to_thread(content.read, _PART_BYTES):
            whole.update(part)
            size += len(part)
            key = upload_key(hashlib.sha256(part).hexdigest())
            is_new = await store.create(key, part)
            sent += len(part) if is_new else 0
            parts.append(key)
    return FileEntry(name=file.name, bytes=size, sha256=whole.hexdigest(), parts=parts), sent


async def read_manifest(store: ArtifactStore, ref: str) -> Manifest:
    """Returns an uploaded manifest.

    Raises ArtifactMissing, and ValueError if `put_files` cannot have made it.
    """
    if not is_upload(ref):
        raise ArtifactMissing(f"'{ref}' is no upload")
    manifest = Manifest.model_validate_json(await store.get(ref))
    if not all(is_upload(part) for file in manifest.files for part in file.parts):
        raise ValueError("a manifest names uploads only")
    _check_ceilings(manifest.files)
    if any(len(file.parts) > file.bytes // _PART_BYTES + 1 for file in manifest.files):
        raise ValueError("a file of too many parts")
    return manifest


def _check_ceilings(files: Collection[FileEntry]) -> None:
    """Raises FilesRefused for more or larger files than a run may have."""
    if len(files) > limits.DATA_FILES:
        raise FilesRefused(f"{len(files):,} files, at most {limits.DATA_FILES:,} are taken")
    total = sum(file.bytes for file in files)
    if total > limits.DATA_BYTES:
        most = f"at most {limits.DATA_BYTES >> 20:,} are taken"
        raise FilesRefused(f"{total >> 20:,} MiB of files, {most}")


async def adopt_files(store: ArtifactStore, run_id: str, manifests: Iterable[Manifest]) -> str:
    """Copies the uploads of some manifests into a run. Returns the run's own manifest.

    Raises ArtifactMissing, and FilesRefused for more than a run may have.
    """
    files = {file.name: file for manifest in manifests for file in manifest.files}
    _check_ceilings(files.values())
    entries = []
    for file in files.values():
        parts = []
        for part in file.parts:
            parts.append(await store.copy_upload(run_id, part) if is_upload(part) else part)
        entries.append(file.model_copy(update={"parts": parts}))
    return await store.put_output(run_id, Manifest(files=entries).model_dump_json())


class RunFiles(Files):
    """The files of one run on this machine; its manifest never changes."""

    def __init__(self, store: ArtifactStore, cache: FileCache, run_id: str, ref: str) -> None:
        super().__init__()
        self._store = store
        self._cache = cache
        self._run_id = run_id
        self.ref = ref
        self.chars = 0  # of the reports, once they are read

    def unread(self) -> str:
        """Returns a sentence on the files that can't be read, so far; empty if all can."""
        if self._reading is None or not self._reading.done():
            return "the files take long to read: the plan is made without their columns and titles"
        return unread_of(self._reading.result())

    async def rows(self, file: str, count: int) -> list[str]:
        """Returns the first rows of a converted table in `reports`, each as JSON."""
        return await self._cache.rows(file, count, self._run_id)

    def _state(self) -> str:
        return self.ref

    async def _read_reports(self) -> list[FileReport]:
        manifest = Manifest.model_validate_json(await self._store.get(self.ref))
        reports = await self._cache.reports(manifest.files, self._run_id, self._fetch)
        self.chars = await asyncio.to_thread(length, [report.tables for report in reports])
        return reports

    async def _fetch(self, file: FileEntry, target: Path) -> None:
        """Writes the content of a file. Raises FileNotFoundError if it is longer than its entry."""
        room = file.bytes
        with target.open("wb") as out:
            for part in file.parts:
                try:
                    data = await self._store.get(part)
                except ArtifactMissing:
                    raise FileNotFoundError(GONE) from None
                room -= len(data)
                if room < 0:
                    raise FileNotFoundError(LONGER)
                await asyncio.to_thread(out.write, data)


def unread_of(reports: Sequence[FileReport]) -> str:
    """Returns sentences on unreadable files, and on a `data.toml` with mistakes; empty without."""
    sentences = []
    unread = [f"{report.name} ({report.problem})" for report in reports if report.problem]
    if unread:
        named = "; ".join(unread[:_NAMED])
        more = f" and {len(unread) - _NAMED} more" if len(unread) > _NAMED else ""
        sentences.append(f"{len(unread)} of {len(reports)} files can't be read: {named}{more}")
    for report in reports:
        if report.mistakes:
            sentences.append(f"{report.name}: {'; '.join(report.mistakes)}")
    return ". ".join(sentences)


def is_text(data: bytes) -> bool:
    """True if a model can read the content as it is."""
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False
