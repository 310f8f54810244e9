"""Files of a run: uploaded once by content, owned by the run, read elsewhere from the store alone."""

import asyncio
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
    with pytest.raises(FilesRefused, match="there is no file in"):
        found_files([tmp_path / "none"])
