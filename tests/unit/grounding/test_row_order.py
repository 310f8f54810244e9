"""Doubts about the order of rows: by letters where there are numbers, or by another column than the list's."""

import pytest

from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry
from temporal_supervisor.supervision.grounding.doubts.query_shape import shape_of
from temporal_supervisor.supervision.grounding.doubts.question_patterns import asks_for_a_place
from temporal_supervisor.supervision.grounding.doubts.row_order import sorted_against_the_list, sorted_by_letters
from temporal_supervisor.supervision.grounding.sources import Source
from tests.unit.grounding.test_other_queries import queried

LISTING = """\
table races (Day VARCHAR, Track VARCHAR, "Best time" VARCHAR, Season VARCHAR, Laps BIGINT, Rider VARCHAR): none
  Day: 'April 4', 'August 9', 'March 12', 'May 2'
  Track: 'Como', 'DEVON', 'Dax', 'St. Ives'
  "Best time": '10 s', '11 s', '9 s'
  Season: '2001/02', '2002/03', '2003/04'
  Laps: 4 to 40
  Rider: 'Jane', 'Julia', 'Marc', 'Marathon'"""


def asked(question: str, sql: str) -> Inquiry:
    listed = Source(LISTING, name="list_tables {}", arguments="{}")
    return Inquiry(question, [listed, queried(sql, "n", "1")])


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT count(*) FROM races WHERE Day > 'August'", "day"),
        ("SELECT count(*) FROM races WHERE races.Day BETWEEN 'April' AND 'May'", "day"),
        ('SELECT Track FROM races ORDER BY "Best time" LIMIT 1', "best time"),
        ('SELECT Track FROM races ORDER BY "Best time" DESC LIMIT 1', "best time"),
        ("SELECT max(Day) FROM races", "day"),
    ],
)
def test_numbers_and_months_in_texts_have_another_order_than_their_letters(sql: str, column: str) -> None:
    (doubt,) = sorted_by_letters(asked("Which?", sql))
    assert doubt == f"the query sorts or compares {column} by its letters, and it holds numbers"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Track FROM races ORDER BY Track",
        "SELECT Track FROM races ORDER BY Season DESC LIMIT 1",
        "SELECT Track FROM races ORDER BY Laps DESC LIMIT 1",
        "SELECT Track FROM races WHERE Day = 'May 2' OR Day <> 'April 4'",
        "SELECT Track FROM races ORDER BY Rider LIMIT 1",
        'SELECT Track FROM races ORDER BY "Best time"::INTEGER DESC LIMIT 1',
        'SELECT Track FROM races ORDER BY "Best time" + 0 LIMIT 1',
        "SELECT Track FROM races WHERE Day::DATE < '2004-05-06'",
        "SELECT Track FROM races ORDER BY strptime(Day, '%B %d')",
        "SELECT Track FROM races ORDER BY CAST(replace(\"Best time\", ' s', '') AS INT)",
    ],
)
def test_other_orders_are_as_they_seem(sql: str) -> None:
    assert not list(sorted_by_letters(asked("Which?", sql)))


@pytest.mark.parametrize(
    ("question", "sql", "is_doubted"),
    [
        ("What is the last track listed on this chart?", "SELECT Track FROM races ORDER BY Laps DESC LIMIT 1", True),
        ("What is the first name on the chart?", "SELECT Rider FROM races ORDER BY Laps LIMIT 1", True),
        ("What is the top speed in the table?", "SELECT max(Laps) FROM races", False),
        ("Which track has the most of all races listed?", "SELECT Track FROM races ORDER BY Laps DESC LIMIT 1", False),
        ("What is the last track listed?", "SELECT Track, count(*) n FROM races GROUP BY 1 ORDER BY n", False),
        ("What is the last track listed?", "SELECT Track FROM races ORDER BY Season DESC LIMIT 1", False),
        ("What is the last track in the list?", "SELECT Track FROM races ORDER BY rowid DESC LIMIT 1", False),
        ("What is the first track listed?", "SELECT Track FROM races LIMIT 1", False),
        ("What is the last lap listed?", "SELECT Laps FROM races ORDER BY Laps DESC LIMIT 1", False),
        ("Which track had the most laps?", "SELECT Track FROM races ORDER BY Laps DESC LIMIT 1", False),
    ],
)
def test_a_place_in_the_list_is_no_rank(question: str, sql: str, is_doubted: bool) -> None:
    found = list(sorted_against_the_list(asked(question, sql)))
    assert bool(found) == is_doubted


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Which track comes after Como?", True),
        ("What is the name listed before Dax?", True),
        ("What is the next stop on the line?", True),
        ("What is the last stadium listed on this chart?", True),
        ("Which tracks are above 50?", False),
        ("What is the average price below 50?", False),
        ("Answer the following question: who won?", False),
        ("Which is the next largest city?", False),
    ],
)
def test_only_some_questions_are_about_the_places_of_rows(question: str, asks: bool) -> None:
    assert asks_for_a_place(question) == asks


def test_columns_that_are_ordered_are_read_as_they_are_written() -> None:
    shape = shape_of('SELECT max(a) FROM "my table" t ORDER BY t."B c" DESC, d')
    assert shape.ordered == ["b c", "a"]
    assert shape_of("SELECT a FROM t ORDER BY lower(a)").ordered == []
