"""Files of a run: uploaded once, read elsewhere from the store alone; deleted, false or hostile ones are named."""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from activities.bounded import child_processes
from activities.bounded.child_processes import BoundExceeded, NotStarted
from activities.files.file_cache import Fetch, FileCache, FileEntry
from activities.files.file_reports import FileReport
from activities.files.manifest import (
    FilesRefused,
    Manifest,
    RunFiles,
    adopt_files,
    found_files,
    put_files,
    read_manifest,
)
from activities.store.artifacts import ArtifactMissing, ArtifactStore
from activities.store.store_urls import open_store
from activities.tools.documents import DocumentOptions, DocumentTools
from activities.tools.files import FolderFiles
from activities.tools.sql.sql_tools import TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.store_keys import upload_key
from tests.activity.files.test_conversion import replaced, zipped
from tests.office_files import docx_bytes, pdf_bytes, xlsx_bytes


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
    by_name = {report.name: report for report in first}
    assert first == again
    assert sorted(by_name) == ["broken.xlsx", "notes/lease.pdf", "orders.csv"]
    assert [table["name"] for table in by_name["orders.csv"].tables] == ["orders"]
    assert by_name["notes/lease.pdf"].document is not None
    assert (by_name["broken.xlsx"].problem or "").startswith("it is no spreadsheet")


