"""Files as people have them: what becomes of each, read back from what was written."""

import io
import json
import os
import shutil
import sqlite3
import struct
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.bounded.child_processes import ChildProcesses
from activities.files import file_cache
from activities.files.conversion import convert, index_documents
from activities.files.document_files import text_passages
from activities.files.file_cache import FileCache, copy_file, local_file
from activities.files.file_reports import FileReport
from activities.files.tables import engine
from activities.files.tables.dates import DateReading
from activities.tools.sql.sql_check import check
from temporal_supervisor.standin.lookup.tables import parse_tables
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.office_files import docx_bytes, pdf_bytes, xlsx_bytes


def converted(tmp_path: Path, name: str, content: bytes) -> JsonObject:
    source = tmp_path / "0f3a"
    source.write_bytes(content)
    return convert(str(source), name, str(tmp_path / "out"))


def rows(table: JsonObject) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        return database.execute(f"SELECT * FROM '{table['file']}'").fetchall()


def types(table: JsonObject) -> dict[str, str]:
    return {column["name"]: column["type"] for column in table["columns"]}


GERMAN = (
    "Export vom 1.1.2025\n\nKunde;Betrag (€);Datum;Anteil\nMüller;1.237,01;01.02.2025;5 %\nSüd;12,50;13.02.2025;7,5 %\n"
)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16"])
def test_an_export_of_another_country_is_a_table_of_numbers_and_dates(tmp_path: Path, encoding: str) -> None:
    (table,) = converted(tmp_path, "Umsätze 2025.csv", GERMAN.encode(encoding))["tables"]
    assert types(table) == {"Kunde": "VARCHAR", "Betrag (€)": "DOUBLE", "Datum": "DATE", "Anteil": "DOUBLE"}
    assert [(row[0], row[1], str(row[2]), row[3]) for row in rows(table)] == [
        ("Müller", 1237.01, "2025-02-01", 5.0),
        ("Süd", 12.5, "2025-02-13", 7.5),
    ]
    assert table["name"] == "umsätze_2025"
    assert table["notes"][0] == "what stands above the header is left out: 'Export vom 1.1.2025'"
    two_columns = "\n".join(";".join(line.split(";")[:2]) for line in GERMAN.splitlines() if line)
    (table,) = converted(tmp_path, "two.csv", two_columns.encode(encoding))["tables"]
    assert types(table) == {"Kunde": "VARCHAR", "Betrag (€)": "DOUBLE"}
    assert table["notes"][0] == "what stands above the header is left out: 'Export vom 1.1.2025'"
    assert "Betrag (€): decimal commas are read as numbers" in table["notes"]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("Umsa\u0308tze-2025.csv", "umsätze_2025"),  # as macOS writes it
        ("Продажи (июль).csv", "продажи_июль"),
        ("बिक्री.csv", "बिक्री"),  # with marks, which are no letters
        ("売上3月.csv", "売上3月"),
        ("2025.csv", "t_2025"),
        ("Order.csv", "t_order"),
        ("a__b!.csv", "a__b"),
        ("...!.csv", "t_table"),
    ],
)
def test_a_table_has_the_letters_of_its_file_and_is_queried_without_quotes(
    tmp_path: Path, file: str, name: str
) -> None:
    (table,) = converted(tmp_path, file, b"a\n1\n")["tables"]
    assert table["name"] == name
    (read,) = parse_tables(f"table {name} (a BIGINT)")
    sql = f"SELECT a FROM {read.name}"
    assert check(sql, [name])
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW \"{name}\" AS SELECT * FROM read_parquet('{table['file']}')")
        assert database.execute(sql).fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("values", "kind", "note"),
    [
        (["1", "2", ""], "BIGINT", None),
        (["00123", "4"], "VARCHAR", None),
        (["12345678901234567890", "4"], "VARCHAR", None),
        (["2025-01-31", "2024-12-01"], "DATE", None),
        (["01/31/2025", "01/02/2025"], "DATE", "x: dates are read month first"),
        (["31 Jan 2025", "1 Feb 2025"], "DATE", None),
        (["Jan 5, 2025", "March  12, 2025"], "DATE", None),
        (["5.1.2025 7:05", "31.12.24  17:30"], "TIMESTAMP", None),
        (["5.1.2025", "31.12.24  17:30"], "TIMESTAMP", None),
        (["yes", "no"], "VARCHAR", None),
    ],
)
def test_a_column_is_what_all_its_values_are(tmp_path: Path, values: list[str], kind: str, note: str | None) -> None:
    lines = "".join(f'{number},"{value}"\n' for number, value in enumerate(values))
    (table,) = converted(tmp_path, "t.csv", f"id,x\n{lines}".encode())["tables"]
    assert types(table)["x"] == kind
    assert [text for text in table["notes"] if text.startswith("x: ") and "signs" not in text] == (
        [note] if note else []
    )


