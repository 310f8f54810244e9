"""What comes out of a child process is bounded in sum: reports on files, indexes, lines, and what is left on a disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from activities.bounded.child_processes import BoundExceeded, Failed
from activities.contracts.run_contracts import ExpandInput, RunRef
from activities.files import document_index, file_cache
from activities.files.document_index import index_documents, read_text_from, search_documents
from activities.files.file_cache import FileCache, copy_file, local_file
from activities.files.file_reports import FileReport
from activities.files.report_room import all_fitted, fitted, length
from activities.questions.items import Expansions
from activities.store.store_urls import open_store
from activities.teams.stored_teams import StoredTeams, catalogue
from activities.teams.team_files import TeamFiles
from activities.tools.documents import DocumentOptions, DocumentTools
from activities.tools.files import FolderFiles
from activities.tools.sql.sql_tools import ListTables, TableTools
from activities.tools.sql.table_words import TableOptions, all_described
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.activity.files.test_conversion import zipped
from tests.corpus.loop_monitor import monitored

LONG = 0.5  # seconds of silence that are too many here: all of it happens elsewhere


def column(name: str, values: int, characters: int) -> JsonObject:
    reading = {"written": "x" * characters, "value": "x", "decision": "text", "why": "it is one", "unit": ""}
    shown = [f"{n} ".ljust(characters, "x") for n in range(values)]
    return {"name": name, "sql": name, "type": "VARCHAR", "values": shown, "more": 0, "reading": reading, "unit": ""}


def report(name: str, columns: list[JsonObject], tables: int = 1) -> JsonObject:
    made = [
        {"name": f"{name}_{n}", "file": f"/cache/{name}/{n}.parquet", "rows": 200, "columns": columns, "notes": []}
        for n in range(tables)
    ]
    return {"name": f"{name}.csv", "tables": made, "document": None, "problem": None}


WIDE = [column(f"c{n}", 200, 300) for n in range(40)]


def test_reports_have_a_ceiling_in_sum_and_every_file_keeps_its_place() -> None:
    files = [report(f"f{n}", WIDE) for n in range(24)]
    room = length(files[0]) * 2
    fitting = all_fitted(files, room)
    assert sum(map(length, fitting)) <= room
    assert [each["name"] for each in fitting] == [each["name"] for each in files]
    for each in fitting:
        (table,) = each["tables"]
        assert [found["name"] for found in table["columns"]] == [found["name"] for found in WIDE]
        first = table["columns"][0]
        assert len(first["values"]) + first["more"] == 200
        assert len(first["values"]) >= 5


def test_what_fits_is_kept_whole_and_leaves_its_room_to_the_next() -> None:
    small, large = report("small", [column("a", 3, 10)]), report("large", WIDE)
    assert all_fitted([small, large], length(small) + length(large)) == [small, large]
    assert fitted(small, length(small)) == small


@pytest.mark.parametrize(("columns", "tables"), [(500, 1), (20, 500)])
def test_more_columns_or_tables_than_have_room_are_counted(columns: int, tables: int) -> None:
    room = 20_000
    found = fitted(report("f", [column(f"column_{n}", 5, 60) for n in range(columns)], tables), room)
    assert length(found) <= room + 1000
    kept = found["tables"]
    assert kept
    assert kept[0]["left_out"] == columns - len(kept[0]["columns"])
    notes = " ".join(kept[0]["notes"])
    assert ("more columns are not listed" in notes) == (kept[0]["left_out"] > 0)
    assert (f"{tables - len(kept)} more tables" in notes) == (len(kept) < tables)


@pytest.mark.parametrize("kind", ["a zip", "files"])
async def test_reports_of_wide_files_fit_and_are_queried_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    room = 30_000
    monkeypatch.setattr(file_cache, "RUN_CHARS", room)
    head = ",".join(f"c{c}" for c in range(20))
    members = dict[str, bytes]()
    for n in range(2):
        rows = (",".join(f"{n}-{r}-{c} ".ljust(200, "x") for c in range(20)) for r in range(60))
        members[f"f{n}.csv"] = "\n".join([head, *rows, ""]).encode()
    given = {"wide.zip": zipped(members)} if kind == "a zip" else members
    for name, content in given.items():
        (tmp_path / name).write_bytes(content)
    cache = FileCache(tmp_path / "cache")
    for _ in range(2):  # as they are made, and as they are read again
        reports = await cache.reports([local_file(name, tmp_path / name) for name in given], "run", copy_file)
        assert sum(length(each.tables) for each in reports) < room * 1.2
        assert [table["rows"] for each in reports for table in each.tables] == [60, 60]
    (on_disk, *others) = (file.stat().st_size for file in (tmp_path / "cache").rglob("report.json"))
    assert others or on_disk < room * 1.2  # of a zip it is one


class Read:
    """The files of a run that were read."""

    def __init__(self, reports: list[FileReport]) -> None:
        self._reports = reports

    async def reports(self) -> list[FileReport]:
        return self._reports


async def test_tables_of_two_thousand_files_are_listed_without_silence(tmp_path: Path) -> None:
    wide = all_fitted([report("f", WIDE)], 8000)[0]["tables"][0]
    tables = [{**wide, "own": "f", "name": f"f_{n}", "source": f"f{n}.csv"} for n in range(limits.DATA_FILES)]
    reports = [FileReport(name=f"f{n}.csv", tables=[table]) for n, table in enumerate(tables)]
    files: Any = Read(reports)
    source = TableTools(FolderFiles(tmp_path, "", FileCache(tmp_path)), {"list": "sql_tables"}, TableOptions())
    tools = await source.open()
    async with monitored() as monitor:
        shown = await catalogue(tools, files)
        listed = await source._list(ListTables(), ToolContext(files=files))
        one = await source._list(ListTables(table="f_7"), ToolContext(files=files))
    assert monitor.longest < LONG
    assert len(shown) < 8000
    assert len(listed.text) <= limits.TOOL_OUTPUT_CHARS
    assert "more tables: f_1" in listed.text
    assert one.text.startswith("table f_7 (c0 ")


async def test_a_table_of_many_long_values_is_listed_without_silence(tmp_path: Path) -> None:
    table = {**report("f", [column(f"c{n}", 200, 300) for n in range(500)])["tables"][0], "source": "f.csv"}
    files: Any = Read([FileReport(name="f.csv", tables=[{**table, "name": f"f_{n}"} for n in range(50)])])
    source = TableTools(FolderFiles(tmp_path, "", FileCache(tmp_path)), {"list": "sql_tables"}, TableOptions())
    await source.open()
    async with monitored() as monitor:
        await source._list(ListTables(), ToolContext(files=files))
    assert monitor.longest < LONG


def test_of_many_tables_no_more_is_read_than_is_shown() -> None:
    table = report("f", WIDE)["tables"][0]
    shown = [{**table, "source": "f.csv", "name": f"f_{n}"} for n in range(250)]
    unread = [{"name": f"f_{n}"} for n in range(250, limits.DATA_FILES)]  # whoever reads one misses its columns
    words = all_described([*shown, *unread], TableOptions(), 20_000)
    assert "more tables: " in words[-2]


def text_file(folder: Path, text: str, name: str = "document.txt") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_long_heading_makes_no_long_index(tmp_path: Path) -> None:
    text = "# " + "h " * 50_000 + "\n\n" + "some words. " * 80_000
    index_documents([["a.md", "a title", text_file(tmp_path, text)]], str(tmp_path / "index"))
    assert (tmp_path / "index").stat().st_size < 8 * len(text)
    assert search_documents(str(tmp_path / "index"), '"words"', 5)["hits"][0][1] == ("h " * 150)[:300]


def test_a_text_that_grows_in_the_index_is_left_out_and_harms_no_other(tmp_path: Path) -> None:
    bad = text_file(tmp_path, "# h\n\nwind\n\n" * 40_000, "bad.txt")
    good = text_file(tmp_path, "# Wind\n\nThe wind blows.", "good.txt")
    index = str(tmp_path / "index")
    files = [["bad.md", "t" * 200, bad], ["good.md", "good", good]]
    assert index_documents(files, index) == 1
    assert search_documents(index, '"wind"', 5) == {
        "hits": [("good.md", "Wind", "The wind blows.")],
        "left_out": ["bad.md"],
    }


def test_documents_beyond_the_room_of_an_index_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_index, "_INDEXED_CHARS", 300)
    files = [[f"{n}.md", "t", text_file(tmp_path, "wind " * 50, f"{n}.txt")] for n in range(3)]
    assert index_documents(files, str(tmp_path / "index")) == 1
    assert search_documents(str(tmp_path / "index"), '"wind"', 5)["left_out"] == ["1.md", "2.md"]


def test_an_index_that_fails_leaves_nothing(tmp_path: Path) -> None:
    text = text_file(tmp_path, "wind " * 100_000)
    with pytest.raises(FileNotFoundError):
        index_documents([["a.md", "a", text], ["b.md", "b", str(tmp_path / "gone.txt")]], str(tmp_path / "index"))
    assert [path.name for path in tmp_path.iterdir()] == ["document.txt"]


async def test_an_index_that_failed_is_not_tried_at_each_search_and_its_parts_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.md").write_text("# Wind\n\nThe wind blows.")
    cache = FileCache(tmp_path / "cache")
    reports = await cache.reports([local_file("a.md", tmp_path / "a.md")], "run", copy_file)
    assert reports[0].document
    text = Path(reports[0].document["file"])
    text.rename(tmp_path / "away")
    with pytest.raises(Failed, match="No such file"):
        await cache.index(reports, "run")
    (tmp_path / "away").rename(text)
    with pytest.raises(BoundExceeded, match="No such file"):
        await cache.index(reports, "run")
    folder = next((tmp_path / "cache").glob("*/indexes"))
    old, new = folder / "x.sqlite.1", folder / "x.sqlite.2"
    for part in (old, new):
        part.write_text("half of an index")
    os.utime(old, (0, 0))
    fresh = FileCache(tmp_path / "cache")
    assert (await fresh.search(reports, '"wind"', 5, "run"))["hits"] == [["a.md", "Wind", "The wind blows."]]
    assert not old.exists()
    assert new.exists()


async def test_indexes_are_deleted_one_by_one_when_the_cache_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FileCache(tmp_path / "cache")
    found = list[list[FileReport]]()
    for n in range(3):
        (tmp_path / f"{n}.md").write_text(f"# Wind\n\nThe wind blows {n}. " + "wind " * 20_000)
        found.append(await cache.reports([local_file("a.md", tmp_path / f"{n}.md")], "run", copy_file))
    indexes = [await cache.index(reports, "run") for reports in found]
    for at, made in enumerate([*(Path(reports[0].made_files[0]).parent for reports in found), *indexes]):
        os.utime(made, (at, at))
    monkeypatch.setattr(file_cache, "_CACHE_BYTES", indexes[2].stat().st_size + 10_000)
    cache._make_room()
    assert [index.exists() for index in indexes] == [False, False, True]


async def test_a_document_that_is_not_in_the_index_is_found_and_read_beside_it(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text(f"# {'t' * 200}\n\n" + "# h\n\nwind\n\n" * 40_000)
    (tmp_path / "good.md").write_text("# Wind\n\nThe wind blows.")
    tools = DocumentTools(FolderFiles(tmp_path, "*.md", FileCache(tmp_path / "cache")), TOOLS, DocumentOptions())
    search, read = await tools.open()
    output = await search.run(search.arguments(query="blows"), ToolContext(run_id="run"))
    assert "[good.md] Wind: The wind blows." in output.text
    assert output.text.endswith("Too long to be searched, but can be read: bad.md")
    text = await read.run(read.arguments(document_id="bad.md"), ToolContext(run_id="run"))
    assert text.text.startswith("# ttt")


TOOLS = {"search_documents": "document_search", "read_document": "document_read"}


def test_a_long_document_is_cut_and_says_how_much_is_missing(tmp_path: Path) -> None:
    file = text_file(tmp_path, "# A\n\n" + "a" * 300_000 + "\n\n# B\n\nend")
    whole = read_text_from(file, "")["text"]
    assert len(whole) < 200_000
    assert whole.endswith("characters are left out]")
    assert read_text_from(file, "b")["text"] == "# B\n\nend"
    assert read_text_from(file, "C") == {"known": ["A", "B"]}


LINES = 2_000_000


@pytest.fixture
def expansions(tmp_path: Path) -> Expansions:
    store = open_store(tmp_path / "store")
    return Expansions(store, StoredTeams(store, TeamFiles([], FileCache(tmp_path / "cache"))))


async def test_items_of_a_text_of_many_lines_are_read_elsewhere(tmp_path: Path, expansions: Expansions) -> None:
    text = ("a\n\n" * LINES).encode()
    ref = await expansions.store.put_output("run", text)
    run = RunRef(run_id="run", first_run_id="first")
    attached: Any = {"name": "big.txt", "ref": ref, "bytes": len(text)}
    call = ExpandInput.model_validate(
        {"run": run.model_dump(), "plan_ref": "", "template": "t", "room": 1000, "attachments": [attached]}
    )
    async with monitored() as monitor:
        items, count, problem = await expansions._items(call, "lines:big.txt")
    assert (len(items), items[0], count, problem) == (1000, "a", LINES, "")
    assert monitor.longest < LONG
    assert await expansions._items(call, "lines:none.txt") == ([], 0, "")


async def test_a_description_of_many_files_and_tables_is_matched_elsewhere(tmp_path: Path) -> None:
    keys = 300
    (tmp_path / "data.toml").write_text("".join(f"[tables.n{n}]\nheader = 1\n" for n in range(keys)))
    files = [local_file("data.toml", tmp_path / "data.toml")]
    for n in range(keys):
        files.append(file_cache.FileEntry(name=f"f{n}.csv", problem="it is not there"))
    (tmp_path / "real.csv").write_text("a,b\n1,2\n")
    files.append(local_file("real.csv", tmp_path / "real.csv"))
    async with monitored() as monitor:
        reports = await FileCache(tmp_path / "cache").reports(files, "run", copy_file)
    assert monitor.longest < LONG
    toml = next(each for each in reports if each.name == "data.toml")
    assert len(toml.mistakes) == 9
    assert toml.mistakes[-1] == f"and {keys - 8} more"
