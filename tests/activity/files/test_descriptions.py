"""`data.toml`: what it may say, what is said about a wrong one, and that it reaches the reading of tables."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from activities.files.descriptions import (
    DESCRIPTION_BYTES,
    DescriptionRefused,
    KnownTable,
    mistakes,
    read_description,
)
from activities.files.file_cache import FileCache, copy_file, local_file
from activities.files.file_reports import FileReport
from activities.files.manifest import RunFiles, adopt_files, found_files, put_files, read_manifest, unread_of
from activities.store.store_urls import open_store
from activities.teams.stored_teams import catalogue
from activities.tools.files import FolderFiles
from activities.tools.sql.sql_tools import TableTools
from activities.tools.sql.table_words import TableOptions
from activities.tools.tool import ToolContext
from tests.activity.files.test_conversion import zipped

SALES = "a title\nregion;amount\nNorth;1.500\nSouth;x\n"
WHOLE = """
[words]
revenue = "amount without returns"

[tables."sales.csv"]
description = "orders of the shop"

[tables."sales.csv".columns.amount]
type = "number"
decimal = "."
missing = ["x"]
unit = "kEUR"
description = "before returns"
"""


def test_a_description_is_read_with_the_lines_of_its_keys() -> None:
    written = read_description(WHOLE)
    assert written.says.words == {"revenue": "amount without returns"}
    assert written.says.tables["sales.csv"].columns["amount"].unit == "kEUR"
    assert written.lines["tables", "sales.csv"] == 5
    assert written.lines["tables", "sales.csv", "columns", "amount", "unit"] == 12


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[tables.s]\nheader = three\n", "line 2, column 10: it is no TOML"),
        ("[tables.s]\nheader = 0\n", "line 2: 'header' input should be greater than or equal to 1: write the number"),
        ("[tables.s]\nheader = [1, 2, 3, 4]\n", "line 2: 'header'"),
        ("[tables.s]\ndecimal = ';'\n", "line 2: 'decimal' input should be ',' or '.': write \",\" or \".\""),
        ("[tables.s]\n\nheadr = 3\n", "line 3: there is no field 'headr', did you mean 'header'?"),
        ("[tables.s.columns.a]\ntype = 'numbr'\n", "line 2: 'type' input should be"),
        ("[tables.s.columns.a]\ntypo = 'x'\n", "line 2: there is no field 'typo', did you mean 'type'?"),
        ("[tables.sales.csv]\nheader = 1\n", 'line 1: a file is named in quotes: [tables."sales.csv"]'),
        ("[table.s]\nheader = 1\n", "line 1: there is no field 'table', did you mean 'tables'?"),
        ("[words]\nrevenue = 3\n", "line 2: 'words' input should be a valid string: write a text for each word"),
        ("tables = 3\n", "line 1: 'tables' input should be a valid dictionary"),
        ("a" * (DESCRIPTION_BYTES + 1), "it has more than 256 KiB"),
        ("x = " + "[" * 5000, "it is no TOML"),
    ],
)
def test_a_wrong_description_is_refused_with_its_line_and_what_to_write(text: str, complaint: str) -> None:
    with pytest.raises(DescriptionRefused) as refused:
        read_description(text)
    assert str(refused.value).startswith(complaint) or complaint in str(refused.value)


def test_what_fits_no_table_or_column_is_named() -> None:
    written = read_description(
        '[tables."sale.csv"]\nheader = 1\n[tables."sales.csv".columns.Amount]\ntype = "text"\n'
        '[tables.both]\nheader = 1\n[tables."notes.md"]\ndescription = "x"\n'
    )
    files = ["sales.csv", "a/both.csv", "b/both.csv", "notes.md"]
    tables = [
        KnownTable("sales.csv", "sales", ["region", "amount"]),
        KnownTable("a/both.csv", "both", ["x"]),
        KnownTable("b/both.csv", "both", ["x"]),
    ]
    assert mistakes(written, files, tables) == [
        "line 1: there is no table 'sale.csv', did you mean 'sales.csv'?",
        "line 3: 'sales.csv' has no column 'Amount', did you mean 'amount'?",
        "line 5: several files have a table 'both': name its file, as in 'a/both.csv/both'",
        "line 7: 'notes.md' holds no table",
    ]


def test_a_table_is_named_by_its_file_by_both_or_alone() -> None:
    says = read_description(
        '[tables."b.xlsx"]\nheader = 2\n[tables."b.xlsx/b_two"]\ndecimal = ","\n[tables.b_three]\nheader = 4\n'
    ).says
    described = says.of_file("b.xlsx", ["b.xlsx", "c.csv"])
    assert described is not None
    said = {
        name: (described.of_table(name).header, described.of_table(name).decimal)
        for name in ("b_one", "b_two", "b_three")
    }
    assert said == {"b_one": (2, None), "b_two": (2, ","), "b_three": (4, None)}
    other = says.of_file("c.csv", ["b.xlsx", "c.csv"])
    assert other is not None
    assert (other.of_table("c").header, other.of_table("b_three").header) == (None, 4)


def test_words_alone_change_nothing_of_the_reading() -> None:
    says = read_description(
        '[tables."s.csv"]\ndescription = "x"\n[tables."s.csv".columns."a\\"b"]\ndescription = "y"'
    ).says
    described = says.of_file("s.csv", ["s.csv"])
    assert described is not None
    assert described.reading == ""
    unit = read_description('[tables."s.csv".columns.a]\nunit = "EUR"').says.of_file("s.csv", ["s.csv"])
    assert unit is not None
    assert "EUR" in unit.reading


async def read(cache: FileCache, folder: Path) -> dict[str, FileReport]:
    files = [local_file(*file) for file in found_files([folder])]
    return {report.name: report for report in await cache.reports(files, "test", copy_file)}


def column(report: FileReport, name: str) -> dict[str, Any]:
    (found,) = [column for column in report.tables[0]["columns"] if column["name"] == name]
    return dict(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "sales.csv").write_text(SALES)
    return folder


async def test_a_changed_description_has_effect_though_the_file_was_read_before(folder: Path, tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    plain = await read(cache, folder)
    assert column(plain["sales.csv"], "amount")["type"] == "VARCHAR"
    (folder / "data.toml").write_text(WHOLE)
    said = await read(cache, folder)
    amount = column(said["sales.csv"], "amount")
    assert (amount["range"], amount["reading"]["unit"], amount["about"]) == (["1.5", "1.5"], "kEUR", "before returns")
    assert said["sales.csv"].tables[0]["about"] == "orders of the shop"
    assert dict(said["data.toml"].words) == {"revenue": "amount without returns"}
    (folder / "data.toml").write_text(WHOLE.replace('decimal = "."', 'decimal = ","'))
    comma = await read(cache, folder)
    assert column(comma["sales.csv"], "amount")["range"] == ["1500", "1500"]
    (folder / "data.toml").unlink()
    assert await read(cache, folder) == plain


async def test_a_wrong_description_is_a_warning_and_the_files_are_read(folder: Path, tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    (folder / "data.toml").write_text("[tables]\nx = [\n")
    reports = await read(cache, folder)
    assert len(reports["sales.csv"].tables) == 1
    assert "The files are read without it" in (reports["data.toml"].problem or "")
    assert unread_of(list(reports.values())).startswith("1 of 2 files can't be read: data.toml (")
    (folder / "data.toml").write_text('[tables."sale.csv"]\nheader = 1\n[words]\na = "b"\n')
    reports = await read(cache, folder)
    warning = "data.toml: line 1: there is no table 'sale.csv', did you mean 'sales.csv'?"
    assert unread_of(list(reports.values())) == warning
    assert dict(reports["data.toml"].words) == {"a": "b"}
    (folder / "data.toml").write_bytes(b"\xff\xfe\x00")
    assert "no text in UTF-8" in ((await read(cache, folder))["data.toml"].problem or "")


async def test_only_the_description_of_the_folder_itself_counts(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "data.toml").write_text(WHOLE)
    reports = await read(FileCache(tmp_path / "cache"), folder)
    assert "only the data.toml of the folder itself counts" in (reports["sub/data.toml"].problem or "")


async def test_files_of_a_zipped_folder_are_described_by_their_paths(folder: Path, tmp_path: Path) -> None:
    (folder / "all.zip").write_bytes(zipped({"a.csv": SALES.encode(), "b.csv": SALES.encode()}))
    (folder / "data.toml").write_text('[tables."all.zip/a.csv"]\nheader = []\n')
    reports = await read(FileCache(tmp_path / "cache"), folder)
    names = {
        name: [each["name"] for each in report.tables[0]["columns"]]
        for name, report in reports.items()
        if report.tables
    }
    assert names["all.zip/a.csv"] == ["column_1", "column_2"]
    assert names["all.zip/b.csv"] == ["region", "amount"]
    assert list(reports["data.toml"].mistakes) == []


async def test_it_travels_with_the_run_and_its_words_reach_planner_and_workers(folder: Path, tmp_path: Path) -> None:
    (folder / "data.toml").write_text(WHOLE)
    store = open_store(tmp_path / "store")
    uploaded = await read_manifest(store, await put_files(store, found_files([folder])))
    ref = await adopt_files(store, "run-1", [uploaded])
    shutil.rmtree(folder)
    cache = FileCache(tmp_path / "cache")
    files = RunFiles(store, cache, "run-1", ref)
    source = TableTools(FolderFiles(tmp_path, "", cache), {"list": "sql_tables", "query": "sql_query"}, TableOptions())
    listed, query = await source.open()
    known = await catalogue([listed], files)
    assert known.splitlines()[0] == "- a word of the owner of these data: revenue = amount without returns"
    assert "orders of the shop" in known
    assert "of table sales: amount: before returns" in known
    assert "amount: 1.5 to 1.5 kEUR" in known
    context = ToolContext(files=files)
    shown = await listed.run(listed.arguments(), context)
    assert "revenue = amount without returns" in shown.text
    assert "Note: amount: before returns" in shown.text
    answer = await query.run(query.arguments(sql="SELECT sum(amount) FROM sales"), context)
    assert "| 1.5 |" in answer.text
    assert [line.partition(" (")[0] for line in answer.readings] == ["sales.amount: '1.500' is 1.5, in kEUR"]
    every = await query.run(query.arguments(sql="SELECT * FROM sales"), context)
    assert len(every.readings) == 2
    count = await query.run(query.arguments(sql="SELECT count(*) FROM sales"), context)
    assert count.readings == []


async def test_a_team_has_a_description_beside_its_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sales.csv").write_text(SALES)
    files = FolderFiles(tmp_path, "data/*.csv", FileCache(tmp_path / "cache"))
    source = TableTools(files, {"list": "sql_tables"}, TableOptions(tables="data/*.csv"))
    (listed,) = await source.open()
    assert "revenue" not in (await listed.run(listed.arguments(), ToolContext())).text
    (tmp_path / "data" / "data.toml").write_text(WHOLE)
    assert "orders of the shop" in (await listed.run(listed.arguments(), ToolContext())).text
    (tmp_path / "data" / "data.toml").write_text(WHOLE.replace("orders of", "sales of"))
    assert "sales of the shop" in (await listed.run(listed.arguments(), ToolContext())).text
    (tmp_path / "data" / "data.toml").write_text('[tables."x.csv"]\nheader = 1\n')
    assert await source.problems() == ["data.toml: line 1: there is no table 'x.csv': there are sales.csv, sales"]
