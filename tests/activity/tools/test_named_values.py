"""Values of tables that a question, or a query that failed, names."""

from typing import Any

import pytest

from activities.tools.sql.named_values import conditions_named, on_failed_query


def column(name: str, *values: str, sql: str = "") -> dict[str, Any]:
    return {"name": name, "sql": sql or name, "values": list(values)}


TABLES: list[dict[str, Any]] = [
    {
        "columns": [
            column("Name", "Pat Baldwin", "John O'Flynn", "Total"),
            column("Lake", "Lake Huron", "Lake Erie", "Lake Michigan"),
            column("Kind of ranking", "Year End Ranking", "Ranking", sql='"Kind of ranking"'),
            column("Place", "1st", "GL-B-5", "2"),
            column("Panel", "Amanda Holden\nSimon Cowell", "Simon Cowell", sql="Panel"),
            {"name": "Points", "sql": "Points"},
        ]
    }
]


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("which ships were lost in lake huron?", ["Lake = 'Lake Huron'"]),
        ("how many more in lake huron than in erie?", ["Lake = 'Lake Huron'", "Lake = 'Lake Erie'"]),
        ("does pat or john have the highest total?", ["Name = 'Pat Baldwin'", "Name = 'John O''Flynn'"]),
        ("the sum of year end rankings", ["\"Kind of ranking\" = 'Year End Ranking'"]),
        ("what comes after gl-b-5?", ["Place = 'GL-B-5'"]),
        ("how often was amanda on the panel?", ["Panel LIKE '%Amanda%'"]),
        ("how many points are there in total, and which ranking is it?", []),
        ("", []),
    ],
)
def test_a_question_names_values_whole_or_by_a_word(text: str, conditions: list[str]) -> None:
    assert conditions_named(text, TABLES) == conditions


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT John O'Flynn, Points FROM t", "John O'Flynn is a value, not a column: use Name = 'John O''Flynn'."),
        ("SELECT sum(x) FROM t WHERE YEAR_END_RANKING < 9", "\"Kind of ranking\" = 'Year End Ranking'"),
        ('SELECT count(a) AS "first" - count(b) AS "second" FROM t', "calculate before them"),
    ],
)
def test_a_query_that_failed_is_told_of_values_in_place_of_columns(sql: str, hint: str) -> None:
    (line,) = on_failed_query(sql, TABLES)
    assert hint in line


@pytest.mark.parametrize(
    "sql",
    ["SELECT Pointz FROM t WHERE Lake = 'Lake Erie'", "SELECT a - b AS difference FROM t", "SELECT Total FROM t"],
)
def test_a_query_without_such_values_is_told_nothing(sql: str) -> None:
    assert on_failed_query(sql, TABLES) == []
