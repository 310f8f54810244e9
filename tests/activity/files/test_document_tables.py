"""Tables in web pages, Word files, Markdown and JSON: read like those of files, beside the document's text."""

import contextlib
import io
import json
import time
import zipfile
from pathlib import Path

import duckdb
import pytest

from activities.files.conversion import convert, convert_tables
from activities.files.document_tables import FoundTable, Span, SpannedRows, TooMany, document_tables
from activities.files.file_cache import FileCache, copy_file, local_file
from temporal_supervisor.supervision.base.json_object import JsonObject


def tables_in(tmp_path: Path, name: str, content: str | bytes) -> list[JsonObject]:
    source, out = tmp_path / "0f3a", tmp_path / "out"
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    found = convert_tables(str(source), name, str(out))
    return [*found["tables"]]


def found_in(tmp_path: Path, name: str, content: str | bytes) -> list[FoundTable]:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(document_tables(path, tmp_path))


def rows(table: JsonObject) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        return database.execute(f"SELECT * FROM '{table['file']}'").fetchall()


PAGE = """<html><head><meta charset="iso-8859-1"><title>x</title></head><body>
<table><tr><td>menu</td></tr><tr><td>imprint</td></tr></table>
<h2>Populations <em>2024</em></h2>
<table><thead><tr><th>Stadt<th>Einwohner</tr></thead>
<tr><td>Köln<td>1,085,<b>664</b><sup>[1]</sup><tr><td>Zürich <span style="display:none">zz</span><td>443,037</table>
<table><caption>Fees</caption><tr><th rowspan=2>who<th colspan=2>fee</tr><tr><th>2023<th>2024</tr>
<tr><td rowspan="2">A<td>1<td>2</tr><tr><td>3<td>4</tr><tr><td colspan=3>a note</td></tr></table>
<table><tr><td><table><tr><td>in<td>ner</tr><tr><td>x<td>5</tr></table><td>side</tr><tr><td>a<td>b</tr></table>
</body></html>"""


def test_tables_of_a_page_have_their_captions_spans_and_numbers(tmp_path: Path) -> None:
    cities, fees, inner = tables_in(tmp_path, "page.html", PAGE)
    assert [table["name"] for table in (cities, fees, inner)] == ["page_1", "page_2", "page_3"]
    assert cities["above"] == ["Populations 2024"]
    assert rows(cities) == [("Köln", 1085664), ("Zürich", 443037)]
    assert fees["above"][0] == "Fees"
    assert [column["name"] for column in fees["columns"]] == ["who", "fee 2023", "fee 2024"]
    assert rows(fees)[:2] == [("A", 1, 2), ("A", 3, 4)]
    assert "cells over several rows or columns are repeated in each of them" in fees["notes"]
    assert [column["name"] for column in inner["columns"]] == ["in", "ner"]


def test_the_text_of_a_document_stays_beside_its_tables(tmp_path: Path) -> None:
    source = tmp_path / "0f3a"
    source.write_text(PAGE)
    document = convert(str(source), "page.html", str(tmp_path / "out"))["document"]
    assert "1,085,664" in Path(document["file"]).read_text()


def test_cells_reach_into_rows_and_columns() -> None:
    grid = SpannedRows()
    assert grid.row([Span("a", 1, 3), Span("b", 2), Span("c", 1, 2)]) == ["a", "b", "b", "c"]
    assert grid.row([Span("d"), Span("e")]) == ["a", "d", "e", "c"]
    assert grid.row([Span("f")]) == ["a", "f"]
    assert grid.row([Span("g", 600)]) == ["g"] * 500


MARKDOWN = """# Prices

| who | fee | since |
|:---|---:|---|
| **a** `x` | 1,200 | 2024-01-02 |
| c \\| d | 13,400 | 2024-01-03 |

```
| not | a table |
|---|---|
| 1 | 2 |
```

name | n
--- | ---
[x](https://example.org) | 1

no | table
"""


def test_tables_of_markdown_are_those_that_it_shows(tmp_path: Path) -> None:
    prices, names = found_in(tmp_path, "notes.md", MARKDOWN)
    assert (prices.above, prices.header) == ("Prices", 1)
    assert prices.rows == [["who", "fee", "since"], ["a x", "1,200", "2024-01-02"], ["c | d", "13,400", "2024-01-03"]]
    assert names.rows == [["name", "n"], ["x", "1"]]
    first, _ = tables_in(tmp_path, "notes.md", MARKDOWN)
    assert [tuple(map(str, row)) for row in rows(first)] == [
        ("a x", "1200", "2024-01-02"),
        ("c | d", "13400", "2024-01-03"),
    ]


