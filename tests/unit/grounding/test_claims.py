"""What of a text is claimed: brackets, fences, small counts, and times between dates."""

import pytest

from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check


def figures(text: str, *marks: str) -> list[str]:
    return [claim.text for claim in claims(text, marks) if claim.kind == "figure"]


@pytest.mark.parametrize(
    ("text", "marks", "expected"),
    [
        ("a revenue of [134] million", (), ["134"]),
        ("a revenue of [134]", ("134",), []),
        ("as told [134, t2]", ("134", "t2"), []),
        ("as told [134, 135]", ("134",), ["134", "135"]),
        ("as told [t2] and [t14.3]", (), []),
        ("as told [27].\n\n[27] The annual report", (), []),
        ("a share of [38.8 %]", (), ["38.8 %"]),
    ],
)
def test_only_known_ids_are_marks(text: str, marks: tuple[str, ...], expected: list[str]) -> None:
    assert figures(text, *marks) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\nThe highest price is 224.02 dollars.\n```", ["224.02 dollars"]),
        ("```text\n| a | b |\n|---|---|\n| Elm | 84.25 |\n```", ["84.25"]),
        ('```json\n{\n  "answer": "84.25 m"\n}\n```', ["84.25"]),
        ("```sql\nThe highest price is 224.02\n```", ["224.02"]),
        ("```sql\nSELECT 224.02 FROM t LIMIT 500\n```", []),
        ("```\nWITH a AS (SELECT 500) SELECT * FROM a\n```", []),
        ('```python\nimport math\nx = math.floor(224.02)\nprint(x)\n```', []),
        ("```\n224.02 dollars\n``` and 99 more", ["224.02 dollars", "99"]),
        ("`84.25 years` and `WHERE year = 1999` and `t14`", ["84.25 years"]),
    ],
)  # fmt: skip
def test_an_answer_in_a_fence_is_an_answer_and_code_is_none(text: str, expected: list[str]) -> None:
    assert figures(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two countries, 3 reasons and 5 of 12 agents", []),
        ("a change of -10 years", ["10 years"]),
        ("5 GWh in 3 days", ["5 GWh", "3 days"]),
        ("it rose by 3 points.", ["3"]),
        ("3 points are to be noted", []),
    ],
)
def test_a_small_count_needs_support_if_it_has_a_unit(text: str, expected: list[str]) -> None:
    assert figures(text) == expected


@pytest.mark.parametrize(
    ("text", "source", "supported"),
    [
        ("19 years", "| year |\n|---|\n| 1973 |\n| 1992 |", False),
        ("19 years", "1973,1992\n1974,1993", False),
        ("the 19 years from 1973 to 1992", "1973 and 1992", True),
        ("70 days, from 14 July to 22 September 2025", "14 July, 22 September 2025", True),
        ("71 days, from 14 July to 22 September 2025", "14 July, 22 September 2025", False),
        ("200 years", "It stood from 1800 to 2000.", True),
        ("after 3 weeks", "It took three weeks.", True),
        ("after 4 weeks", "It took three weeks.", False),
    ],
)
def test_a_time_lies_between_two_dates_beside_it_or_in_one_sentence(text: str, source: str, supported: bool) -> None:
    assert all(claim.source for claim in check(text, [Source(source)], names=False)) is supported
