"""Files of a run: uploaded once by content, owned by the run, read elsewhere from the store alone."""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.files.file_cache import FileCache
from activities.files.manifest import FilesRefused, Manifest, RunFiles, adopt_files, found_files, put_files
from activities.store.artifacts import ArtifactMissing, ArtifactStore, open_store
from examples.office_files import pdf_bytes
from supervision.base import limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "notes").mkdir(parents=True)
    (folder / "orders.csv").write_text("Order ID,Region\n1,South\n2,North\n")
    (folder / "notes" / "lease.pdf").write_bytes(pdf_bytes(["Rent is 900 EUR"]))
    (folder / "broken.xlsx").write_bytes(b"no spreadsheet")
    (folder / ".DS_Store").write_bytes(b"clutter")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(tmp_path / "store")


async def adopted(store: ArtifactStore, folder: Path) -> str:
    ref = await put_files(store, found_files([folder]))
    return await adopt_files(store, "run-1", [Manifest.model_validate_json(await store.get(ref))])


async def test_a_folder_is_read_on_a_machine_that_has_only_the_store(
    store: ArtifactStore, folder: Path, tmp_path: Path
) -> None:
    ref = await adopted(store, folder)
    for upload in await store.list_keys("uploads/"):
        await store.delete(upload)
    cache = FileCache(tmp_path / "cache")
    files = RunFiles(store, cache, "run-1", ref)
    first, again = await asyncio.gather(files.reports(), files.reports())
    cache.close()
    by_name = {report.name: report for report in first}
    assert first == again
    assert sorted(by_name) == ["broken.xlsx", "notes/lease.pdf", "orders.csv"]
    assert [table["name"] for table in by_name["orders.csv"].tables] == ["orders"]
    assert by_name["notes/lease.pdf"].document is not None
    assert (by_name["broken.xlsx"].problem or "").startswith("it is no spreadsheet")


async def test_what_is_there_is_not_sent_again(store: ArtifactStore, folder: Path) -> None:
    sent: list[tuple[str, int]] = []
    first = await put_files(store, found_files([folder]), lambda name, size: sent.append((name, size)))
    assert all(size for _, size in sent)
    (folder / "orders.csv").write_text("Order ID,Region\n3,East\n")
    sent.clear()
    second = await put_files(store, found_files([folder]), lambda name, size: sent.append((name, size)))
    assert {name for name, size in sent if size} == {"orders.csv"}
    assert first != second


async def test_an_upload_that_is_gone_is_named(store: ArtifactStore, folder: Path) -> None:
    manifest = Manifest.model_validate_json(await store.get(await put_files(store, found_files([folder]))))
    await store.delete(manifest.files[0].parts[0])
    with pytest.raises(ArtifactMissing):
        await adopt_files(store, "run-1", [manifest])


def test_files_beyond_a_ceiling_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "DATA_FILES", 2)
    with pytest.raises(FilesRefused, match="3 files, at most 2 are taken"):
        found_files([folder])
    monkeypatch.setattr(limits, "DATA_FILES", 2000)
    monkeypatch.setattr(limits, "DATA_BYTES", 10)
    with pytest.raises(FilesRefused, match="MiB, at most 0 are taken"):
        found_files([folder])
    (tmp_path / "none").mkdir()
    with pytest.raises(FilesRefused, match="there is no file in"):
        found_files([tmp_path / "none"])


@contextlib.contextmanager
def no_root() -> Iterator[None]:
    """Root reads everything."""
    user = os.geteuid()
    if not user:
        os.seteuid(65534)
    yield
    os.seteuid(user)


@pytest.fixture
def odd() -> Iterator[Path]:
    """A folder with what is no file, or can't be read."""
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as listening:
        folder = Path(name)
        mine, elsewhere = folder / "mine", folder / "secret.txt"
        elsewhere.write_text("canary")
        for part in ("closed", ".git"):
            (mine / part).mkdir(parents=True)
            (mine / part / "inside.csv").write_text("canary")
        for number, good in enumerate((b"good.csv", b"caf\xe9.csv", "\x1b[31mred\u202e\nname.csv".encode())):
            (mine / os.fsdecode(good)).write_text(f"a\n{number}\n")
        os.mkfifo(mine / "pipe.csv")
        listening.bind(str(mine / "socket.csv"))
        links = {
            "zero.csv": "/dev/zero",
            "out.txt": str(elsewhere),
            "self.csv": "self.csv",
            "lost.csv": "x",
            "again": ".",
        }
        for link, target in links.items():
            (mine / link).symlink_to(target)
        (mine / "private.csv").write_text("canary")
        for path, mode in ((folder, 0o755), (mine / "private.csv", 0), (mine / "closed", 0)):
            path.chmod(mode)
        yield mine
        (mine / "closed").chmod(0o700)


async def test_what_is_no_file_is_named_and_leaves_the_others(odd: Path, store: ArtifactStore, tmp_path: Path) -> None:
    with no_root():
        found = found_files([odd])
    cache = FileCache(tmp_path / "cache")
    ref = await put_files(store, found)
    files = RunFiles(store, cache, "run-1", ref)
    assert files.unread().startswith("the files take long to read")
    reports = {report.name: report for report in await files.reports()}
    cache.close()
    assert {name: report.problem for name, report in reports.items() if report.problem} == {
        "again": "it is a link to a folder",
        "closed": "this folder can't be listed",
        "lost.csv": "it can't be read: No such file or directory",
        "out.txt": "it leads out of its folder: copy the file itself",
        "pipe.csv": "it is a pipe, a socket or a device",
        "private.csv": "it can't be read: Permission denied",
        "self.csv": "it can't be read: its link leads nowhere",
        "socket.csv": "it is a pipe, a socket or a device",
        "zero.csv": "it leads out of its folder: copy the file itself",
    }
    assert [name for name, report in reports.items() if report.tables] == ["red name.csv", "caf\ufffd.csv", "good.csv"]
    assert files.unread().startswith("9 of 12 files can't be read: again (it is a link to a folder); closed (this ")
    assert files.unread().endswith(") and 4 more")
