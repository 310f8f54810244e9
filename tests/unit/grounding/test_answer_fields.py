"""Fields of structured answers: a figure counts beside its unit and the name of its row, where findings have these."""

from typing import Any

import pytest

from supervision.grounding.answer_fields import field_claims

WIND = """## Sites

- Esbjerg: mean wind 7.9 m/s, a permit takes 90 days
- Hirtshals: mean wind 8.4 m/s, a permit takes 180 days
"""
TABLE = """| country | continent | year | life_expectancy_years |
|---|---|---|---|
| Rwanda | Africa | 1952 | 40.0 |
| Rwanda | Africa | 2007 | 46.242 |
| Botswana | Africa | 2007 | 50.728 |
"""


def missing(value: Any, *findings: str, given: str = "") -> list[str]:
    """The paths of what no finding has."""
    return [
        claim.path.removeprefix("answer_json") for claim in field_claims(value, findings, [given]) if not claim.found
    ]


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"site": "Esbjerg", "mean_wind_ms": 7.9, "permit_days": 90}, []),
        ({"site": "Esbjerg", "mean_wind_ms": 180, "permit_days": 180}, [".mean_wind_ms", ".permit_days"]),
        ({"site": "Esbjerg: 7.9 m/s [t1]", "mean_wind_ms": 180}, [".mean_wind_ms"]),
        ([{"name": "Hirtshals", "permitDays": 180}, {"name": "Esbjerg", "permitDays": 180}], ["[1].permitDays"]),
        ({"mean_wind_ms": 91}, [".mean_wind_ms"]),  # without a row: in any line with the unit
        ({"permit_days": 90}, []),
        ({"site": "Skagen", "permit_days": 90}, []),  # no finding has the name
        ({"best": "Hirtshals", "other": "Esbjerg", "best_ms": 8.4, "other_ms": 7.9}, []),
        ({"permit_days": 7}, [".permit_days"]),
        ({"sites": 2, "useful": True, "note": None}, []),
        ({"mean": 8.15}, [".mean"]),  # computed by its author
        ({"source": "see https://wind.example/a"}, [".source"]),
        ({"quotation": 'it says "permits are quick and easy to get"'}, [".quotation"]),
    ],
)  # fmt: skip
def test_a_figure_is_found_beside_its_unit_and_its_row(value: Any, paths: list[str]) -> None:
    assert missing(value, WIND) == paths


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"country": "Rwanda", "continent": "Africa", "life_expectancy_years": 46.24}, []),
        ({"country": "Rwanda", "continent": "Africa", "life_expectancy_years": 50.728}, [".life_expectancy_years"]),
        ({"country": "Rwanda", "life_expectancy_years": 40.5}, [".life_expectancy_years"]),
        ({"country": "Rwanda", "year": 1952}, []),
        ({"country": "Rwanda", "year": 1977}, [".year"]),
    ],
)
def test_a_cell_of_a_table_has_the_head_of_its_column_and_the_names_of_its_row(value: Any, paths: list[str]) -> None:
    assert missing(value, TABLE) == paths


def test_the_heading_names_the_row_of_the_lines_below_it() -> None:
    text = "## Esbjerg\n- wind: 7.9 m/s\n## Hirtshals\n- wind: 8.4 m/s"
    assert missing([{"site": "Esbjerg", "wind_ms": 8.4}, {"site": "Hirtshals", "wind_ms": 8.4}], text) == [
        "[0].wind_ms"
    ]


def test_a_year_may_come_from_the_goal() -> None:
    assert missing({"site": "Esbjerg", "year": 2031}, WIND, given="How windy will it be in 2031?") == []
