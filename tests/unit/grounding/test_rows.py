"""A figure of a table belongs to its row: the names, years and units beside it must be those of the row."""

import json
from dataclasses import replace

import pytest

from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.rows.queries import read_query
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

BRIEF = Source("Give the depth of the wells Elm Court and Mill Lane in 1987 and 2004, and what they cost.")
WELLS = """| well | year | depth_m | cost_eur |
| --- | --- | --- | --- |
| Elm Court | 1987 | 84.25 | 15250 |
| Elm Court | 2004 | 91.75 | 17825 |
| Mill Lane | 1987 | 131.5 | 21400 |
3 rows"""


def query(sql: str, output: str) -> Source:
    return Source(output, "data", json.dumps({"sql": sql}), "query_data")


ALL = query("SELECT well, year, depth_m, cost_eur FROM wells", WELLS)
ONE = query(
    "SELECT depth_m FROM wells WHERE well = 'Elm Court' AND year = 1987", "| depth_m |\n|---|\n| 84.25 |\n1 row"
)
DEEPEST = query("SELECT max(depth_m) AS d FROM wells", "| d |\n|---|\n| 131.5 |\n1 row")
OPEN = query(
    "SELECT depth_m FROM wells WHERE well = 'Elm Court' AND year IN (1987, 2004)",
    "| depth_m |\n|---|\n| 84.25 |\n| 91.75 |\n2 rows",
)
UNTOLD = query(
    "SELECT year, depth_m FROM wells ORDER BY year",
    "| year | depth_m |\n|---|---|\n| 1987 | 84.25 |\n| 1987 | 131.5 |\n| 2004 | 91.75 |\n| 2004 | 140.5 |\n4 rows",
)
LISTED = Source("table wells (well VARCHAR, year BIGINT, depth_m DOUBLE): wells. Rows: 3", name="list_tables")


def doubts(text: str, *sources: Source) -> dict[str, str]:
    return {claim.text: claim.problem for claim in check(text, [BRIEF, *sources]) if not claim.source}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Elm Court was 84.25 m deep in 1987 and 91.75 m in 2004.", ALL),
        ("In 1987 Elm Court was 84.25 m deep, Mill Lane 131.5 m.", ALL),
        ("Elm Court and Mill Lane were 84.25 and 131.5 m deep in 1987.", ALL),
        ("From 1987 to 2004 Elm Court went from 84.25 to 91.75 m.", ALL),
        ("Elm Court: 84.25 m (1987), 91.75 m (2004); Mill Lane: 131.5 m (1987).", ALL),
        ("| Well | 1987 | 2004 |\n|---|---|---|\n| Elm Court | 84.25 | 91.75 |", ALL),
        ("Elm Court:\n- 1987: 84.25 m\n- 2004: 91.75 m", ALL),
        ("Mill Lane is deeper than Elm Court: 131.5 m.", ALL),
        ("It cost EUR 15,250.", ALL),
        ("In 1987 Elm Court was 84.25 m deep.", ONE),
        ("It was 84.25 m, later 91.75 m.", OPEN),
        ("The deeper well measured 131.5 m.", UNTOLD),
    ],
)
def test_the_words_of_its_row_are_no_evidence_against_a_figure(text: str, source: Source) -> None:
    assert doubts(text, source) == {}


