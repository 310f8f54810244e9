"""What a text says of a cell, of the only figure of a query, and in a unit or with a sign that nothing has."""

import json
from typing import Any

import pytest

from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

SALES = (
    "| $ MILLION | F19 53 WEEKS | F18 52 WEEKS | Change (%) |\n| --- | --- | --- | --- |\n"
    "| Sales | 1671 | 1612 | 3.7 |\n| EBITDA | 372 | 361 | 3.5 |\n| Cost of sales | 900 | NULL | 2.5 |\n3 rows"
)
CASH = (
    "| $ million | 2019 | 2018 €m | Change (%) |\n| --- | --- | --- | --- |\n"
    "| Closing cash | 183.2 | 121.6 | 50.7 |\n1 row"
)


def lacking(text: str, *outputs: str, sql: str = "SELECT * FROM t", asked: str = "What was it?") -> list[str]:
    """Returns the claims of a text that nothing supports, after queries with these outputs."""
    queried = [Source(output, "data", json.dumps({"sql": sql}), "query_data") for output in outputs]
    return [claim.text for claim in check(text, [Source(asked), *queried]) if not claim.source]


@pytest.mark.parametrize(
    "text",
    [
        "- Sales, F19 53 WEEKS: 1,671\n- Sales, F18 52 WEEKS: 1,612",
        "Sales in F19 53 WEEKS were 1.67 billion.",
        "Closing cash was 183.2 in 2019 and 121.6 in 2018.",
        "Closing cash was 183 million in 2019, 122 million in 2018.",
        "The change of closing cash from 2018 to 2019 was 50.7 %.",  # a further word: it may be computed
        "Sales and EBITDA, F19 53 WEEKS: 372",  # two rows
        "Cost of sales, F18 52 WEEKS: 361",  # an empty cell is no evidence
    ],
)
def test_a_named_cell_has_its_figure_in_any_rounding_and_scale(text: str) -> None:
    assert lacking(text, SALES, CASH) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("- Sales, F19 53 WEEKS: 372", "- Sales, F19 53 WEEKS: 372"),
        ("- Sales, F18 52 WEEKS: 1,671", "- Sales, F18 52 WEEKS: 1,671"),
        ("Closing cash was 183.2 in 2019 and 50.7 in 2018.", "Closing cash was 183.2 in 2019 and 50.7 in 2018."),
    ],
)
def test_a_figure_of_another_row_or_column_is_seen_behind_names_with_digits(text: str, wrong: str) -> None:
    assert lacking(text, SALES, CASH) == [wrong]


GOALS = (
    "| Season | Apps | Goals | Date |\n| --- | --- | --- | --- |\n"
    "| 2005 | 9 | 3 | 2005-04-01 |\n| 2006 | 2 | 1 | 2006-04-02 |\n2 rows"
)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("In the row of Season 2006, Goals is 1.", True),
        ("In the row of Season 2006, Goals is 2.", False),
        ("In the row of Season 2006, Goals is −1.", False),
        ("In the row of Season 2006, Apps is 2.", True),
        ("In the row of Season 2006, Date is 2006-04-02.", True),
        ("In the row of Season 2006, Goals is 2006-04-02.", False),
    ],
)
def test_a_small_number_or_a_date_stands_in_the_column_that_a_text_names(text: str, is_right: bool) -> None:
    assert (lacking(text, GOALS) == []) is is_right


COUNTED = "| n |\n| --- |\n| 15 |\n1 row"
MEAN = "| mean_wins |\n| --- |\n| 2.6 |\n1 row"
OF_LANGUAGE = "SELECT count(*) AS n FROM films WHERE language = 'Kannada'"


@pytest.mark.parametrize(
    ("text", "output", "is_right"),
    [
        ("15 films are in Kannada.", COUNTED, True),
        ("17 films are in Kannada.", COUNTED, False),
        ("Of 17 films, 15 are in Kannada.", COUNTED, True),
        ("The mean of wins is 2.6.", MEAN, True),
        ("The mean of wins is 5.", MEAN, False),
        ("The mean of wins is about 3.", MEAN, True),
        ("There is no mean.", MEAN, True),
    ],
)
def test_the_only_figure_of_a_query_is_told(text: str, output: str, is_right: bool) -> None:
    told = f"{text} The list has 17 rows." if "films" in text else text
    listed = Source("table films (language VARCHAR): none. Rows: 17", "data", "{}", "list_tables")
    queried = Source(output, "data", json.dumps({"sql": OF_LANGUAGE}), "query_data")
    found = [claim.text for claim in check(told, [Source("How many?"), listed, queried]) if not claim.source]
    assert (found == []) is is_right


