"""The most and the least of figures that a sentence lists: of findings, which an answer is written from."""

import pytest

from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

HOURS = (
    "The total hours worked by each mechanic are Ayla with 119.7 hours, Dörte with 109.3 hours, "
    "Bruno with 105.3 hours, and Cem with 87 hours."
)
LIFE = "In 2007 life expectancy was 82.6 years in Japan, 81.8 years in Iceland and 71.3 years in Egypt."


def problems(text: str, finding: str) -> list[str]:
    """Returns what is wrong with an answer that one finding is behind."""
    return [claim.problem for claim in check(text, [Source(finding)], ["t1"]) if not claim.source]


@pytest.mark.parametrize(
    ("answer", "best"),
    [
        ("Bruno worked the most hours in total with a total of 105.3 hours.", "119.7 hours"),
        ("Bruno worked the most hours. [t1]", "119.7 hours"),
        ("The fewest hours were 105.3 hours, by Bruno.", "87 hours"),
    ],
)
def test_another_figure_of_the_list_is_the_extreme(answer: str, best: str) -> None:
    assert problems(answer, HOURS) == [f"the finding that lists it has {best}"]


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        ("Ayla worked the most hours, 119.7 hours. [t1]", HOURS),
        ("Ayla worked the most hours.", HOURS),
        ("Cem worked the fewest hours: 87 hours.", HOURS),
        ("Dörte worked the second most hours, 109.3 hours.", HOURS),
        ("In Africa the highest life expectancy was 71.3 years, in Egypt.", LIFE + " Egypt is in Africa."),
        ("At most 105.3 hours were worked by Bruno.", HOURS),
        ("The longest night of Bruno took 105.3 hours.", "Bruno sailed 105.3 hours. His longest night was calm."),
        (
            "Bruno rose the most, by 105.3 hours.",
            "Of Ayla we have 119.7 hours, of Bruno 105.3 hours, of Cem 87 hours. Bruno rose the most.",
        ),
    ],
)
def test_an_honest_superlative_is_left_in_peace(answer: str, finding: str) -> None:
    assert problems(answer, finding) == []