@pytest.mark.parametrize(
    ("text", "sources", "expected"),
    [
        ("In 2004 Mill Lane was 131.5 m deep.", [ALL], {"131.5": "the row has 1987, not 2004"}),
        ("Mill Lane was 84.25 m deep in 1987.", [ALL], {"84.25": "the row has Elm Court, not Mill"}),
        ("Elm Court: 131.5 m.", [ALL], {"131.5": "the row has Mill Lane, not Elm"}),
        ("Mill Lane:\n- in 1987: 84.25 m", [ALL], {"84.25": "the row has Elm Court, not Mill"}),
        ("| Well | 2004 |\n|---|---|\n| Mill Lane | 131.5 |", [ALL], {"131.5": "the row has 1987, not 2004"}),
        ("The wells were 91.75 and 84.25 m deep in 1987 and 2004.", [ALL], None),
        ("It is 84.25 EUR.", [ALL], {"84.25 EUR": "its column is depth_m, which is not in EUR"}),
        ("It weighs 15,250 kg.", [ALL], {"15,250 kg": "nothing is given in kg"}),
        ("It was 84.25 m deep in 2004.", [ONE], {"84.25": "the row has 1987, not 2004"}),
        ("Mill Lane was 84.25 m deep.", [ONE, ALL], {"84.25": "the row has elm court, not Mill"}),
        ("It was 84.25 m in 2004, and 91.75 m in 1987.", [OPEN], None),
        ("In 2004 it was 131.5 m deep.", [DEEPEST, LISTED],
         {"131.5": "the query did not select the year"}),
        ("Between the years it changed by 56.25 m (140.5 - 84.25).", [UNTOLD], None),
    ],
)  # fmt: skip
def test_another_name_year_or_unit_beside_a_figure_is_seen(
    text: str, sources: list[Source], expected: dict[str, str] | None
) -> None:
    found = doubts(text, *sources)
    if expected is None:
        assert found
    else:
        assert {claim: reason[: len(expected.get(claim, ""))] for claim, reason in found.items()} == expected


SALES = Source("table sales (region VARCHAR, year BIGINT, amount BIGINT): sales. Rows: 4", name="list_tables")
ENDS = query(
    "SELECT max(amount) AS highest, min(amount) AS lowest FROM sales WHERE year = 2019",
    "| highest | lowest |\n|---|---|\n| 2024 | 118 |\n1 row",
)
ENDS_OF_YEARS = query(
    "SELECT max(amount) AS highest, min(amount) AS lowest FROM sales WHERE year BETWEEN 2019 AND 2020",
    "| highest | lowest |\n|---|---|\n| 2024 | 118 |\n1 row",
)
AMOUNTS = query(
    "SELECT region, amount FROM sales WHERE year = 2019",
    "| region | amount |\n|---|---|\n| North | 2024 |\n| South | 118 |\n2 rows",
)
DATED = query(
    "SELECT region, year, amount FROM sales",
    "| region | year | amount |\n|---|---|---|\n| North | 2019 | 2024 |\n| South | 2019 | 118 |\n2 rows",
)


@pytest.mark.parametrize("source", [ENDS, ENDS_OF_YEARS, AMOUNTS, DATED])
@pytest.mark.parametrize(
    "text",
    [
        "The highest amount is 2024, the lowest 118.",
        "In 2019 the highest amount was 2024 and the lowest 118.",
        "| highest | lowest |\n|---|---|\n| 2024 | 118 |",
    ],
)
def test_an_amount_that_looks_like_a_year_says_nothing_of_the_time(
    text: str,
    source: Source,
) -> None:
    assert doubts(text, source, SALES) == {}


@pytest.mark.parametrize("source", [ENDS, AMOUNTS, DATED])
def test_another_year_is_seen_beside_an_amount_that_looks_like_one(source: Source) -> None:
    assert "118" in doubts("In 2021 the lowest amount was 118.", source, SALES)


def test_a_figure_is_computed_from_the_rows_of_its_names() -> None:
    computed = Source("91.75 - 84.25 = 7.5", "computed", '{"expression": "91.75 - 84.25"}', "calculate")
    assert doubts("Elm Court grew deeper by 7.5 m.", ALL, computed) == {}
    (reason,) = doubts("Mill Lane grew deeper by 7.5 m.", ALL, computed).values()
    assert reason.startswith("it is computed from figures of which the row has Elm Court")