def test_a_long_table_of_markdown_keeps_all_rows(tmp_path: Path) -> None:
    lines = ["a|b", "-|-", *(f"{number}|x" for number in range(1234))]
    (table,) = found_in(tmp_path, "long.md", "\n".join(lines))
    assert [row[0] for row in table.rows] == ["a", *map(str, range(1234))]


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word_file(body: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {_W}><w:body>{body}</w:body></w:document>")
    return written.getvalue()


def cell(text: str, settings: str = "") -> str:
    return f"<w:tc><w:tcPr>{settings}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"


def test_tables_of_word_have_their_merged_cells(tmp_path: Path) -> None:
    merge, more, wide = '<w:vMerge w:val="restart"/>', "<w:vMerge/>", '<w:gridSpan w:val="2"/>'
    grid = [
        f"<w:trPr><w:tblHeader/></w:trPr>{cell('who')}{cell('year')}{cell('fee')}",
        f"{cell('A', merge)}{cell('2023')}{cell('1,200')}",
        f"{cell('', more)}{cell('2024')}{cell('13,400')}",
        f"{cell('all', wide)}{cell('14,600')}",
    ]
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in grid)}</w:tbl>"
    (found,) = found_in(tmp_path, "a.docx", word_file(f"<w:p/>{table}"))
    assert found.header == 1
    assert found.rows[1:] == [["A", "2023", "1,200"], ["A", "2024", "13,400"], ["all", "all", "14,600"]]
    layout = f"<w:tbl><w:tr><w:tc>{table}</w:tc>{cell('x')}</w:tr><w:tr>{cell('y')}{cell('z')}</w:tr></w:tbl>"
    (inner,) = found_in(tmp_path, "b.docx", word_file(layout))
    assert inner.rows == found.rows


@pytest.mark.parametrize(
    ("value", "names", "first"),
    [
        ({"meta": {"n": 1}, "data": [{"a": "1,234", "b": 2.5}, {"a": "26,474", "b": 3}]}, ["a", "b"], (1234, 2.5)),
        ({"data": {"items": [{"a": 1}, {"a": 2, "b": "x"}]}}, ["a", "b"], (1, None)),
        ([["name", "n"], ["x", 1], ["y", 2]], ["name", "n"], ("x", 1)),
        ({"a": [1, 2], "b": ["1,000", "2,500"]}, ["a", "b"], (1, 1000)),
        ({"columns": ["a", "b"], "data": [[1, "x"], [2, "y"]]}, ["a", "b"], (1, "x")),
    ],
)
def test_json_of_other_forms_is_a_table_beside_its_text(
    tmp_path: Path, value: object, names: list[str], first: tuple[object, ...]
) -> None:
    source = tmp_path / "0f3a"
    source.write_text(json.dumps(value))
    report = convert(str(source), "x.json", str(tmp_path / "out"))
    assert report["document"] is not None
    (table,) = report["tables"]
    assert [column["name"] for column in table["columns"]] == names
    assert rows(table)[0] == first


@pytest.mark.parametrize(
    "value",
    [{"a": 1}, [1, 2], [[1, 2], [3, 4]], {"a": [{"b": 1}, {"b": 2}], "c": [{"d": 1}, {"d": 2}]}, {"a": [1], "b": 2}],
)
def test_json_without_one_table_is_a_document(tmp_path: Path, value: object) -> None:
    source = tmp_path / "0f3a"
    source.write_text(json.dumps(value))
    report = convert(str(source), "x.json", str(tmp_path / "out"))
    assert (report["tables"], report["document"] is not None) == ([], True)


def test_texts_in_a_list_of_objects_are_read_like_those_of_any_file(tmp_path: Path) -> None:
    source = tmp_path / "0f3a"
    source.write_text(
        '[{"a": "1,234,567", "n": 2, "ok": true, "zip": "01234"}, {"a": "5", "n": 3, "ok": false, "zip": "04"}]'
    )
    (table,) = convert(str(source), "x.json", str(tmp_path / "out"))["tables"]
    assert rows(table) == [(1234567, 2, True, "01234"), (5, 3, False, "04")]


@pytest.mark.parametrize(
    ("name", "begin", "each", "end"),
    [
        ("rows.html", "<table>", "<tr><td>1<td>2</tr>", "</table>"),
        ("nested.html", "", "<table><tr><td>", ""),
        ("open.html", "<table><tr>", "<td>", ""),
        ("wide.html", "<table>", "<tr><td colspan=1000 rowspan=65534>1", ""),
        ("deep.html", "", "<div>", ""),
        ("rules.md", "", "a|b\n-|-\n", ""),
        ("bars.md", "a|b\n-|-\n", "|", ""),
        ("quotes.md", "", "> | a | b |\n", ""),
        ("fences.md", "", "```\n", ""),
    ],
)
def test_hostile_tables_take_time_in_proportion(tmp_path: Path, name: str, begin: str, each: str, end: str) -> None:
    def seconds(count: int) -> float:
        started = time.process_time()
        (tmp_path / name).write_text(begin + each * count + end)
        with contextlib.suppress(TooMany):
            for _ in document_tables(tmp_path / name, tmp_path):
                pass
        return time.process_time() - started

    seconds(10)
    small = min(seconds(2_000) for _ in range(3))
    assert seconds(16_000) < 24 * max(small, 0.01)  # 8 in proportion, 64 by its square


async def test_tables_that_cannot_be_read_leave_the_text(tmp_path: Path) -> None:
    (tmp_path / "deep.html").write_text("<p>words</p>" + "<table><tr><td>" * 50)
    cache = FileCache(tmp_path / "cache")
    (report,) = await cache.reports([local_file("deep.html", tmp_path / "deep.html")], "test", copy_file)
    assert report.problem is None
    assert report.document is not None
    assert report.document["notes"] == ["its tables are nested more than 20 deep"]
    assert report.tables == []