def test_a_value_is_read_only_if_it_has_the_shape() -> None:
    read = DateReading("DATE", "x", r"^\d+$", "error('read')").value_sql
    assert duckdb.execute(f"SELECT {read} FROM (VALUES ('a'), (NULL)) AS t(x)").fetchall() == [(None,), (None,)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_fields_may_hold_anything(tmp_path: Path, delimiter: str) -> None:
    header = delimiter.join(["Order ID", '"He said ""yes"""', "", "order id"])
    body = delimiter.join(["1", f'"a{delimiter} b\nline"', "x", "2"])
    (table,) = converted(tmp_path, "t.csv", f"{header}\n{body}\n{body}\n".encode())["tables"]
    assert list(types(table)) == ["Order ID", 'He said "yes"', "column_3", "order id_2"]
    assert rows(table)[0] == (1, f"a{delimiter} b\nline", "x", 2)


@pytest.mark.parametrize(
    ("body", "read", "notes"),
    [
        (b'1,5"" pipe\n2,"x"\n', [(1, '5"" pipe'), (2, "x")], []),
        (
            b'1,x\n"2,y\n3,z\n',
            [(1, "x")],
            ["it has an odd number of quotation marks: what follows one of them may be missing"],
        ),
        (b"1,1.5\n2,NaN\n3,n/a\n", [(1, 1.5), (2, None), (3, None)], []),
        (b"1,x\n2,y,z\n", [(1, "x")], ["1 row cannot be read, the first is '2,y,z'"]),
    ],
)
def test_what_is_not_read_is_a_note(
    tmp_path: Path, body: bytes, read: list[tuple[object, ...]], notes: list[str]
) -> None:
    (table,) = converted(tmp_path, "t.csv", b"a,b\n" + body)["tables"]
    assert (rows(table), table["notes"]) == (read, notes)


def test_a_wide_table_is_read(tmp_path: Path) -> None:
    wide = "\n".join(",".join(str(column + row) for column in range(120)) for row in range(3))
    (table,) = converted(tmp_path, "t.csv", wide.encode())["tables"]
    assert rows(table) == [tuple(range(row, row + 120)) for row in range(3)]


def test_a_table_that_needs_too_much_memory_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_MEMORY", "8MB")
    with pytest.raises(MemoryError):
        converted(tmp_path, "t.csv", ("word," * 400 + "\n").encode() * 3)


_PRINTED = st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from('\t\n",;|')


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.text(_PRINTED, max_size=20), st.integers(-(10**12), 10**12)), min_size=1, max_size=20))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, int]]) -> None:
    import csv

    target = io.StringIO(newline="")
    csv.writer(target).writerows([("name", "number"), *((f"n{text}", n) for text, n in written)])
    content = target.getvalue().encode("utf-8", "replace")
    (table,) = converted(tmp_path_factory.mktemp("csv"), "t.csv", content)["tables"]
    assert [row[1] for row in rows(table)] == [number for _, number in written]


def test_spreadsheets_sqlite_json_and_parquet_are_tables(tmp_path: Path) -> None:
    book = xlsx_bytes({"Sheet1": [["Name", "Amount"], ["a", 1.5], ["b", 2]], "Costs 2025": [["k", "v"], ["x", 7]]})
    sheets = converted(tmp_path, "Book.xlsx", book)["tables"]
    assert [(table["name"], table["rows"]) for table in sheets] == [("book", 2), ("book_costs_2025", 1)]
    assert rows(sheets[0]) == [("a", 1.5), ("b", 2.0)]
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE people (name TEXT, age INTEGER)")
        database.execute("INSERT INTO people VALUES ('Ann', 41)")
    database.close()
    (people,) = converted(tmp_path, "crm.db", (tmp_path / "x.db").read_bytes())["tables"]
    assert (people["name"], rows(people)) == ("crm_people", [("Ann", 41)])
    listed = json.dumps([{"a": 1, "b": {"c": [1, 2]}}, {"a": 2, "b": None}]).encode()
    (table,) = converted(tmp_path, "list.json", listed)["tables"]
    assert [row[0] for row in rows(table)] == [1, 2]
    assert types(table)["b"] == "VARCHAR"
    (lines,) = converted(tmp_path, "lines.jsonl", b'{"a": 1}\n{"a": 2}\n')["tables"]
    (again,) = converted(tmp_path, "again.parquet", Path(lines["file"]).read_bytes())["tables"]
    assert rows(lines) == rows(again) == [(1,), (2,)]


