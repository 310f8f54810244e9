"""Names, places and causes that no source has, in English and in German, and what is none."""

import pytest

from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

ENGLISH = [
    Source("Which source of electricity grew most in Iowa, and who delivers to the South?"),
    Source("| source | net_generation_gwh |\n|---|---|\n| Fossil Fuels | 29329 |\n| Renewables | 21933 |\n2 rows"),
    Source(
        "The United States has many carriers. Südfracht GmbH filed for insolvency on 14 July 2025, because the "
        "diesel it needs became dear. Amazon Web Services and the HIV/AIDS programme of Norway are named, too."
    ),
]
GERMAN = [
    Source("Welche Firma liefert in den Süden, und warum fiel der Umsatz?"),
    Source(
        "Die Firma Südfracht in Köln ist seit dem 14. Juli insolvent, weil der Diesel teuer wurde und die Bank ging."
    ),
]


def unknown(text: str, sources: list[Source]) -> list[str]:
    return [claim.text for claim in check(text, sources) if not claim.source]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The source that grew most was the coal industry.", ["the coal industry"]),
        ("The carrier that took over is UPS.", ["UPS"]),
        ("Zephyr rose most.", ["Zephyr"]),
        ("Denmark had the highest output.", ["Denmark"]),
        ("The deliveries were taken over by Atlantis Logistics in July.", ["Atlantis Logistics"]),
        ("- Denmark: 29,329 GWh", ["Denmark"]),
        ("The output fell because of a volcanic eruption.", ["a volcanic eruption"]),
        ("The output fell due to striking dockworkers.", ["striking dockworkers"]),
        ("The output of the largest source was plutonium.", ["plutonium"]),
    ],
)
def test_what_no_source_names_is_listed(text: str, expected: list[str]) -> None:
    found = unknown(text, ENGLISH)
    assert set(expected) <= set(found)


@pytest.mark.parametrize(
    "text",
    [
        "Renewables grew most in Iowa. However, Fossil Fuels still made 29,329 GWh in total.",
        "The carrier of the South, Südfracht, is insolvent since July; the US has many others.",
        "Südfracht went bankrupt because diesel became dear.",
        "AWS and the Norwegian programme against AIDS are named.",
        "Overall, the Southern carriers' problem was the price of diesel. Source: the notes of Monday, 14 July.",
        "## Key Findings\n\n**Answer:** Renewables, as the SQL query shows. Growth was strong.",
        "The fossil sources lead because the values are higher.",
        "Turbines rose most, as new turbines were built.",
        "See [the notes](https://example.org/Atlantis) and [t2].",
        "Die erneuerbaren Energien wuchsen in Iowa und in Norwegen am stärksten.",
    ],
)
def test_what_stands_in_a_source_in_any_form_is_not_listed(text: str) -> None:
    assert [name for name in unknown(text, ENGLISH) if "example" not in name] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Die Lieferungen in den Süden übernahm die Firma Nordfracht Hansen GmbH.", True),
        ("Der Umsatz fiel wegen eines Vulkanausbruchs.", True),
        ("Die Ware kam aus Dänemark und wurde in Köln verladen.", True),
        ("Das Unternehmen in Köln ist seit Juli insolvent, und der Umsatz der Firma fiel.", False),
        ("Der Rückgang des Umsatzes hat zwei Gründe: die Insolvenz und den teuren Diesel.", False),
        ("Die Lieferung in den Süden fiel aus, weil die Firma insolvent ist.", False),
    ],
)
def test_in_german_nouns_are_no_names(text: str, expected: bool) -> None:
    assert bool(unknown(text, GERMAN)) is expected


def test_a_name_in_a_filter_counts_if_the_query_has_rows() -> None:
    sql = '{"sql": "SELECT a FROM t WHERE land = \'Denmark\'"}'
    goal = Source("What is the output of the north?")
    assert unknown("Denmark has 15 of them.", [goal, Source("| a |\n|---|\n| 15 |\n1 row", arguments=sql)]) == []
    assert "Denmark" in unknown("Denmark has none of them.", [goal, Source("| a |\n|---|\n0 rows", arguments=sql)])


TASKS = Source("| task | days |\n|---|---|\n| Packaging | 10 |\n| Certificate | 25 |\n2 rows", name="query_data")
SUM = Source("10 + 25 = 35", "computed", '{"expression": "10 + 25"}', "calculate")


def test_a_sum_before_its_parts_is_no_cell_of_a_column() -> None:
    assert unknown("35 days: Packaging 10, Certificate 25.", [TASKS, SUM]) == []
    assert unknown("The days: Packaging.", [TASKS, SUM]) != []
