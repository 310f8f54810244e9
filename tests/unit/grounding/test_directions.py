"""Signs, scales that a source declares, shares, and years, columns and names beside a figure."""

import json

import pytest

from temporal_supervisor.supervision.grounding.answer_fields import field_claims
from temporal_supervisor.supervision.grounding.citations import CitedFindings
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

TABLE = (
    "| item | 2019 | 2018 | 2017 |\n| --- | --- | --- | --- |\n"
    "| Other | 44.1 | 56.7 | 70.8 |\n| Leases | 93.4 | 81.6 | 77.2 |\n2 rows"
)
SOURCES = [
    Source("<subtask>\nWhat is the change in Other?\n</subtask>"),
    Source(TABLE, "data", json.dumps({"sql": "SELECT * FROM sums"}), "query_data"),
    Source("44.1 - 56.7 = -12.6", "computed", json.dumps({"expression": "44.1 - 56.7"}), "calculate"),
]


def lacking(text: str, sources: list[Source] = SOURCES) -> list[str]:
    """Returns the claims of a text that nothing supports."""
    return [claim.text for claim in check(text, sources) if not claim.source]


HONEST = [
    "Other was 44.1 in 2019 and 56.7 in 2018. Change: 44.1 − 56.7 = −12.6, a decrease.",
    "Other fell by 12.6, from 56.7 in 2018 to 44.1 in 2019.",
    "The difference in Other between 2019 and 2018 is 12.6.",
    "- Other, 2019: 44.1\n- Other, 2018: 56.7\n\n44.1 − 56.7 = −12.6",
]
WRONG = {
    "another sign": "Change: 44.1 − 56.7 = 12.6.",
    "the other direction": "Other rose by 12.6, from 56.7 in 2018 to 44.1 in 2019.",
    "a rise that fell": "Leases rose from 93.4 in 2019 to 81.6 in 2018.",
    "years exchanged": "Other was 44.1 in 2018 and 56.7 in 2019. Change: 44.1 − 56.7 = −12.6, a decrease.",
    "a row that the calculation hides": "Leases was 44.1 in 2019. 44.1 − 56.7 = −12.6, a decrease.",
    "backwards": "The change in Other from 2019 to 2018 is −12.6.",
    "no share": "Change: 44.1 − 56.7 = −12.6 %, a decrease.",
}


@pytest.mark.parametrize("text", HONEST)
def test_a_change_with_its_sign_is_supported(text: str) -> None:
    assert lacking(text) == []


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_a_change_in_the_other_direction_is_not(text: str) -> None:
    assert lacking(text)


def test_a_figure_that_a_calculation_has_twice_is_looked_up_once() -> None:
    text = "((222 − 191) / 191) × 100 = 16.23 %"
    source = Source(
        "| item | 2019 | 2018 |\n| --- | --- | --- |\n| Wood | 222 | 191 |\n1 row",
        "data",
        "{}",
        "q",
    )
    assert lacking(text, [source]) == []


@pytest.mark.parametrize(
    ("declared", "said", "is_known"),
    [
        ("Sales by kind (in millions):", "12.6 million", True),
        ("All amounts in thousands of U.S. dollars.", "12.6 thousand", True),
        ("Sales by kind (in thousands):", "12.6 million", False),
        ("Sales were $1 million.", "12.6 million", False),
    ],
)
def test_one_source_declares_the_scale_of_another(declared: str, said: str, is_known: bool) -> None:
    sources = [*SOURCES, Source(declared, "data", "{}", "read_document")]
    assert (lacking(f"Other fell by {said}.", sources) == []) is is_known


def test_a_finding_declares_the_scale_of_another_that_is_cited_with_it() -> None:
    cited = CitedFindings({"t1": "The change is −12.6.", "t2": "The amounts are in millions."})
    assert cited.lacking("The change is −12.6 million", ["t1", "t2"]) == []
    assert cited.lacking("The change is −12.6 billion", ["t1", "t2"]) != []


def test_commas_of_thousands_do_not_hide_another_scale() -> None:
    source = Source("The change is 49,872 thousand.", "data", "{}", "read_document")
    assert lacking("The change is 49,872 thousand.", [source]) == []
    assert lacking("The change is 49,872 million.", [source]) == ["49,872 million"]