def test_other_texts_may_have_another_figure() -> None:
    sources = [Source(MEAN, "data", json.dumps({"sql": "SELECT 1"}), "q"), Source("5 wins a year", "data", "{}", "r")]
    assert [claim.text for claim in check("The mean of wins is 5.", sources) if not claim.source] == []


@pytest.mark.parametrize(
    ("text", "source", "wrong"),
    [
        ("Attendance was 363 kg.", "Attendance was 363.", ["363 kg"]),
        ("It is 40km.", "40km", []),
        ("It weighs 363 kg.", "Its weight is 363.", []),
        ("It is 363 km long.", "How many kilometres long? 363", []),
        ("It took 363 days.", "It took 363.", []),
        ("It cost 363 euros.", "It cost 363.", []),
    ],
)
def test_a_unit_of_measure_is_named_or_implied_by_something_that_was_read(
    text: str, source: str, wrong: list[str]
) -> None:
    assert [claim.text for claim in check(text, [Source(source)]) if not claim.source] == wrong


SIGNS = "| a | b | price | terms |\n| --- | --- | --- | --- |\n| 0.07 | 49.67 | 12.5 | free returns |\n1 row"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("The correlation of children and charges is −0.07.", False),
        ("The correlation of children and charges is 0.07.", True),
        ("The standard deviation is −49.67.", False),
        ("The standard deviation is 49.67.", True),
        ("The loss is −49.67.", True),
        ("The price is −12.5.", False),  # whatever other cells of the row tell of
    ],
)
def test_a_minus_needs_a_reason(text: str, is_right: bool) -> None:
    assert (lacking(text, SIGNS) == []) is is_right


def test_a_mean_of_amounts_is_no_share_though_the_table_has_shares_too() -> None:
    table = "| item | 2019 | 2018 |\n| --- | --- | --- |\n| Cash flow | 4411 | 4044 |\n| Tax rate | 21 | 35 |\n2 rows"
    query = Source(table, "data", json.dumps({"sql": "SELECT * FROM t"}), "query_data")

    def computed(expression: str, text: str) -> list[str]:
        result = Source(f"{expression} = {text}", "computed", json.dumps({"expression": expression}), "calculate")
        told = f"The mean is {text} %."
        return [claim.text for claim in check(told, [Source("The mean?"), query, result]) if not claim.source]

    assert computed("(4411 + 4044) / 2", "4227.5") == ["4227.5 %"]
    assert computed("(21 + 35) / 2", "28") == []


@pytest.mark.parametrize(
    ("question", "finding", "fields", "is_right"),
    [
        ("How many goals?", "There was 1 goal.", {"value": 1}, True),
        ("How many goals?", "There was 1 goal.", {"value": 0}, False),
        ("How many goals?", "There were no goals.", {"value": 0}, True),
        ("Which place?", "He came in sixth, 6.", {"value": -6}, False),
        ("Which place?", "Place is 6.", {"value": 1}, False),
        ("How far apart?", "Norway has 12, Sweden 8.", {"value": 4}, True),
        ("The outliers?", "There are 3 outliers.", {"outlier_count": 4}, False),
        ("The outliers?", "There are 3 outliers.", {"outlier_count": 3}, True),
        ("How urgent?", "It burns.", {"priority": 1}, True),  # no statistic
        ("Which team was 23rd, besides Angola?", "It was Carlin.", {"value": "23rd"}, False),
        ("Which place?", "It came in second.", {"value": "2nd"}, True),
        ("On which date?", "It was paid on 4 February 2026.", {"value": "2026-02-04"}, True),
        ("On which date?", "It was paid on 4 February 2026.", {"value": "2026-01-05"}, False),
        ("When?", "It was paid in May 2026.", {"value": "May 2026"}, True),
        ("Which score?", "The score was 1-6.", {"value": "1–6"}, True),
        ("Which note is common?", "The root is E♭.", {"value": "C"}, False),
        ("Which note is common?", "The root is C.", {"value": "C"}, True),
        ("Besides Republicans, which party?", "The Independent Party.", {"value": "Republican"}, False),
        ("Was it Ida or Jon?", "The elder one.", {"value": "Jon"}, True),  # one of the choices
        ("Which track?", 'It is "Call It".', {"value": '"Hog"'}, False),
        ("Does it?", "It does.", {"value": "Yes"}, True),
    ],
)
def test_a_short_answer_stands_in_a_finding(question: str, finding: str, fields: Any, is_right: bool) -> None:
    claims = [*field_claims(fields, [finding], [question])]
    assert all(found for _, _, found in claims) is is_right
