"""Figures, quotations and addresses that what they rest on supports, and those that it does not."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.base import limits
from supervision.base.text import size
from supervision.grounding.support import UNSUPPORTED_BYTES, Source, check, unsupported_texts

TABLE = """| country | year | life_expectancy_years | gdp_per_person_dollars |
|---|---|---|---|
| Chile | 1962 | 57.924 | 4519.09 |
| Norway | 1962 | 73.47 | 13450.4 |
| Chile | 1992 | 74.126 | 7596.13 |
"""
ENERGY = "| year | source | net_generation_gwh |\n|---|---|---|\n| 2017 | Wind | 21933 |\n| 2001 | Wind | 1437 |"
STAFF = "Employees in thousands: | 2009-03 | Total nonfarm | 132657 | and 12,345.6 later"
REPORT = (
    "The council said: “The bridge will be closed for repairs until the end of May, and no later.” It cost 3.4 million "
    "euros, 12 % more than planned. See https://example.org/reports/bridge-2019 or write to office@example.org."
)


def missing(text: str, *sources: str | Source) -> list[str]:
    given = [s if isinstance(s, Source) else Source(s) for s in sources]
    return [claim.text for claim in check(text, given) if not claim.source]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Life expectancy in Chile was 57.924 years in 1962.", TABLE),
        ("It was 57.9 years, then 74.1 years.", TABLE),
        ("nearly 60 years", TABLE),
        ("Norway: 13,450.4 dollars, or $13,450", TABLE),
        ("over the 30 years from 1962 to 1992", TABLE),
        ("Wind made 21,933 GWh in 2017.", ENERGY),
        ("about 22,000 gigawatt-hours", ENERGY),
        ("131 jobs in section 14, table 15 and step 16", "131"),
        ("There were 132.657 million employees", STAFF),
        ("12 345.6 thousand", STAFF),
        ("It cost €3.4 million.", REPORT),
        ("It cost 3.4 million euros, 12% more.", REPORT),
        ("a rise of 12 percent", REPORT),
        ('He said "the bridge will be closed for repairs until the end of May"', REPORT),
        ('"The bridge will be closed … until the end of May, and no later"', REPORT),
        ("> The bridge will be closed for repairs\n> until the end of May", REPORT),
        ("See [the report](https://example.org/reports/bridge-2019).", REPORT),
        ("See www.example.org/reports/bridge-2019/ and office@example.org", REPORT),
        ("Two of 12 agents, 5 years and 7 days, 100 % of them.", ""),
        ("Both [t2] and [12], subtask t14, COVID-19, the 21st century, Q3, 5G, S&P 500, ISO 9001, v1.2.3", ""),
        ("14. A point\n15) Another\n## 16 Heading", ""),
        ("```sql\nSELECT 1234\n```\nand `WHERE year = 1999`", ""),
        ('the "quick fix" of it', ""),
        ("1.2e3 and 1.2 × 10^3", "1200"),
        ("-4.5 and −4.5", "fell by 4.5"),
        ("22,500 and 1,230,000", "22478; 1,234,567 exactly: about 22,500"),
        ("25 bps", "0.25 %"),
        ("from 12.3 to 14.5 million", "12.3 million, 14.5 million"),
    ],
)
def test_a_claim_is_supported(text: str, source: str) -> None:
    assert missing(text, source) == []


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("Life expectancy in Chile was 58.924 years.", TABLE, ["58.924 years"]),
        ("It was 57.8 years.", TABLE, ["57.8 years"]),
        ("It rose by 28 %.", TABLE, ["28 %"]),
        ("$14,450 a person", TABLE, ["$14,450"]),
        ("€13,450 a person", TABLE, ["€13,450"]),
        ("Wind made 21,933 MWh in 2017.", ENERGY, ["21,933 MWh"]),
        ("It cost 3.4 billion euros.", REPORT, ["3.4 billion euros"]),
        ("It cost 3.4 million dollars.", REPORT, ["3.4 million dollars"]),
        ("in 2013", TABLE, ["2013"]),
        ("`2013` wells", TABLE, ["2013"]),
        ('"The bridge will be closed for repairs until the end of June"', REPORT, None),
        ('"the bridge will never be closed … until the end of May"', REPORT, None),
        ("see https://example.org/reports/bridge-2020", REPORT, ["https://example.org/reports/bridge-2020"]),
        ("see example.com/bridge", REPORT, ["example.com/bridge"]),
        ("doi 10.1000/182", REPORT, ["10.1000/182"]),
        ("8 % of them and $5", "", ["8 %", "$5"]),
        ("5 million people", "", ["5 million"]),
        ("5 million people", "5 people", ["5 million"]),
        ("5 million people", "5 thousand people and 7 million plums", ["5 million"]),
        ("5,000,000 people", "5 thousand people and 7 million plums", ["5,000,000"]),
        ("13 people", "", ["13"]),
    ],
)
def test_a_claim_is_not_supported(text: str, source: str, expected: list[str] | None) -> None:
    assert missing(text, source) == expected if expected is not None else len(missing(text, source)) == 1


def test_a_computed_figure_counts_if_its_operands_are_supported() -> None:
    data = Source("| 1962 | 57.924 |\n| 1992 | 74.126 |")
    difference = Source("= 16.202", "computed", '{"expression": "74.126 - 57.924"}')
    ratio = Source("= 1.279711", "computed", '{"expression": "74.126 / 57.924"}')
    assert missing("It rose by 16.2 years, or 28 %.", data) == ["16.2 years", "28 %"]
    assert missing("It rose by 16.2 years, or 28 %.", data, difference, ratio) == []


def test_a_made_up_figure_does_not_become_true_by_computing_with_it() -> None:
    data = Source("| 1962 | 57.924 |")
    laundered = Source("= 431.7", "computed", '{"expression": "431.7 * 1"}')
    assert missing("It was 431.7.", data, laundered) == ["431.7"]


def test_computed_figures_may_rest_on_computed_figures() -> None:
    data = Source("40 and 44")
    first = Source("4.0", "computed", '{"expression": "44 - 40"}')
    second = Source("0.37", "computed", '{"expression": "17.3 * 4.0"}')
    third = Source("17.3", "computed", '{"expression": "4.0 + 13.3"}')
    assert missing("17.3 and 0.37", data, second, first, third) == ["17.3", "0.37"]
    assert missing("17.3 and 0.37", data, second, first, third, Source("13.3")) == []


@given(st.floats(0.001, 1e9), st.integers(0, 6))
def test_every_rounding_of_a_figure_is_supported(value: float, decimals: int) -> None:
    exact = f"{value:.9f}"
    assert missing(f"a value of {value:.{decimals}f} kg", f"mass {exact}") == []
    assert missing(f"a value of {value:,.{decimals}f} kg", f"mass {exact}") == []


@given(st.integers(13, 10**7), st.integers(2, 50))
def test_a_figure_far_from_all_others_is_never_supported(value: int, factor: int) -> None:
    assert missing(f"exactly {value * factor + 7} wells", f"{value} wells") != []


@given(st.text(max_size=400), st.text(max_size=400))
def test_any_text_is_read(text: str, source: str) -> None:
    for claim in check(text, [Source(source), Source(source, "computed", text)]):
        assert claim.text


@given(st.text(alphabet="0123456789.,- %$€km\n", max_size=300))
def test_a_text_supports_itself(text: str) -> None:
    assert missing(text, text) == []


@pytest.mark.parametrize(
    ("known", "holds"), [("17.3", True), ("17.3475", True), ("17.2525", True), ("17.36", False), ("17.24", False)]
)
def test_an_operand_is_supported_by_what_rounds_to_it(known: str, holds: bool) -> None:
    computed = Source("= 34.6", "computed", '{"expression": "17.3 * 2"}')
    assert missing("34.6 wells", Source(f"{known} wells"), computed) == ([] if holds else ["34.6"])


@pytest.mark.parametrize(("known", "holds"), [("44.4", True), ("45", False)])
def test_a_whole_operand_is_supported_by_what_rounds_to_it(known: str, holds: bool) -> None:
    computed = Source("= 88.8", "computed", '{"expression": "44 * 2.018"}')
    assert missing("88.8 wells", Source(f"{known}, 2.018"), computed) == ([] if holds else ["88.8"])


# --- as it is shown and kept ----------------------------------------------------------------------


def test_what_is_unsupported_is_kept_with_what_was_doubted_before_wherever_the_text_has_it() -> None:
    kept = unsupported_texts("431 wells and 512 pumps", [Source("512 pumps")], ["512 pumps", "431", "999"])
    assert kept == ["431", "512 pumps"]


def test_of_what_is_unsupported_not_too_much_is_kept() -> None:
    doubtful = ["x" * 1000, *map("".join, product("abcdef", repeat=4))]
    kept = unsupported_texts(" ".join(doubtful), [], doubtful)
    assert len(kept) == limits.UNSUPPORTED_SHOWN
    assert max(size(item) for item in kept) == UNSUPPORTED_BYTES


# --- where it was found ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "source", "line"),
    [
        ("57.9 years", "query", "| Chile | 1962 | 57.924 | 4519.09 |"),
        ("21.9 TWh", "query", "| 2017 | Wind | 21933 |"),
        ("16.2 years", "calculate", "= 16.202"),
        ("30 years", "query", "| Chile | 1992 | 74.126 | 7596.13 |"),  # a span of years
        ("431 wells", "brief", "There are 431 wells."),
        ("4 519 dollars", "query", "| Chile | 1962 | 57.924 | 4519.09 |"),
        ("https://example.org/reports/bridge-2019", "report", None),
        ('"The bridge will be closed for repairs"', "report", None),
    ],
)
def test_a_claim_is_shown_with_the_line_that_has_it(claim: str, source: str, line: str | None) -> None:
    computed = Source("= 16.202", "computed", '{"expression": "74.126 - 57.924"}', "calculate")
    tables = [Source(TABLE, name="query"), Source(ENERGY, name="query")]
    (found,) = check(claim, [Source("There are 431 wells."), *tables, computed, Source(REPORT, name="report")])
    assert found.source == source
    if line is not None:
        assert found.line == line
    else:
        assert "bridge" in found.line


def test_of_a_long_line_what_is_around_the_claim_is_shown() -> None:
    (found,) = check("4711.5 kg", [Source(f"{'a ' * 5000}4711.5 kg {'b ' * 5000}", name="look")])
    assert "a 4711.5 kg b" in found.line
    assert len(found.line) <= 160
