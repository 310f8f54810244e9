"""How exactly a source must have a figure, in which scale and unit, and what a tool computed from it."""

import pytest

from supervision.base import limits
from supervision.grounding.support import GROUNDING_SOURCES_CHARS, Source, check


def missing(text: str, *sources: Source) -> list[str]:
    return [claim.text for claim in check(text, list(sources)) if not claim.source]


def data(text: str) -> Source:
    return Source(text)


@pytest.mark.parametrize(
    ("claim", "source", "supported"),
    [
        ("12.5 kg", "12.55 kg", True),  # at the very edge
        ("12.5 kg", "12.56 kg", False),
        # spans of years
        ("200 years", "from 1800 to 2000", True),
        ("200 years", "from 800 to 1000", False),
        ("200 years", "from 2800 to 3000", False),
        ("199 years", "from 2800 to 2999", True),
        ("200 years", "from 1000.5 to 1200.5", False),
        ("0.0 years", "in 1900", False),
        ("-200 years", "from 1800 to 2000", True),
        # scales
        ("14 million euros", "from 14 to 15 million euros", True),
        ("14 million euros", "14 thousand euros", False),
        ("14500 euros", "in thousands: 14.5 euros", True),
        ("14500 euros", "14.5 euros", False),
        ("14 million euros", "in thousands: 14 million euros", True),
        ("14.5 euros", "14.5 million euros", True),
        ("14.5 thousand euros", "14.5 million euros", False),
        # multiples of a unit
        ("1.2 TWh", "1198 GWh", True),
        ("1.2 TWh", "1298 GWh", False),
        ("1.2 TWh", "1198 MWh", False),
        ("4,412 tonnes", "4412 kg", False),
        ("4.41 tonnes", "4412 kg", True),
        ("2 days", "48 hours", True),
        # shares
        ("12.5 %", "a share of 0.125", True),
        ("12.5 %", "a share of 0.1256", False),
        ("12.5 %", "1250 bps", True),
        ("12.5 %", "1256 bps", False),
        ("250 bps", "2.5 %", True),
        ("251 bps", "2.5 %", False),
        ("0.25 of them", "25 %", True),
        ("0.25 of them", "25.4 %", True),
        ("0.25 of them", "26 %", False),
        ("25.5 of them", "2550 %", True),
    ],
)
def test_a_figure_is_supported_as_exactly_as_it_is_written(claim: str, source: str, supported: bool) -> None:
    assert (missing(claim, data(source)) == []) is supported


@pytest.mark.parametrize(
    ("claim", "result", "supported"),
    [
        ("a rise of 25.5 %", "1.255", True),
        ("a rise of 25.5 %", "1.2554", True),
        ("a rise of 25.5 %", "1.2556", False),
        ("a fall of 25.5 %", "0.745", True),
        ("a fall of 25.5 %", "0.7446", True),
        ("a fall of 25.5 %", "0.7444", False),
        ("a rise of 25.5 %", "0.255", True),
    ],
)
def test_a_change_in_percent_is_a_computed_ratio(claim: str, result: str, supported: bool) -> None:
    assert (missing(claim, Source(result, "computed")) == []) is supported
    if supported and result != "0.255":
        assert missing(claim, data(result)) == [claim.split(" of ")[1]]


@pytest.mark.parametrize(
    ("arguments", "supported"),
    [
        ("41.5 * 2", True),
        ("41.54 * 2", False),
        ("41.46 * 2", False),
        ("83 / 2 * 41.5", False),
        ("4150 / 100", True),
        ("4151 / 100", False),
        ("4150.5 / 100", False),
    ],
)
def test_what_was_computed_counts_if_its_figures_are_supported(arguments: str, supported: bool) -> None:
    sources = (data("41.5 and 4150"), Source("77.7", "computed", arguments))
    assert (missing("77.7 kg", *sources) == []) is supported


def test_figures_in_a_row_need_support_each() -> None:
    assert missing("12 345 678 people", data("12 and 345, then 678")) == []
    assert missing("12 345 678 people", data("12 and 345")) != []


def test_an_address_or_a_quotation_needs_one_of_the_sources() -> None:
    text = 'See https://example.org/a and "the bridge will be closed in May".'
    assert missing(text, data("nothing"), data("example.org/a; the bridge will be closed in May")) == []


def test_only_the_beginning_of_many_sources_is_read() -> None:
    full = "x " * (limits.GROUNDED_CHARS // 2)
    filler = [data(full)] * (GROUNDING_SOURCES_CHARS // limits.GROUNDED_CHARS)
    assert missing("77.7 kg", *filler[1:], data("77.7 kg")) == []
    assert missing("77.7 kg", *filler, data("77.7 kg")) == ["77.7 kg"]
    assert missing("77.7 kg", data(full + " 77.7 kg")) == ["77.7 kg"]