def places(report: JsonObject) -> dict[str, str]:
    return dict(text_passages(Path(report["document"]["file"]).read_text()))


def test_documents_keep_pages_and_headings(tmp_path: Path) -> None:
    pdf = converted(tmp_path, "lease.pdf", pdf_bytes(["Rent is 900 EUR", "# Notice: six months"]))
    assert places(pdf) == {"p. 1": "Rent is 900 EUR", "p. 2": "# Notice: six months"}
    assert pdf["document"]["pages"] == 2
    docx = converted(
        tmp_path, "contract.docx", docx_bytes([("Liability", "Capped at 5 million."), ("Term", "Two years.")])
    )
    assert places(docx) == {"Liability": "Capped at 5 million.", "Term": "Two years."}
    html = b"<head><title>x</title><script>alert(1)</script></head><body><h1>Prices</h1><p>Tea: 4 EUR</p></body>"
    assert places(converted(tmp_path, "page.html", html)) == {"Prices": "Tea: 4 EUR"}
    text = converted(tmp_path, "note.md", "# Recall\n\nThe sink, lot 7.\n".encode("utf-16"))
    assert (text["document"]["title"], places(text)) == ("Recall", {"Recall": "The sink, lot 7."})


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


async def test_a_zipped_folder_is_its_members(tmp_path: Path) -> None:
    members = {
        "q1/orders.csv": b"a,b\n1,2\n",
        "docs/notes.txt": b"hello there",
        "../x.txt": b"out",
        "__MACOSX/x": b"?",
        "bad.pdf": b"no",
    }
    locked = bytearray(zipped({"a.md": b"x"}))
    locked[6] |= 1  # in the header of the member, and in the list at the end
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    given = {"all.zip": zipped(members), "broken.zip": b"PK broken", "locked.zip": bytes(locked)}
    reports = await read_by_cache(tmp_path, given)
    assert [(report.name, report.problem) for report in reports] == [
        ("all.zip/q1/orders.csv", None),
        ("all.zip/docs/notes.txt", None),
        ("all.zip/bad.pdf", "it is no PDF that can be read: Failed to load document (PDFium: Data format error)."),
        ("broken.zip", "it can't be unpacked: File is not a zip file"),
        ("locked.zip/a.md", "it is encrypted"),
    ]
    written = [report.document["file"] for report in reports if report.document]
    assert all(Path(file).resolve().is_relative_to(tmp_path / "cache") for file in written)


def test_delimiters_at_the_ends_of_all_lines_are_no_columns(tmp_path: Path) -> None:
    (table,) = converted(tmp_path, "ends.csv", b"a;b;;\n1;x;;\n2;y;;\n")["tables"]
    assert list(types(table)) == ["a", "b"]


@pytest.mark.parametrize("place", ["its name", "its data"])
async def test_a_damaged_member_of_a_zipped_folder_costs_no_other_one(tmp_path: Path, place: str) -> None:
    content = bytearray(zipped({"bäd.txt": b"hello there", "good.txt": b"hello there"}, zipfile.ZIP_LZMA))
    name = "bäd.txt".encode()
    at = content.index(name) + (1 if place == "its name" else len(name) + 9)  # behind what LZMA says of itself
    content[at : at + 2] = b"\xff\xff"
    bad, good = await read_by_cache(tmp_path, {"all.zip": bytes(content)})
    assert bad.name == "all.zip/bäd.txt"
    assert str(bad.problem).startswith("it can't be unpacked: ")
    assert (good.name, good.problem) == ("all.zip/good.txt", None)


async def test_a_zipped_folder_takes_no_more_than_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "_ZIP_TIME", timedelta())
    (report,) = await read_by_cache(tmp_path, {"all.zip": zipped({"a.md": b"hello there"})})
    assert report.problem == "it can't be read: the files before it took too long"


