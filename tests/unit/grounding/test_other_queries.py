"""Two queries for one question: what they return differs, or is one thing in two forms."""

import json
from dataclasses import replace

import pytest

from temporal_supervisor.supervision.contract.finding import QueryFacts
from temporal_supervisor.supervision.grounding.doubts.other_queries import (
    other_query_doubts,
    other_result,
)
from temporal_supervisor.supervision.grounding.sources import Source

WINS = ("SELECT sum(Wins) FROM riders", "wins", "7")


def queried(sql: str, *rows: str) -> Source:
    """Returns the output of a query; the first of `rows` is the head of its table."""
    head, *others = rows
    rule = "|" + "---|" * (head.count("|") + 1)
    lines = [f"| {head} |", rule, *(f"| {row} |" for row in others), f"{len(others)} rows"]
    return Source("\n".join(lines), arguments=json.dumps({"sql": sql}), name="query_data")


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (WINS, ("SELECT sum(Wins) AS n FROM riders", "n", "7")),
        # One shows more columns.
        (("SELECT Rider FROM riders", "Rider", "Ida"), ("SELECT *", "Rider | Wins", "Ida | 3")),
        # One adds up, or counts, what the other lists.
        (WINS, ("SELECT Wins FROM riders", "Wins", "3", "3", "1")),
        (("SELECT count(*)", "n", "2"), ("SELECT Rider FROM riders", "Rider", "Ida", "Jon")),
        (("SELECT Rider", "Rider", "Ida", "Jon"), ("SELECT count(*)", "n", "2")),
        # One is rounded.
        (("SELECT avg(Wins)", "m", "2.3333333333"), ("SELECT round(avg(Wins), 2)", "m", "2.33")),
    ],
)
def test_one_thing_in_two_forms_raises_no_doubt(first: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert doubts(first, other) == []


def doubts(first: tuple[str, ...], *others: tuple[str, ...], told: str = "") -> list[str]:
    """Returns the doubts about a first query beside others."""
    own = queried(*first)
    written = [queried(*other) for other in others]
    return other_query_doubts("How many wins?", [own], written, own.arguments, told)


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        (WINS, ("SELECT count(*) FROM riders", "n", "4"), "returned 4, not 7: SELECT count(*)"),
        (
            ("SELECT Rider", "Rider", "Ida"),
            ("SELECT Rider FROM old", "Rider", "Jon", "Kai"),
            "returned Jon, Kai, not Ida",
        ),
        (("SELECT avg(Wins)", "m", "2.4"), ("SELECT mean(Wins)", "m", "2.3"), "2.3, not 2.4"),
    ],
)
def test_two_things_raise_one(first: tuple[str, ...], other: tuple[str, ...], words: str) -> None:
    (doubt,) = doubts(first, other)
    assert words in doubt


def test_two_of_three_decide() -> None:
    count = ("SELECT count(*) FROM riders", "n", "4")
    other = ("SELECT max(Wins) FROM riders", "n", "3")
    assert doubts(WINS, count, WINS) == []
    (doubt,) = doubts(WINS, other, count, count)
    assert "returned 4, not 7" in doubt, "the result that most of the others have"


def test_a_query_that_was_taken_over_is_no_vote() -> None:
    """Example: the first query failed, and its author was shown another one."""
    count = queried("SELECT count(*) FROM riders", "n", "4")
    taken = other_query_doubts("How many?", [count], [count, queried(*WINS)], '{"sql": "SELECT"}')
    assert taken == ["another query for it returned 7, not 4: SELECT sum(Wins) FROM riders"]
    alone = other_query_doubts("How many?", [count], [count], '{"sql": "SELECT"}')
    assert alone == ["no other query for it returned the same"]


def test_the_query_that_the_finding_rests_on_is_compared() -> None:
    count = queried("SELECT count(*) FROM riders", "n", "40")
    sources = [count, queried(*WINS)]
    given = ("How many wins?", sources, [count], count.arguments)
    assert other_query_doubts(*given, "There are 40.") == []
    assert other_query_doubts(*given, "There are 7 wins.") != []


def test_of_a_list_the_told_values_are_compared() -> None:
    titles = ("SELECT Title", "Title", "Ida", "Jon", "Kai")
    assert doubts(titles, ("SELECT Title LIMIT 1", "Title", "Jon"), told="It is Ida.") != []
    assert doubts(titles, ("SELECT Title LIMIT 1", "Title", "Jon"), told="It is Jon.") == []
    # Three are not one of them.
    assert doubts(titles, ("SELECT Title LIMIT 1", "Title", "Jon"), told="Ida, Jon and Kai.") != []


def test_a_finding_may_tell_a_few_cells_of_a_list_that_both_have() -> None:
    rows = [f"{name} | {year} | {year % 40}.5" for name in ("Ida", "Jon") for year in range(1950, 1960)]
    first = ("SELECT Rider, Year, Wins FROM riders WHERE 1 = 1", "Rider | Year | Wins", *rows)
    other = ("SELECT Rider, Year, Wins FROM riders", "Rider | Year | Wins", *rows)

    assert doubts(first, other, other, told="Ida had 30.5 in 1950, and Jon 39.5 in 1959.") == []


def test_figures_of_one_row_differ_though_its_name_is_one() -> None:
    first = ("SELECT Nation, a - b", "Nation | n", "Norway | -4")
    assert doubts(first, ("SELECT Nation, c - d", "Nation | n", "Norway | 7")) != []
    assert doubts(first, ("SELECT Nation", "Nation", "Norway")) == []


def test_without_a_query_there_is_no_doubt() -> None:
    assert other_query_doubts("How many wins?", [], [queried(*WINS)], "") == []
    assert other_query_doubts("How many wins?", [Source("7 wins")], [queried(*WINS)], "") == []


def test_the_result_of_most_other_queries_is_told_with_one_of_them() -> None:
    words = "another query for it returned 7: SELECT sum(Wins) FROM riders"
    count = queried("SELECT count(*) FROM riders", "n", "4")
    assert other_result([count, queried(*WINS), queried(*WINS)]) == words
    assert other_result([queried("SELECT Wins", "Wins")]) == ""


def test_zeros_that_no_row_stands_behind_are_no_agreement() -> None:
    sql = "SELECT count(*) FROM riders WHERE team = 'A' AND team = 'B'"
    zero = queried(sql, "n", "0")
    nothing = replace(zero, facts=QueryFacts(nothing="conditions_unmet"))
    doubted = other_query_doubts("How many?", [nothing], [nothing, nothing], nothing.arguments)
    assert doubted == ["no row meets the conditions of the query"]
    assert other_result([nothing]) == ""
    assert doubts(WINS, WINS) == []
    beside = other_query_doubts("How many?", [queried(*WINS)], [nothing], "")
    assert beside == ["no other query for it returned the same"]
