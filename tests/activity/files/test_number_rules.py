"""Numbers, headers and endings of foreign tables, each trap by itself."""

import sqlite3
from pathlib import Path

import duckdb
import pytest

from activities.files.conversion import convert
from activities.files.descriptions import TableDescription
from activities.files.table_files import csv_tables
from temporal_supervisor.supervision.base.json_object import JsonObject
from tests.activity.files.made_tables import tables_of
from tests.office_files import xlsx_bytes


def read(tmp_path: Path, content: str | bytes, name: str = "t.csv") -> JsonObject:
    source = tmp_path / "0f3a"
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    report = convert(str(source), name, str(tmp_path / "out"))
    assert report["problem"] is None
    table: JsonObject = report["tables"][0]
    return table


def values(table: JsonObject, name: str = "x") -> list[object]:
    return [value for (value,) in duckdb.execute(f"SELECT \"{name}\" FROM '{table['file']}'").fetchall()]


def column(table: JsonObject, name: str = "x") -> JsonObject:
    found: list[JsonObject] = [column for column in table["columns"] if column["name"] == name]
    return found[0]


def of_cells(tmp_path: Path, cells: list[str], delimiter: str = ",") -> JsonObject:
    quoted = [f'"{cell}"' for cell in cells]
    lines = [f"place {at}{delimiter}{cell}" for at, cell in enumerate(quoted)]
    return read(tmp_path, "\n".join([f"name{delimiter}x", *lines]) + "\n")


@pytest.mark.parametrize(
    ("cells", "numbers", "unit"),
    [
        (["26,474", "13,596", "135", "4,117"], [26474, 13596, 135, 4117], ""),
        (["28.801", "135.204"], [28.801, 135.204], ""),
        (["28.801", "1.234.567"], [28801, 1234567], ""),
        (["28.801", "640", "1527"], [28.801, 640, 1527], ""),
        (["28.801", "640", "1.5"], [28.801, 640, 1.5], ""),
        (["1.234,5", "12"], [1234.5, 12], ""),
        (["0,453", "1,234"], [0.453, 1.234], ""),
        (["12,34,567", "1,234"], [1234567, 1234], ""),
        (["1 234", "12\u202f345", "6"], [1234, 12345, 6], ""),
        (["1'234.5", "1’000"], [1234.5, 1000], ""),
        (["$1,234", "$ —", "$5"], [1234, None, 5], "$"),
        (["€ 1,5", "12,25 €"], [1.5, 12.25], "EUR"),
        (["12 %", "5%"], [12, 5], "%"),
        (["3 ‰", "0.5‰"], [3, 0.5], "‰"),
        (["$71M", "$1,200M"], [71, 1200], "$ million"),
        (["(44.1)", "$(0.02)", "7"], [-44.1, -0.02, 7], ""),
        (["44.1-", "\u221212.5", "-3", "+8"], [-44.1, -12.5, -3, 8], ""),
        (["1", "-", "—", "n/a", "..", "*", "2"], [1, None, None, None, None, None, 2], ""),
        (["1,452*", "1,452[3]", "1,452†", "1,452 a"], [1452, 1452, 1452, 1452], ""),
        (["1e-05", "2.5E3"], [0.00001, 2500.0], ""),
        (["2019", "2020"], [2019, 2020], ""),
        (["1.", "2."], [1, 2], ""),
    ],
)
def test_cells_are_the_numbers_that_a_person_reads(
    tmp_path: Path, cells: list[str], numbers: list[object], unit: str
) -> None:
    table = of_cells(tmp_path, cells)
    assert values(table) == pytest.approx(numbers)
    assert column(table)["unit"] == column(table)["reading"]["unit"] == unit


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["1,234,567", "0,5"], "'1,234,567' and '0,5' fit only different readings"),
        (["1.527", "640"], "the dot in '1.527' may group thousands, as '640' in column 'x' has none"),
        (["1.527 €", "-8"], "the dot in '1.527 €' may group thousands, as '-8' in column 'x' has none"),
        (["€5", "$5"], "'€5' and '$5' are of different currencies"),
        (["$71M", "$5"], "have different units"),
        (["1", "2", "3", "4", "DNF"], "1 of 5 values are no numbers"),
        (["(1)", "(2)"], "may be negative or notes"),
        (["00123", "4"], "identifiers"),
    ],
)
def test_what_nobody_can_tell_stays_text_and_says_why(tmp_path: Path, cells: list[str], why: str) -> None:
    table = of_cells(tmp_path, cells)
    assert values(table) == cells
    reading = column(table)["reading"]
    assert reading["decision"] == "text"
    assert why in reading["why"]
    if "identifiers" not in why:
        assert any(why.split(",")[0] in note for note in table["notes"])


@pytest.mark.parametrize(
    "cell", ["3–1", "2-1", "+49 30 123 456", "12a", "10-20", "1:23", "AB12", "12345678901234567890"]
)
def test_scores_telephones_codes_and_ranges_are_no_numbers(tmp_path: Path, cell: str) -> None:
    table = of_cells(tmp_path, [cell, cell])
    assert values(table) == [cell, cell]