@pytest.mark.parametrize(
    ("sql", "filters", "tables"),
    [
        ("SELECT a FROM t WHERE country = 'Rwanda' AND year = 1992", {"country": ["rwanda"], "year": ["1992"]}, ["t"]),
        ('SELECT a FROM "my t" WHERE lower("Land") = \'süd\'', {"land": ["süd"]}, ["my t"]),
        ("SELECT a FROM t WHERE year IN (1987, 2002)", {"year": ["1987", "2002"]}, ["t"]),
        ("SELECT a FROM t WHERE d BETWEEN DATE '2025-07-01' AND '2025-12-31'", {"d": ["2025-07-01", "2025-12-31"]},
         ["t"]),
        ("SELECT a FROM t WHERE x <> 'a' AND y NOT IN ('b')", {}, ["t"]),
        ("SELECT a FROM t JOIN u ON t.id = u.id WHERE u.name LIKE 'Elm%'", {"name": ["elm"]}, ["t", "u"]),
        ("select a -- where b = 'c'\nfrom t", {}, ["t"]),
    ],
)  # fmt: skip
def test_a_query_is_read_by_its_words(sql: str, filters: dict[str, list[str]], tables: list[str]) -> None:
    read = read_query(json.dumps({"sql": sql}))
    assert read is not None
    assert {name: each.values for name, each in read.filters.items()} == filters
    assert read.tables == tables


def test_arguments_that_were_cut_are_read_as_far_as_they_go() -> None:
    cut = json.dumps({"sql": "SELECT a FROM t WHERE year = 1992 AND b"})[:-6]
    read = read_query(cut)
    assert read is not None
    assert read.filters["year"].values == ["1992"]
    assert read_query('{"query": "wells"}') is None


MATCHES = """| Date | Opponent | Attendance | Wins |
| --- | --- | --- | --- |
| 27 Nov 1920 | Swindon Town | 7,250 | 3 |
| 4 Dec 1920 | Watford | 6,150 | 8 |
| Sept 18 | Toronto | 5,410 | 5 |
3 rows"""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("27 Nov 1920: 6,150", True),
        ("On 27 November 1920 the attendance was 6,150.", True),
        ("In November 1920 the attendance was 6,150.", True),
        ("In December the attendance was 7,250.", True),
        ("October 18: 5,410", True),
        ("27 Nov 1920: 7,250", False),
        ("4 December 1920: 6,150", False),
        ("In November the attendance was 7,250.", False),
        ("September 18: 5,410", False),
        ("Wins of Swindon Town: 8", True),
        ("For Watford, it was 3.", True),
        ("Wins of Watford: 8", False),
        ("Watford won 3 matches at home.", False),
        ("The number of times that Swindon Town lost: 5", False),
        ("Swindon Town: 11", False),
    ],
)
def test_dates_and_small_values_belong_to_their_row(text: str, seen: bool) -> None:
    source = Source(MATCHES, arguments=json.dumps({"sql": "SELECT * FROM matches"}))
    found = [claim.text for claim in check(text, [Source("How was it?"), source]) if not claim.source]
    assert bool(found) is seen


def test_a_figure_of_a_query_that_adds_up_a_total_is_not_supported() -> None:
    rows = '| sum("2005") |\n| --- |\n| 984222 |\n1 row'
    sql = 'SELECT sum("2005") FROM cars'
    text = "984,222 cars were sold in 2005."
    assert doubts(text, query(sql, rows)) == {}
    seen = doubts(text, replace(query(sql, rows), facts=QueryFacts(adds_total=True)))
    assert "a row that is the sum of others" in seen["984,222"]


def test_a_row_with_fewer_cells_than_its_head_is_read() -> None:
    table = "| Rank | Nation | Medals |\n| --- | --- | --- |\n| 1 | Brazil |\n| 2 | Peru | 14 |"
    source = query("SELECT * FROM medals", table)
    text = "Rank 1: Nation is Brazil, Medals 14."
    assert doubts(text, source)[text] == "no row has Rank 1, Nation Brazil, Medals 14"