async def read_by_cache(tmp_path: Path, files: dict[str, bytes]) -> list[FileReport]:
    (tmp_path / "given").mkdir()
    for name, content in files.items():
        (tmp_path / "given" / name).write_bytes(content)
    cache = FileCache(tmp_path / "cache")
    return await cache.reports([local_file(name, tmp_path / "given" / name) for name in files], "test", copy_file)


def compound(*streams: str) -> bytes:
    """Returns a compound file of empty streams: the wrapping of a spreadsheet with a password."""
    free, end = 0xFFFFFFFF, 0xFFFFFFFE

    def entry(name: str, kind: int, right: int = free, child: int = free) -> bytes:
        raw = f"{name}\0".encode("utf-16-le")
        links = struct.pack("<HBBIII", len(raw), kind, 1, free, right, child)
        return raw.ljust(64, b"\0") + links + struct.pack("<36xIQ", end, 0)

    sign = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    version, sectors = (62, 3, 0xFFFE, 9, 6), (0, 1, 1, 0, 4096, end, 0, end, 0)
    head = struct.pack("<8s16x5H6x9I109I", sign, *version, *sectors, 0, *[free] * 108)
    table = struct.pack("<128I", 0xFFFFFFFD, end, *[free] * 126)
    entries = [entry("Root Entry", 5, child=1)]
    entries += [entry(name, 2, at + 2 if at + 1 < len(streams) else free) for at, name in enumerate(streams)]
    return head + table + b"".join(entries).ljust(512, b"\0")


# The trailer asks for the standard encryption with a password that nobody gave.
ENCRYPTED_PDF = pdf_bytes(["x"]).replace(
    b"/Root", b"/Encrypt<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -4>>/ID[<00><00>]/Root" % (b"11" * 32, b"22" * 32)
)


def database(tables: int) -> bytes:
    with sqlite3.connect(":memory:") as made:
        made.executescript("".join(f"CREATE TABLE t{number} (a);" for number in range(tables)))
        return made.serialize()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"", "it is empty"),
        ("a.csv", bytes(range(256)) * 40, "it is no text: it holds binary data"),
        ("a.pdf", b"%PDF-1.7 broken", "it is no PDF that can be read"),
        ("a.xlsx", b"PK\x03\x04 broken", "it is no spreadsheet that can be read"),
        ("a.db", b"no database at all" * 100, "it is no SQLite database that can be read"),
        ("a.parquet", b"PAR1 broken", "it can't be read: Invalid Input Error: File 'a.parquet' too small"),
        *(("a.json", broken, "it is no whole JSON") for broken in (b"[1,", b'[{"a": 1}, {"a": 2}', b"1 2")),
        ("a.jsonl", b"[1,", "it can't be read: Binder Error: json_read expected records"),
        ("a.exe", b"MZ", "files of the kind '.exe' are not read"),
        ("a.xlsx", compound("EncryptionInfo", "EncryptedPackage"), "it is encrypted"),
        ("a.pdf", ENCRYPTED_PDF, "it is encrypted"),
        ("a.db", database(501), "it has 501 tables, at most 500 are read"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    report = converted(tmp_path, name, content)
    assert (report["tables"], report["document"]) == ([], None)
    assert report["problem"].startswith(problem)


def replaced(package: bytes, old: bytes, new: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(package)) as source:
        return zipped({name: source.read(name).replace(old, new) for name in source.namelist()})


def test_an_index_leaves_no_file_open_or_half_written(tmp_path: Path) -> None:
    text, index = tmp_path / "document.txt", tmp_path / "index"
    text.write_text("# Pears\n\nThey keep.")
    before = len(os.listdir("/proc/self/fd"))
    assert [index_documents([["a.md", "Pears", str(text)]], str(index)) for _ in range(3)] == [1, 1, 1]
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["document.txt", "index"]


async def test_a_copy_that_another_process_deletes_while_it_is_read_is_no_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = tmp_path / "a.csv", FileCache(tmp_path / "cache")
    source.write_text("a,b\n1,2\n")
    call = ChildProcesses.call

    async def late(*asked: Any) -> Any:
        shutil.rmtree(tmp_path / "cache")
        return await call(*asked)

    with monkeypatch.context() as patched:
        patched.setattr(ChildProcesses, "call", late)
        (lost,) = await cache.reports([local_file("a.csv", source)], "test", copy_file)
    (found,) = await cache.reports([local_file("a.csv", source)], "test", copy_file)
    assert (bool(lost.tables), bool(lost.problem), found.problem) == (False, True, None)
