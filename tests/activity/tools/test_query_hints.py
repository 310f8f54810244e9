"""Hints below the output of a query: on texts that no value has, on values left out, on totals; names with blanks."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from activities.tools.sql.query_hints import (
    hints_on,
    with_known_tables,
    with_plain_escapes,
    with_quoted_names,
    with_quoted_texts,
)
from activities.tools.tool import ToolContext
from temporal_supervisor.supervision.contract.finding import QueryFacts
from tests.activity.tools.test_sql import tools

Ask = Callable[[str], Awaitable[str]]

_RACES = """Final Place,Rider (country),Jobs,Points
1st,Sebastián Porto,Writer,10
2nd,Tohru Ukawa,"Writer, painter",20
10th,Shinya Nakano,Painter,30
Total,,,60
"""
_TABLES = [{"columns": [{"name": "Final Place", "sql": '"Final Place"'}, {"name": "2005", "sql": '"2005"'}]}]


@pytest.fixture
async def ask(tmp_path: Path) -> Ask:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "races.csv").write_text(_RACES)
    _, query = await tools(tmp_path)

    async def asked(sql: str) -> str:
        output = await query.run(query.arguments(sql=sql), ToolContext())
        return str(output.text)

    return asked


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        # A count of nothing is one row, and tells as little as no row.
        (
            "SELECT count(*) FROM races WHERE \"Final Place\" = '1'",
            "\"Final Place\" has no '1', but '1st'.",
        ),
        (
            "SELECT Points FROM races WHERE Jobs = 'Tohru Ukawa'",
            "Jobs has no 'Tohru Ukawa', but column \"Rider (country)\" has it.",
        ),
        (
            "SELECT count(*) FROM races WHERE Jobs = 'Writer'",
            "Jobs has other values with 'Writer' in them, which this leaves out: 'Writer, painter'.",
        ),
        (
            "SELECT max(Points) FROM races WHERE Points < (SELECT min(Points) FROM races) AND \"Final Place\" = '2nd'",
            'Of 4 rows, 0 meet the condition on Points, 1 meet the one on "Final Place".',
        ),
        (
            "WITH r AS (SELECT * FROM races) SELECT Jobs FROM r WHERE Points > 25 AND \"Final Place\" = '1st'",
            'Of 4 rows, 2 meet the condition on Points, 1 meet the one on "Final Place", and none meets them together.',
        ),
        (
            "SELECT sum(Points) FROM races",
            "Note: row 4 'Total' looks like the sum of the rows above: leave it out where you add up",
        ),
    ],
)
async def test_a_query_is_told_what_its_author_could_not_see(ask, sql: str, hint: str) -> None:  # type: ignore[no-untyped-def]
    assert (await ask(sql)).splitlines()[-1] == hint


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM races WHERE Jobs LIKE '%Writer%'",
        "SELECT Points FROM races WHERE \"Final Place\" = '2nd'",
        "SELECT sum(Points) FROM races WHERE Jobs = 'Writer, painter'",
        "SELECT Points FROM races ORDER BY Points",
    ],
)
async def test_a_query_that_is_as_it_should_be_is_told_nothing(ask: Ask, sql: str) -> None:
    assert (await ask(sql)).splitlines()[-1].split()[1] in ("row", "rows")


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("SELECT count(*) FROM races WHERE \"Final Place\" = '1'", QueryFacts(nothing="no_such_value")),
        ("SELECT count(*) FROM races WHERE Points > 100", QueryFacts(nothing="conditions_unmet")),
        ("SELECT Jobs FROM races WHERE Points > 100", QueryFacts(nothing="no_rows")),
        ("SELECT Jobs FROM races WHERE Jobs = 'Baker'", QueryFacts(nothing="no_rows")),
        ("(SELECT Jobs FROM races) LIMIT 0", QueryFacts(nothing="no_rows")),
        ("SELECT Jobs FROM races WHERE Points > 15", QueryFacts()),
        ("SELECT count(*) FROM races WHERE Points - 10 = 0", QueryFacts()),
        ("SELECT Jobs FROM races, range(1000)", QueryFacts(is_cut=True)),
        ("SELECT sum(Points) FROM races", QueryFacts(adds_total=True)),
        ("SELECT Jobs FROM races ORDER BY Points * 0 LIMIT 1", QueryFacts(is_tied=True)),
    ],
)
async def test_the_facts_of_a_result_come_with_its_text(tmp_path: Path, sql: str, known: QueryFacts) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "races.csv").write_text(_RACES)
    _, query = await tools(tmp_path)
    output = await query.run(query.arguments(sql=sql), ToolContext())
    assert output.facts == known


def test_only_a_count_of_0_is_data_though_no_row_is_behind_it() -> None:
    assert QueryFacts().has_data
    assert QueryFacts(nothing="conditions_unmet").has_data
    assert not QueryFacts(nothing="no_such_value").has_data
    assert not QueryFacts(nothing="no_rows").has_data


async def test_names_with_blanks_are_quoted_after_a_query_failed(ask: Ask) -> None:
    shown = await ask("SELECT Final Place FROM races WHERE rider (country) = 'Tohru Ukawa'")
    assert shown.splitlines()[2] == "| 2nd |"


@pytest.mark.parametrize(
    ("sql", "quoted"),
    [
        ("SELECT final place FROM t", 'SELECT "Final Place" FROM t'),
        ("SELECT 'Final Place', \"Final Place\" FROM t", "SELECT 'Final Place', \"Final Place\" FROM t"),
        ("SELECT 2005 FROM t", "SELECT 2005 FROM t"),
        ("SELECT T2005 + t.year_2005 FROM t", 'SELECT "2005" + t."2005" FROM t'),
        ("SELECT final_place FROM races", 'SELECT "Final Place" FROM races'),
        ('SELECT r."Final_Place" FROM races r', 'SELECT r."Final Place" FROM races r'),
        ("SELECT 'Final_Place', Final_Places FROM races", "SELECT 'Final_Place', Final_Places FROM races"),
    ],
)
def test_only_bare_names_are_quoted(sql: str, quoted: str) -> None:
    assert with_quoted_names(sql, _TABLES) == quoted


async def test_a_note_on_many_columns_comes_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    years = range(2001, 2008)
    rows = [["name", *map(str, years)], ["a", *(f"{year},000" for year in years)]]
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    (tmp_path / "data" / "sales.csv").write_text("\n".join(lines))
    listing, _ = await tools(tmp_path)
    shown = (await listing.run(listing.arguments(), ToolContext())).text
    notes = [line for line in shown.splitlines() if line.startswith("  Note: ")]
    assert len(notes) == 1
    assert notes[0].startswith("  Note: 2001, 2002, 2003 and 4 more columns: ")


@pytest.mark.parametrize(("place", "is_told"), [(0, True), (39, True), (40, False)])
def test_only_the_first_conditions_are_held_against_values(place: int, is_told: bool) -> None:
    tables = [{"columns": [{"name": "c", "sql": "c", "values": ["Sebastián Porto"]}], "notes": []}]
    texts = [f"zq{number}" for number in range(60)]
    texts[place] = "Sebastian Porto"
    listed = ", ".join(f"'{text}'" for text in texts)
    hints = hints_on(f"SELECT 1 FROM t WHERE c IN ({listed})", {"rows": [], "more": False}, tables)
    assert bool(hints.lines) == is_told


@pytest.mark.parametrize(
    ("sql", "mended"),
    [
        ('SELECT Jobs FROM races WHERE Jobs = "Writer"', "SELECT Jobs FROM races WHERE Jobs = 'Writer'"),
        ('SELECT Jobs FROM races WHERE Jobs LIKE "%O\'Hara%"', "SELECT Jobs FROM races WHERE Jobs LIKE '%O''Hara%'"),
        # A column, the column of a table, and a name that nothing is compared with.
        ('SELECT 1 FROM races WHERE Jobs = "Final Place"', 'SELECT 1 FROM races WHERE Jobs = "Final Place"'),
        ('SELECT 1 FROM races WHERE Jobs = "r"."Jobs"', 'SELECT 1 FROM races WHERE Jobs = "r"."Jobs"'),
        ('SELECT Jobs AS "Job title" FROM races', 'SELECT Jobs AS "Job title" FROM races'),
    ],
)
def test_texts_in_double_quotes_are_texts_where_no_column_is_called_so(sql: str, mended: str) -> None:
    assert with_quoted_texts(sql, _TABLES) == mended


async def test_a_query_with_a_text_in_double_quotes_is_answered(ask: Ask) -> None:
    assert "| 30 |" in await ask('SELECT Points FROM races WHERE Jobs = "Painter"')


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM races WHERE Points > 15",
        "SELECT Points - 10 FROM races WHERE Jobs = 'Writer'",
        "SELECT sum(Points) - 10 FROM races WHERE Jobs = 'Writer' AND Points > 5",
        "SELECT 0",
        "SELECT Jobs FROM races WHERE Points > 90 UNION SELECT Jobs FROM races WHERE Points < 0",
    ],
)
async def test_conditions_are_counted_only_of_a_query_that_found_nothing(ask: Ask, sql: str) -> None:
    assert "meet the condition" not in await ask(sql)


async def test_an_explanation_takes_a_second_at_most(ask: Ask) -> None:
    slow = "(SELECT sum(a.i * b.i) FROM range(300000) a(i), range(300000) b(i))"
    never = await ask(f"SELECT Jobs FROM races WHERE Points < 0 AND Points > {slow} LIMIT 0")
    assert never.endswith("0 rows")


async def test_an_explanation_does_not_repeat_what_the_query_compares_with(ask: Ask) -> None:
    shown = await ask("SELECT Jobs FROM races WHERE Points > 4711")
    assert shown.endswith("Of 4 rows, 0 meet the condition on Points.")


@pytest.mark.parametrize(
    ("sql", "is_told"),
    [
        ("SELECT name FROM scores ORDER BY points DESC LIMIT 1", True),
        ("SELECT name, points FROM scores ORDER BY 2 DESC LIMIT 1", True),
        ("WITH s AS (SELECT * FROM scores) SELECT s.name FROM s ORDER BY s.points DESC LIMIT 1", True),
        ("SELECT team, sum(points) AS total FROM scores GROUP BY team ORDER BY total DESC LIMIT 1", True),
        ("SELECT name FROM scores ORDER BY points LIMIT 1", False),
        ("SELECT name FROM scores ORDER BY points DESC LIMIT 2", False),
        ("SELECT name FROM scores ORDER BY points DESC, name LIMIT 1", False),
        ("SELECT DISTINCT points FROM scores ORDER BY points DESC LIMIT 1", False),
        ("SELECT name FROM scores ORDER BY points DESC LIMIT 5", False),
        ("SELECT name FROM scores LIMIT 1", False),
    ],
)
async def test_a_limit_that_cuts_a_tie_is_told(tmp_path: Path, sql: str, is_told: bool) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "scores.csv").write_text(
        "name,team,points\nAda,red,9\nBob,blue,9\nCy,blue,2\nDee,red,2.0\nEve,green,1\n"
    )
    _, query = await tools(tmp_path)
    output = await query.run(query.arguments(sql=sql), ToolContext())
    assert ("LIMIT leaves out a row" in str(output.text)) is is_told


async def test_line_breaks_and_quotes_that_were_escaped_twice_are_plain(ask: Ask) -> None:
    assert with_plain_escapes('SELECT \\"Final Place\\" FROM t') == 'SELECT "Final Place" FROM t'
    assert with_plain_escapes("SELECT 'a\\nb'\\nFROM t") == "SELECT 'a\\nb'\nFROM t"
    assert "| 30 |" in await ask("SELECT Points\\nFROM races\\nWHERE \"Final Place\" = '10th'")


def test_a_table_whose_underscores_or_capitals_differ_is_the_known_one() -> None:
    tables = [{"name": "t_2024_sales"}, {"name": "orders"}]
    sql = "SELECT T2024_sales.x, 'T2024_sales' FROM T2024_Sales, Orders, order_s2"
    mended = "SELECT t_2024_sales.x, 'T2024_sales' FROM t_2024_sales, orders, order_s2"
    assert with_known_tables(sql, tables) == mended


def test_a_column_with_the_letters_of_a_table_keeps_its_name() -> None:
    tables = [{"name": "unit_price", "columns": [{"name": "UnitPrice"}]}]
    assert with_known_tables("SELECT UnitPrice FROM Unit_Price", tables) == "SELECT UnitPrice FROM unit_price"
