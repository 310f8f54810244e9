"""What a text calls the most or the least: a row of a table must be its first or last, among rows that show it."""

import json
from dataclasses import replace

import pytest

from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

ROWS = """| country | continent | year | life_years | gdp_usd |
| --- | --- | --- | --- | --- |
| Japan | Asia | 2007 | 82.603 | 31656 |
| Iceland | Europe | 2007 | 81.757 | 36180 |
| Egypt | Africa | 2007 | 71.338 | 5581 |
| Kenya | Africa | 2007 | 54.11 | 1463 |
| Kenya | Africa | 1997 | 54.407 | 1360 |
5 rows"""
ALL = "SELECT * FROM life"


def problems(text: str, output: str = ROWS, sql: str = ALL, *more: Source) -> list[str]:
    queried = Source(output, arguments=json.dumps({"sql": sql}), name="query_data")
    sources = [Source("Which country is it?"), queried, *more]
    return [claim.problem for claim in check(text, sources) if not claim.source]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("The highest life expectancy was Iceland's, 81.757 years.", "the highest life_years of the rows is 82.603"),
        ("The highest was Iceland, with 81.757 years.", "82.603 of Japan"),
        ("Iceland had the highest life expectancy in life years.", "82.603 of Japan"),
        ("Japan has the largest GDP.", "36180 of Iceland"),
        ("The lowest life expectancy of all, 71.338 years, was that of Egypt.", "54.11 of Kenya"),
        ("Egypt had the most life years, 71.338.", "82.603 of Japan"),
        ("Das höchste GDP hatte Japan: 31656 Dollar.", "36180 of Iceland"),
    ],
)
def test_a_row_that_is_not_the_extreme_is_no_support(text: str, problem: str) -> None:
    assert any(problem in found for found in problems(text))


@pytest.mark.parametrize(
    "text",
    [
        "The highest life expectancy was Japan's, 82.603 years.",
        "Japan, with the highest life expectancy, has a GDP of 31656 dollars.",
        "In Africa the highest life expectancy in 2007 was that of Egypt, 71.338 years.",
        "Kenya's highest life expectancy was 54.407 years, in 1997.",
        "Iceland has the second highest life expectancy, 81.757 years.",
        "Iceland is one of the highest, at 81.757 years.",
        "Most of the countries lie above Kenya with its 54.11 years.",
        "The GDP of Egypt is 5581 dollars at most.",
        "The largest growth of life expectancy was that of Egypt.",
        "The countries with the most inhabitants are Egypt and Kenya.",
        "Egypt has the highest pyramids.",
        "Japan had the most life years, 82.603.",
        "Egypt's 71.338 years are the most recent.",
        "Egypt has 71.338 years at the most.",
    ],
)
def test_what_is_an_extreme_or_speaks_of_something_else_is_left_in_peace(text: str) -> None:
    assert problems(text) == []


ONE = "| country | life_years |\n| --- | --- |\n| Kenya | 54.11 |\n1 row"
TWO = "| country | life_years |\n| --- | --- |\n| Kenya | 54.11 |\n| Egypt | 71.338 |\n2 rows"


@pytest.mark.parametrize(
    ("output", "sql", "problem"),
    [
        (ONE, "SELECT country, life_years FROM life WHERE country = 'Kenya'", "took this row alone"),
        (TWO, "SELECT country, life_years FROM life LIMIT 2", "without an order"),
        (TWO, "SELECT country, life_years FROM life ORDER BY life_years LIMIT 2", "the rows at the other end"),
        (TWO, "SELECT country, life_years FROM life ORDER BY life_years DESC LIMIT 2", ""),
        (ONE, "SELECT country, life_years FROM life WHERE life_years = (SELECT max(life_years) FROM life)", ""),
        (ONE, "SELECT country, life_years FROM life WHERE rank = 1", ""),
    ],
)
def test_rows_that_were_not_sorted_show_no_extreme(output: str, sql: str, problem: str) -> None:
    name, value = ("Egypt", "71.338") if output != ONE else ("Kenya", "54.11")
    found = problems(f"The highest life expectancy is {value} years, in {name}.", output, sql)
    assert any(problem in each for each in found) if problem else found == []


def test_rows_of_more_show_no_extreme_without_an_order() -> None:
    text = "The highest life expectancy is 71.338 years, in Egypt."
    arguments = json.dumps({"sql": "SELECT country, life_years FROM life"})
    whole = Source(TWO, arguments=arguments)
    assert [claim.problem for claim in check(text, [whole]) if not claim.source] == []
    first_rows = replace(whole, facts=QueryFacts(is_cut=True))
    problem, *_ = [claim.problem for claim in check(text, [first_rows]) if not claim.source]
    assert "without an order" in problem


def test_a_query_may_look_up_what_another_one_found() -> None:
    sorted_rows = json.dumps({"sql": "SELECT country FROM life ORDER BY life_years DESC LIMIT 1"})
    first = Source("| country |\n| --- |\n| Kenya |\n1 row", arguments=sorted_rows)
    sql = "SELECT country, life_years FROM life WHERE country = 'Kenya'"
    text = "The highest life expectancy is 54.11 years, in Kenya."
    assert problems(text, ONE, sql, first) == []
    assert problems(text, ONE, sql) != []


def test_a_document_may_know_more_than_a_table() -> None:
    document = Source("Iceland had the highest life expectancy of Europe.", name="read_document")
    assert problems("Iceland had the highest life expectancy.", ROWS, ALL, document) == []