def test_the_file_decides_what_a_column_leaves_open(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,b,c\n"1,234","0,5",28.801\n"5,678","0,25",1.500\n')
    assert [values(table, name) for name in "abc"] == [[1.234, 5.678], [0.5, 0.25], [28801, 1500]]
    assert "column 'b' has decimal commas" in column(table, "a")["reading"]["why"]
    table = read(tmp_path, "a;b\n1,234;x\n5,678;y\n")
    assert values(table, "a") == [1.234, 5.678]
    table = read(tmp_path, "a;b\n1.234;x\n5.678;y\n")
    assert values(table, "a") == ["1.234", "5.678"]
    assert "nobody can tell" in table["notes"][0]


def test_whole_numbers_beside_dots_are_in_doubt_only_where_the_file_says_nothing(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b\n1.527,0.5\n640,2.5\n")
    assert values(table, "a") == [1.527, 640]
    table = read(tmp_path, 'a,b\n1.527,"0,5"\n640,"2,5"\n')
    assert values(table, "a") == [1527, 640]
    table = read(tmp_path, "a,b\n1.527,28.801\n640,135.204\n")
    assert [values(table, name) for name in "ab"] == [["1.527", "640"], ["28.801", "135.204"]]
    assert "'640' in column 'a'" in column(table, "b")["reading"]["why"]


def test_a_few_pairs_beside_whole_numbers_are_no_decimal_commas(tmp_path: Path) -> None:
    table = read(tmp_path, 'note,amount\n3,1.5\n4,2.5\n"10,11",3.5\n')
    assert values(table, "note") == ["3", "4", "10,11"]


def test_title_header_of_two_rows_heading_total_and_notes(tmp_path: Path) -> None:
    content = (
        'Sales by region,,,\n,,,\n,"December 31,",,Change\n,2019,2018,\n'
        'North,"1,949","2,185",5%\nSouth,"138,755","129,582",-1%\n,2019,2018,\nWest,5,6,0%\n'
        'Total,"140,709","131,773",4%\n,,,\n* estimated,,,\n"Source: office, 2019",,,\n'
    )
    table = read(tmp_path, content)
    assert [each["name"] for each in table["columns"]] == [
        "column_1",
        "December 31, 2019",
        "December 31, 2018",
        "Change",
    ]
    assert values(table, "December 31, 2019") == [1949, 138755, 5, 140709]
    assert (table["above"], table["below"]) == (["Sales by region"], ["* estimated", "Source: office, 2019"])
    assert any(note.startswith("row 4 'Total' looks like the sum of the rows above") for note in table["notes"])
    assert any("the header is repeated inside" in note for note in table["notes"])


def test_no_column_has_a_name_that_stands_for_the_place_of_a_row(tmp_path: Path) -> None:
    table = read(tmp_path, "RowId,file_row_number,rowid,row\n7,Bern,1,2\n8,Biel,3,4\n")
    names = [each["name"] for each in table["columns"]]
    assert names == ["RowId_2", "file_row_number_2", "rowid_3", "row"]
    assert values(table, "RowId_2") == [7, 8]


@pytest.mark.parametrize(
    ("content", "is_noted"),
    [
        ("Town,Rent\nBern,10\nBiel,20\nAarau,30\n", False),  # of three numbers one is often the sum
        ("Town,Rent\nBern,10\nBiel,20\nTotal,30\n", True),
        ("Town,Rent\nBern,10\nBiel,20\nAarau,30\nAll towns,60\n", True),
        ("Town,row\nBern,10\nBiel,20\nAarau,30\nAll towns,60\n", True),
        ("rowid,file_row_number\nBern,10\nBiel,20\nTotal,30\n", True),
        ("Town,Rent,Rooms\nBern,10,3\nBiel,20,2\nAarau,30,2\nZug,60,5\n", False),
        ("Town,Rent,Rooms\nBern,10,3\nBiel,20,2\nAarau,30,2\nAll towns,60,7\n", True),
        ("Town,Rent,Year\nBern,10,2020\nBiel,20,2020\nAarau,30,2020\nTotal,60,\n", True),
    ],
)
def test_a_last_row_that_is_the_sum_by_chance_is_no_total(tmp_path: Path, content: str, is_noted: bool) -> None:
    notes = read(tmp_path, content)["notes"]
    assert any("looks like the sum of the rows above" in note for note in notes) == is_noted


@pytest.mark.parametrize(
    ("content", "names", "above"),
    [
        ("As of,01.01.2025\n,\nTown,Plan\nBern,100\nBiel,250\n", ["Town", "Plan"], ["As of / 01.01.2025"]),
        ("As of,2025-01-01,\nTown,Plan,Done\nBern,9,5\nBiel,8,6\n", ["Town", "Plan", "Done"], ["As of / 2025-01-01"]),
        ("Town,01.01.2025\nBern,100\nBiel,250\n", ["Town", "01.01.2025"], []),
        ("Town,01.01.2025\nBern,soon\nBiel,250\nAarau,40\n", ["Town", "01.01.2025"], []),
    ],
)
def test_a_label_with_its_day_above_the_names_is_no_header(
    tmp_path: Path, content: str, names: list[str], above: list[str]
) -> None:
    table = read(tmp_path, content)
    assert [each["name"] for each in table["columns"]] == names
    assert table["above"] == above


def test_a_year_in_a_header_that_repeats_stays_in_the_header(tmp_path: Path) -> None:
    table = read(tmp_path, "Region,2011,Share\nNorth,40723.5,8.25\nRegion,2011,Share\nWest,n/a,2.5\nEast,n/a,9.5\n")
    assert [each["name"] for each in table["columns"]] == ["Region", "2011", "Share"]
    assert values(table, "2011") == [40723.5, None, None]
    table = read(tmp_path, "5\n5\n5\n")
    assert [each["name"] for each in table["columns"]] == ["column_1"]


def test_a_header_with_line_ends_costs_no_row(tmp_path: Path) -> None:
    table = read(tmp_path, '"Rank","Final\nPoints","Best\n\nyear"\n1,2.5,1999\n2,3.5,2001\n')
    assert [each["name"] for each in table["columns"]] == ["Rank", "Final Points", "Best year"]
    assert values(table, "Rank") == [1, 2]


def test_quotation_marks_behind_a_backslash_cost_no_row(tmp_path: Path) -> None:
    table = read(tmp_path, '"no","title","time"\n"1","\\"Intro, part 1\\"","2\' 10\\""\n"2","","3"\n')
    assert values(table, "title") == ['"Intro, part 1"', None]


def test_numbers_of_a_typed_source_are_never_read_again(tmp_path: Path) -> None:
    book = xlsx_bytes({"s": [["a", "b", "c"], [1.234, "1,234", 1.234], [28.801, "26,474", "n/a"], [5, "0", "x 1"]]})
    table = read(tmp_path, book, "book.xlsx")
    assert values(table, "a") == [1.234, 28.801, 5]
    assert values(table, "b") == [1234, 26474, 0]
    assert values(table, "c") == ["1.234", "n/a", "x 1"]
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE p (id INTEGER, code TEXT, price REAL, big INTEGER)")
        database.executemany(
            "INSERT INTO p VALUES (?, ?, ?, ?)", [(1, "1,234", 1.234, 2**63 - 1), (2, "0,5", 28.801, 1)]
        )
    database.close()
    table = read(tmp_path, (tmp_path / "x.db").read_bytes(), "crm.db")
    assert values(table, "code") == ["1,234", "0,5"]
    assert values(table, "price") == [1.234, 28.801]
    assert values(table, "big") == [2**63 - 1, 1]


def described(tmp_path: Path, content: str, **said: object) -> JsonObject:
    source, out = tmp_path / "t.csv", tmp_path / "out"
    out.mkdir(exist_ok=True)
    source.write_text(content)
    (table,) = csv_tables(source, out, TableDescription.model_validate(said))
    return table


def test_what_a_person_says_goes_before_what_is_found(tmp_path: Path) -> None:
    content = "made by hand\na,b,c\nkg,EUR,\n00123,28.801,x\n4,1.5,999\nq,7,3\n"
    table = described(
        tmp_path, content, header=[2, 3], missing=["999"],
        columns={"a kg": {"type": "number", "unit": "kg"}, "b EUR": {"type": "text"}},
    )  # fmt: skip
    assert [each["name"] for each in table["columns"]] == ["a kg", "a kg as written", "b EUR", "c"]
    assert values(table, "b EUR") == ["28.801", "1.5", "7"]
    assert values(table, "a kg as written") == ["00123", "4", "q"]
    assert column(table, "a kg")["unit"] == "kg"
    assert any("2 values do not fit its description" in note for note in table["notes"])
    table = described(tmp_path, "1,2\n3,4\n", header=[])
    assert [each["name"] for each in table["columns"]] == ["column_1", "column_2"]
    table = described(tmp_path, 'a,b\nx,"1,234"\ny,"26,474"\n', decimal=",")
    assert values(table, "b") == [1.234, 26.474]


@pytest.mark.parametrize(
    ("sql", "answer"),
    [
        ('SELECT "FY 2019" - "FY 2018" FROM report WHERE "$ million" = \'Loss\'', "-12.6"),
        ('SELECT sum("FY 2019") FROM report WHERE "$ million" <> \'Total\'', "1207.9"),
        (
            'SELECT round(100 * ("FY 2019" - "FY 2018") / "FY 2018", 2) FROM report WHERE "$ million" = \'Sales\'',
            "26.82",
        ),
        ('SELECT count(*) FROM report WHERE "FY 2018" < 0', "1"),
    ],
)
async def test_queries_on_a_report_give_the_figures_that_a_person_computes(
    tmp_path: Path, sql: str, answer: str
) -> None:
    rows = [
        "Results,,", "$ million,FY 2019,FY 2018", 'Sales,"$1,268.2","$1,000.0"', "Loss,(69.3),(56.7)", "Other,9.0,—",
        'Total,"1,207.9",943.3', "* restated,,",
    ]  # fmt: skip
    file = tmp_path / "report.csv"
    file.write_text("\n".join(rows) + "\n")
    store = await tables_of(file)
    assert (await store.query(sql))["rows"] == [[answer]]
