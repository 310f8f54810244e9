"""SQL from examples and from a table's own description, on two invented domains, run by a real database."""

import pytest

from standin.extract.example_queries import Example, times_in, write_queries
from standin.extract.tables import parse_tables
from tests.standin.domains import Domain, orchards, tramways

EXAMPLES = [
    Example(
        "How did the apple crop of Old Mill Farm and Mill Farm change between 1985 and 2005?",
        "SELECT farm, fruit, year, crop_tonnes FROM harvests WHERE farm IN ('Old Mill Farm', 'Mill Farm') "
        "AND fruit = 'Apples' AND year BETWEEN 1985 AND 2005 ORDER BY ALL",
    ),
    Example(
        "Which farm had the largest crop in 1990?",
        "SELECT farm, sum(crop_tonnes) AS crop FROM harvests WHERE year = 1990 GROUP BY farm ORDER BY crop DESC",
    ),
    Example(
        "How did the wage of a driver develop between 1990 and 2000?",
        "SELECT trade, year, hourly_wage_usd FROM wages WHERE trade = 'Driver' AND year IN (1990, 2000) ORDER BY year",
    ),
]


@pytest.fixture(scope="module")
def fruit() -> Domain:
    return orchards()


@pytest.fixture(scope="module")
def trams() -> Domain:
    return tramways()


def queries(domain: Domain, question: str, context: str = "", examples: list[Example] = EXAMPLES) -> list[str]:
    return write_queries(parse_tables(domain.listing), examples, question, context)


def test_a_listing_is_read_as_tables(fruit: Domain) -> None:
    harvests, wages = parse_tables(fruit.listing)
    assert list(harvests.values) == ["farm", "valley", "fruit"]
    assert harvests.values["farm"] == ["Hill Farm", "Mill Farm", "Old Mill Farm"]
    assert harvests.time == ("year", "1980", "2020")
    assert list(harvests.spans) == ["year", "crop_tonnes"]
    assert wages.name == "wages"


@pytest.mark.parametrize(
    "question",
    [
        "From 1990 to 2010, how large was the crop of pears at Hill Farm and Mill Farm?",
        "Compare the pear crop of Mill Farm with Hill Farm (1990-2010)",
    ],
)
def test_paraphrases_lead_to_the_same_query(fruit: Domain, question: str) -> None:
    assert queries(fruit, question) == [
        "SELECT farm, fruit, year, crop_tonnes FROM harvests WHERE farm IN ('Hill Farm', 'Mill Farm') "
        "AND fruit IN ('Pears') AND year BETWEEN 1990 AND 2010 ORDER BY ALL"
    ]


def test_two_tables_give_two_queries(fruit: Domain) -> None:
    both = queries(fruit, "How did the apple crop of Hill Farm and the wage of a picker develop since 2000?")
    assert sorted(sql.split(" FROM ")[1].split()[0] for sql in both) == ["harvests", "wages"]
    assert {row[0] for sql in both for row in fruit.rows(sql)} == {"Hill Farm", "Picker"}


def test_without_an_example_the_rows_that_are_named_are_shown(fruit: Domain, trams: Domain) -> None:
    (sql,) = queries(fruit, "How did the apple crop of Old Mill Farm change between 1990 and 2010?", examples=[])
    assert [row[3] for row in fruit.rows(sql)] == [1990, 1995, 2000, 2005, 2010]
    (sql,) = queries(trams, "How many riders had Line A between March 2012 and May 2012?", examples=[])
    assert [row[2].month for row in trams.rows(sql)] == [3, 4, 5]


def test_times_are_years_and_months_in_order() -> None:
    assert times_in("since May 2012, and in 1999; not 12345 or 3.1999") == ["1999", "2012-05"]