@pytest.mark.parametrize("name", ["orders.csv", "all.zip"])
async def test_a_process_that_does_not_start_says_nothing_of_a_file(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cache = FileCache(tmp_path / "cache")
    files = await run_files(store, cache, {name: zipped(FILES) if name == "all.zip" else FILES[name]})
    with monkeypatch.context() as busy:
        busy.setattr(child_processes, "_CHILD_START_TIMEOUT", timedelta(milliseconds=1))
        with pytest.raises(NotStarted):
            await files.reports()
    reports = await files.reports()
    assert [report.problem for report in reports] == [None] * len(reports)


async def test_what_is_never_read_is_not_uploaded(store: ArtifactStore, folder: Path) -> None:
    secret = b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA"
    for name in ("id_rsa", "server.pem", "photo.png"):
        (folder / name).write_bytes(secret)
    manifest = Manifest.model_validate_json(await store.get(await put_files(store, found_files([folder]))))
    unread = {file.name: file.problem for file in manifest.files if not file.parts}
    assert unread == {
        "id_rsa": "files of the kind 'id_rsa' are not read",
        "server.pem": "files of the kind '.pem' are not read",
        "photo.png": "files of the kind '.png' are not read",
    }
    stored = [await store.get(key) for key in await store.list_keys()]
    assert not any(b"PRIVATE KEY" in data for data in stored)


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
    with pytest.raises(FilesRefused, match="more than 2 files: pass a smaller folder"):
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
            (mine / os.fsdecode(good)).chmod(0o644)
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
        modes = {folder: 0o755, mine: 0o755, mine / "private.csv": 0, mine / "closed": 0}
        for path, mode in modes.items():  # whatever umask the session was begun with
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


SQL = {"query_data": "sql_query"}
SEARCH = {"search_documents": "document_search", "read_document": "document_read"}


async def run_files(store: ArtifactStore, cache: FileCache, files: dict[str, bytes], **changes: str) -> RunFiles:
    """Returns the files of a run; `changes` are false hashes by name."""
    entries = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        key = upload_key(digest)
        await store.create(key, content)
        entries.append(
            FileEntry(name=name, bytes=len(content), sha256=changes.get(name.partition(".")[0], digest), parts=[key])
        )
    ref = await store.put_output("run-1", Manifest(files=entries).model_dump_json().encode())
    return RunFiles(store, cache, "run-1", ref)


FILES = {"orders.csv": b"Order ID,Region\n1,South\n2,North\n", "lease.pdf": pdf_bytes(["Rent is 900 EUR"])}


async def test_what_was_deleted_is_made_again(store: ArtifactStore, tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    context = ToolContext(files=await run_files(store, cache, FILES))
    folder = FolderFiles(tmp_path, "", cache)
    tables, documents = TableTools(folder, SQL, TableOptions()), DocumentTools(folder, SEARCH, DocumentOptions())
    (query,), (search, read) = await tables.open(), await documents.open()
    texts = []
    for _ in range(2):
        called = [
            await query.run(query.arguments(sql="SELECT count(*) AS n FROM orders"), context),
            await search.run(search.arguments(query="rent"), context),
            await read.run(read.arguments(document_id="lease.pdf", place="p. 1"), context),
        ]
        texts.append([output.text for output in called])
        shutil.rmtree(tmp_path / "cache")
    assert texts[0] == texts[1]
    assert [("| 2 |" in texts[0][0]), ("900 EUR" in texts[0][1]), ("900 EUR" in texts[0][2])] == [True] * 3


async def test_a_reading_goes_on_when_its_caller_stops_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, begun, may_end, read = FileCache(), asyncio.Queue[str](), asyncio.Event(), FileCache.reports

    async def slow(cache: FileCache, files: list[FileEntry], owner: str, fetch: Fetch) -> list[FileReport]:
        begun.put_nowait(owner)
        await may_end.wait()
        return await read(cache, files, owner, fetch)

    monkeypatch.setattr(FileCache, "reports", slow)
    files = FolderFiles(folder, "*.csv", cache)
    waiting = asyncio.create_task(files.reports())
    await begun.get()
    waiting.cancel()
    (folder / "more.csv").write_text("a\n1\n")
    may_end.set()
    seen = [[report.name for report in await files.reports()] for _ in range(3)]
    assert seen == [["orders.csv"], ["more.csv", "orders.csv"], ["more.csv", "orders.csv"]]
    assert begun.qsize() == 1


async def test_a_false_hash_does_not_become_another_runs_file(store: ArtifactStore, tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    true = hashlib.sha256(FILES["orders.csv"]).hexdigest()
    (forged,) = await (await run_files(store, cache, {"orders.csv": b"a\n666\n"}, orders=true)).reports()
    (honest,) = await (await run_files(store, cache, {"orders.csv": FILES["orders.csv"]})).reports()
    assert forged.problem == "its content is not what its list says"
    assert honest.tables[0]["rows"] == 2


async def test_two_processes_share_a_folder(store: ArtifactStore, tmp_path: Path) -> None:
    caches = [FileCache(tmp_path / "cache") for _ in range(2)]
    files = [await run_files(store, cache, FILES) for cache in caches]
    first, second = await asyncio.gather(*(one.reports() for one in files))
    indexes = await asyncio.gather(*(cache.index(first, "run") for cache in [*caches, *caches]))
    assert first == second
    assert len(set(indexes)) == 1
    left = [path.name for path in (tmp_path / "cache").glob("*/*")]
    assert sorted(map(len, left)) == [len("indexes"), 64, 64]
    assert [path.suffix for path in indexes[0].parent.iterdir()] == [".sqlite"]
    with sqlite3.connect(indexes[0]) as database:
        assert database.execute("SELECT count(*) FROM passages").fetchone() == (1,)
    database.close()


async def test_few_files_are_in_memory_at_a_time(tmp_path: Path) -> None:
    open_now, most = 0, 0

    async def fetch(file: FileEntry, target: Path) -> None:
        nonlocal open_now, most
        open_now, most = open_now + 1, max(most, open_now + 1)
        await asyncio.to_thread(target.write_bytes, b"a note")
        open_now -= 1

    digest = hashlib.sha256(b"a note").hexdigest()
    cache = FileCache(tmp_path / "cache")
    reports = await cache.reports([FileEntry(name=f"{n}.txt", sha256=digest) for n in range(20)], "run", fetch)
    assert all(report.document for report in reports)
    assert most <= 2


def hostile_files(folder: Path) -> dict[str, bytes]:
    with sqlite3.connect(folder / "odd.db") as database:
        database.executescript(
            'CREATE TABLE "weird ""n\'ame"(x); INSERT INTO "weird ""n\'ame" VALUES (1); CREATE VIEW v AS SELECT 1;'
            "CREATE VIRTUAL TABLE words USING fts5(t); CREATE TABLE log(x);"
            "CREATE TRIGGER tr AFTER INSERT ON log BEGIN DELETE FROM log; END; PRAGMA writable_schema = 1;"
            "INSERT INTO sqlite_master(type, name, tbl_name, rootpage, sql) VALUES"
            "('table', 'bogus', 'bogus', 0, 'CREATE VIRTUAL TABLE bogus USING nosuch(x)');"
        )
    database.close()
    corner = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    sparse = xlsx_bytes({"Sheet1": [["a"], [1]]})
    word, body = docx_bytes([("a", "b")]), b"<w:body>"
    runs = b"<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 100_000
    laughs = b'<!ENTITY a0 "lol">' + b"".join(
        b'<!ENTITY a%d "%b">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)
    )
    return {
        "wide.csv": ",".join(map(str, range(10_000))).encode(),
        "deep.json": b"[" * 10_000 + b"]" * 10_000,
        "pages.pdf": pdf_bytes(["x"] * 5001),
        "bomb.docx": replaced(word, body, body + b" " * (65 << 20)),
        "runs.docx": replaced(word, body, body + runs),
        "entities.docx": replaced(
            replaced(word, b"<w:document ", b"<!DOCTYPE x [%b]><w:document " % laughs), b">b<", b">&a9;<"
        ),
        "open.html": b"<!" * 2_000_000,
        "bare.html": b"word <b>x</b> &amp; " * 400_000,
        "corner.xlsx": replaced(sparse, b"</sheetData>", corner + b"</sheetData>"),
        "odd.db": (folder / "odd.db").read_bytes(),
        "line\nbreak' OR 1=1.csv": b"a\n1\n",
        "order.csv": b"select,Order Date\n1,2025-01-01\n",
    }


async def test_hostile_files_are_named_once_and_leave_the_others(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FileCache(tmp_path / "cache")
    files = await run_files(store, cache, hostile_files(tmp_path))
    reports = {report.name: report for report in await files.reports()}

    async def again(*_: object) -> None:
        raise BoundExceeded("a file that needed too much is tried again, no other one")

    tables = TableTools(FolderFiles(tmp_path, "", cache), SQL, TableOptions())
    (query,) = await tables.open()
    output = await query.run(query.arguments(sql='SELECT "select" FROM t_order'), ToolContext(files=files))
    problems = {name: report.problem for name, report in reports.items() if report.problem}
    assert problems == {
        "wide.csv": "it has 10,000 columns, at most 500 are read",
        "pages.pdf": "it has 5001 pages, at most 5000 are read",
        "bomb.docx": "its text takes 65 MiB, at most 64 are read",
        "entities.docx": "it is no Word document that can be read: limit on input amplification factor "
        "(from DTD and entities) breached: line 1, column 749",
        "open.html": "it holds no text",
        "corner.xlsx": "it can't be read: it needs more than 288 MiB of memory, "
        "or its process ended for another reason",
    }
    assert all(reports[name].document for name in ("deep.json", "runs.docx", "bare.html"))
    assert [(table["name"], table["rows"]) for table in reports["odd.db"].tables] == [
        ("odd_log", 0),
        ("odd_weird_n_ame", 1),
    ]
    assert reports["line break' OR 1=1.csv"].tables[0]["name"] == "line_break_or_1_1"
    assert output.text.startswith("| select |")
    monkeypatch.setattr(FileCache, "_convert_one", again)
    kept = await RunFiles(store, FileCache(tmp_path / "cache"), "run-2", files.ref).reports()
    assert [report.name for report in kept if reports[report.name] != report] == ["corner.xlsx"]


async def test_a_manifest_beyond_the_ceilings_is_refused(store: ArtifactStore) -> None:
    key = upload_key(hashlib.sha256(b"x").hexdigest())
    part = limits.ARTIFACT_BYTES
    lent = [{"name": f"{n}.csv", "bytes": -part} for n in range(300)]
    for files in (
        [{"name": "a.csv", "bytes": 1, "parts": [key] * 1000}],
        [{"name": "a.csv", "bytes": limits.DATA_BYTES + 1, "parts": [key]}],
        [{"name": "a.csv", "bytes": 300 * part, "parts": [key] * 300}, *lent],  # less than nothing in sum
        [{"name": f"{n}.csv"} for n in range(limits.DATA_FILES + 1)],
    ):
        ref = await store.put_upload(json.dumps({"files": files}).encode())
        with pytest.raises(ValueError, match="too many parts|are taken|greater than or equal to 0"):
            await read_manifest(store, ref)


async def test_several_manifests_are_no_more_than_one_may_be(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "DATA_FILES", 3)
    halves = [Manifest(files=[FileEntry(name=f"{half}{n}.csv") for n in range(2)]) for half in "ab"]
    with pytest.raises(FilesRefused, match="4 files, at most 3 are taken"):
        await adopt_files(store, "run", halves)
    assert await adopt_files(store, "run", [halves[0], halves[0]])


async def test_no_more_of_a_file_is_written_than_its_list_says(store: ArtifactStore, tmp_path: Path) -> None:
    part = b"x" * 1000
    key = upload_key(hashlib.sha256(part).hexdigest())
    await store.create(key, part)
    whole = hashlib.sha256(part * 50).hexdigest()
    entry = FileEntry(name="a.csv", bytes=1500, sha256=whole, parts=[key] * 50)
    ref = await store.put_output("run", Manifest(files=[entry]).model_dump_json())
    files = RunFiles(store, FileCache(tmp_path / "cache"), "run", ref)
    await files._fetch(entry.model_copy(update={"bytes": 50_000}), tmp_path / "whole")
    with pytest.raises(FileNotFoundError, match="longer than its list says"):
        await files._fetch(entry, tmp_path / "cut")
    assert [(tmp_path / name).stat().st_size for name in ("whole", "cut")] == [50_000, 1000]
    (report,) = await files.reports()
    assert report.problem == "its content is longer than its list says"