def test_a_ratio_is_no_percentage() -> None:
    ratio = Source(
        "121041 / 154619 = 0.7828",
        "computed",
        json.dumps({"expression": "121041 / 154619"}),
        "calculate",
    )
    table = Source("| a | b |\n| --- | --- |\n| 121041 | 154619 |\n1 row", "data", "{}", "q")
    assert lacking("The current ratio is 0.78.", [ratio, table]) == []
    assert lacking("It is 78 %.", [ratio, table]) == []
    assert lacking("It is 0.78 %.", [ratio, table]) == ["0.78 %"]


def test_a_figure_belongs_to_its_column() -> None:
    rows = "| item | First Quarter | Third Quarter |\n| --- | --- | --- |\n| Revenues | 94888 | 88495 |\n1 row"
    source = Source(rows, "data", "{}", "q")
    assert lacking("Revenues were 94,888 in the First Quarter.", [source]) == []
    assert lacking("Revenues were 88,495 in the First Quarter.", [source]) == ["88,495"]


RIDERS = (
    "| Pos | Rider | Team | Laps |\n| --- | --- | --- | --- |\n| 1 | Max Biaggi | Aprilia | 25 |\n"
    "| 2 | Tomomi Manako | Yamaha | 24 |\n| 13 | Luca Boscoscuro | Honda | 25 |\n3 rows"
)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("The team of Tomomi Manako is Yamaha.", True),
        ("The team of Tomomi Manako is Aprilia.", False),
        ("In the row of Pos 13, Rider is Luca Boscoscuro.", True),
        ("In the row of Pos 13, Rider is Max Biaggi.", False),
        ("In the row of Pos 2, Rider is Yamaha.", False),
        ("Tomomi Manako came before the rider of Aprilia.", True),
        ("Max Biaggi and Tomomi Manako rode for Aprilia and Yamaha.", True),
    ],
)
def test_a_sentence_joins_only_names_of_one_row(text: str, is_right: bool) -> None:
    asked = json.dumps({"sql": "SELECT * FROM riders"})
    assert (lacking(text, [Source(RIDERS, "data", asked, "query_data")]) == []) is is_right


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("4 ships lay at the North quay.", True), ("6 ships lay at the North quay.", False)],
)
def test_a_small_count_is_that_of_its_query(text: str, is_right: bool) -> None:
    sql = "SELECT count(*) AS n FROM ships WHERE \"Berth\" = 'North quay'"
    source = Source("| n |\n| --- |\n| 4 |\n1 row", "data", json.dumps({"sql": sql}), "query_data")
    assert (lacking(text, [source]) == []) is is_right


def test_names_of_files_in_brackets_are_marks() -> None:
    made = claims("It is so [16-Publix.md], [annual 2024.pdf p. 13]; [134] million.")
    assert [claim.text for claim in made] == ["134"]


@pytest.mark.parametrize(
    ("value", "finding", "goal", "is_found"),
    [
        (-12.6, "The change is −12.6.", "What is the change?", True),
        (12.6, "The change is −12.6.", "What is the change?", False),
        (12.6, "It fell by 12.6.", "What is the change?", True),
        (12.6, "The change is −12.6.", "By how much did it fall?", True),
        (-12.6, "The change is 12.6.", "What is the change?", False),
        (4, "There are four ships.", "How many ships are there?", True),
        (6, "There are four ships.", "How many ships are there?", False),
        ("Yamaha", "He rode for Aprilia.", "For which team did he ride?", False),
        ("Aprilia Racing", "He rode for Aprilia.", "For which team did he ride?", True),
        ("Yes", "He rode for Aprilia.", "Did he ride for Aprilia?", True),
    ],
)
def test_a_field_has_the_sign_and_the_words_of_a_finding(
    value: float | str, finding: str, goal: str, is_found: bool
) -> None:
    found = list(field_claims({"value": value, "scale": "million"}, [finding], [goal]))
    assert all(known for _, _, known in found) is is_found


@pytest.mark.parametrize(
    "text",
    [
        "The price rose from 12,5 EUR to 13 EUR.",
        "Revenue rose from 1.234,5 to 1.300,7 EUR.",
        "Revenue rose from 1.234 to 1.300 EUR.",
        "It fell from 1,234 to 999.",
    ],
)
def test_a_change_is_read_in_the_convention_in_which_it_is_true(text: str) -> None:
    assert [claim.text for claim in check(text, [Source(text)]) if not claim.source] == []


@pytest.mark.parametrize("text", ["It fell from 12,5 EUR to 13 EUR.", "It rose from 1,234 to 999."])
def test_a_change_that_no_convention_makes_true_is_listed(text: str) -> None:
    assert [claim.text for claim in check(text, [Source(text)]) if not claim.source]
