"""SQL from a table's own description, on two invented domains, run by a real database."""

from datetime import date

import pytest
from standin.sql_writer import simpler, write_queries
from standin.tables import parse_tables

from tests.standin.domains import Domain, orchards, tramways


@pytest.fixture(scope="module")
def fruit() -> Domain:
    return orchards()


@pytest.fixture(scope="module")
def trams() -> Domain:
    return tramways()


def queries(domain: Domain, question: str, context: str = "") -> list[str]:
    return write_queries(parse_tables(domain.listing), question, context)


def test_a_listing_is_read_as_tables(fruit: Domain) -> None:
    harvests, wages = parse_tables(fruit.listing)
    assert [column.name for column in harvests.texts] == ["farm", "valley", "fruit"]
    assert harvests.texts[0].values == ["Hill Farm", "Mill Farm", "Old Mill Farm"]
    assert harvests.time is not None
    assert (harvests.time.name, harvests.time.low, harvests.time.high) == ("year", "1980", "2020")
    assert [column.name for column in harvests.measures] == ["crop_tonnes"]
    assert (harvests.rows, wages.name) == (54, "wages")


def test_values_of_several_words_and_a_period_become_conditions(fruit: Domain) -> None:
    (sql,) = queries(fruit, "How did the apple crop of Old Mill Farm change between 1990 and 2010?")
    rows = fruit.rows(sql)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("Old Mill Farm", "Apples", year) for year in (1990, 1995, 2000, 2005, 2010)
    ]


@pytest.mark.parametrize(
    "question",
    [
        "From 1990 to 2010, how large was the crop of pears at Hill Farm and Mill Farm?",
        "Between 1990 and 2010: Mill Farm's and Hill Farm's crops of pears, please.",
        "Compare the pear crop of Mill Farm with Hill Farm (1990-2010)",
        "Tell me about Hill Farm against Mill Farm: the crops of pears from 1990 until 2010",
    ],
)
def test_paraphrases_lead_to_the_same_query(fruit: Domain, question: str) -> None:
    assert queries(fruit, question) == [
        "SELECT farm, fruit, year, crop_tonnes FROM harvests WHERE farm IN ('Hill Farm', 'Mill Farm') AND "
        "fruit = 'Pears' AND year >= 1990 AND year <= 2010 ORDER BY 1, 2, 3 LIMIT 50"
    ]


def test_a_year_without_data_becomes_the_last_one_before(fruit: Domain) -> None:
    (sql,) = queries(fruit, "What was the apple crop of Hill Farm in 1992?")
    assert [row[2] for row in fruit.rows(sql)] == [1990]


def test_a_superlative_ranks_at_the_mentioned_time(fruit: Domain) -> None:
    (sql,) = queries(fruit, "Which farm had the largest crop of apples in 2020?")
    crops = [row[-1] for row in fruit.rows(sql)]
    assert len(crops) == 3
    assert crops == sorted(crops, reverse=True)


def test_a_superlative_of_change_ranks_the_change(fruit: Domain) -> None:
    tables = parse_tables(fruit.listing)
    (sql,) = write_queries(tables, "Which trade's hourly wage grew most between 1990 and 2000?")
    header = fruit.markdown(sql).splitlines()[0]
    assert "change" in header
    assert fruit.rows(sql)[0][3] == 2.5


def test_a_time_is_found_by_its_extreme_value(trams: Domain) -> None:
    (sql,) = queries(trams, "When did Line B have the most riders?")
    assert fruit_dates(trams, sql)[0] == date(2019, 12, 1)


def fruit_dates(domain: Domain, sql: str) -> list[date]:
    return [cell for row in domain.rows(sql) for cell in row if isinstance(cell, date)]


def test_two_tables_give_two_queries(fruit: Domain) -> None:
    found = queries(fruit, "How did the apple crop of Hill Farm and the wage of a picker develop since 2000?")
    assert sorted(sql.split(" FROM ")[1].split()[0] for sql in found) == ["harvests", "wages"]
    assert all(fruit.rows(sql) for sql in found)


def test_values_missing_in_a_part_come_from_the_whole_goal(fruit: Domain) -> None:
    (sql,) = queries(fruit, "and their crops in 2010", "Compare pears of Hill Farm in 1990; and their crops in 2010")
    assert "farm = 'Hill Farm'" in sql


def test_groups_are_averaged_when_a_group_is_asked_for(fruit: Domain) -> None:
    (sql,) = queries(fruit, "What was the average crop per valley in 2000?")
    assert "AVG(crop_tonnes)" in sql
    assert {row[0] for row in fruit.rows(sql)} >= {"Lower Valley", "Upper Valley"}


def test_a_long_span_of_months_is_told_by_the_year(trams: Domain) -> None:
    (sql,) = queries(trams, "How did riders of Line A and Line C develop from 2010 to 2019?")
    rows = trams.rows(sql)
    assert [int(row[1]) for row in rows if row[0] == "Line A"] == list(range(2010, 2020))
    assert rows[0][2] == pytest.approx(110 + 6.5)


def test_months_are_understood(trams: Domain) -> None:
    (sql,) = queries(trams, "How many riders had Line A between March 2012 and May 2012?")
    assert fruit_dates(trams, sql) == [date(2012, 3, 1), date(2012, 4, 1), date(2012, 5, 1)]


def test_the_value_that_stands_for_all_is_not_added_to_its_parts(trams: Domain) -> None:
    (sql,) = queries(trams, "How many riders were there in 2015?")
    assert {row[0] for row in trams.rows(sql)} == {"All lines"}


def test_nothing_is_queried_for_a_question_about_something_else(fruit: Domain) -> None:
    assert queries(fruit, "Who painted the ceiling of the chapel?") == []


def test_a_query_that_found_nothing_is_tried_with_less(fruit: Domain) -> None:
    tables = parse_tables(fruit.listing)
    (sql,) = write_queries(tables, "How large was the pear crop of Hill Farm in 1970?")
    assert fruit.rows(sql) == []
    again = simpler(tables, "How large was the pear crop of Hill Farm in 1970?", "", sql)
    assert again is not None
    assert len(fruit.rows(again)) == 9
    assert simpler(tables, "How large was the pear crop of Hill Farm in 1970?", "", again) is None


def test_every_query_is_one_bounded_select(fruit: Domain, trams: Domain) -> None:
    for domain, question in (
        (fruit, "harvests"), (fruit, "wages since 1990"), (fruit, "lowest crop"), (trams, "riders by depot"),
        (trams, "fewest riders in 2012"), (trams, "latest riders of Line D"), (trams, "riders in 2011 and 2013"),
    ):  # fmt: skip
        for sql in queries(domain, question):
            assert sql.startswith("SELECT ")
            assert ";" not in sql
            assert 0 < len(domain.rows(sql)) <= 50, sql
