"""What reviewers say: looked up before anybody reads it, and of effect only if it names what code can see."""

import pytest

from temporal_supervisor.supervision.results.hearsay import KnownTexts, names_a_fault

GOAL = "Which carrier took over deliveries to the South, and when?"
FINDING = "Südfracht GmbH filed for insolvency on 14 July 2025."
KNOWN = KnownTexts([GOAL, FINDING, "month,orders\nJuly,86"])


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        ("The carrier that took over deliveries to the South is UPS and the date is 2008.", ""),
        ("UPS took over. Name the carrier.", "Name the carrier."),
        ("The orders of July are 86. The revenue is 50000.", "The orders of July are 86."),
        ("The date is missing: when did Südfracht file?", "The date is missing: when did Südfracht file?"),
        ("See https://example.org/carriers for it.", ""),
        ("Amazon rose most. Name the carrier.", "Name the carrier."),
        ("Der Spediteur UPS fehlt.", ""),
        ("Orders rose most in July.", "Orders rose most in July."),
        ("", ""),
    ],
)
def test_of_what_a_reviewer_says_the_sentences_stand_that_hold_nothing_unknown(said: str, stands: str) -> None:
    assert KNOWN.known_sentences(said) == stands


LIFE = "From table life_expectancy, give life expectancy in Rwanda in 1992 and in 1997, in years."
QUERY = "SELECT life_expectancy_years FROM life_expectancy WHERE country = 'Rwanda' AND year IN (1992, 1997)"


def test_a_refusal_must_name_a_figure_or_a_missing_part() -> None:
    refusal = "The finding does not answer what its subtask asks. It should provide life expectancy in Rwanda in 1992."
    assert not names_a_fault(refusal, LIFE, "23.599 years", QUERY)
    assert not names_a_fault("nowhere", LIFE, "23.599 years", QUERY)
    assert names_a_fault("1997 is missing.", LIFE, "In 1992: 23.599 years", QUERY.replace(", 1997", ""))
    assert names_a_fault("36.087 stands in the row of 1997.", LIFE, "23.599 years", QUERY)
    assert names_a_fault(
        "Growth is reported as decline: 5.1 is more than 4.9.", LIFE, "It fell from 4.9 to 5.1.", QUERY
    )
