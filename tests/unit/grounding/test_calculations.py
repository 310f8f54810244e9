"""Calculations that a text writes out: their results hold if they are right and made of figures that hold."""

import pytest

from temporal_supervisor.supervision.contract.result import Citation
from temporal_supervisor.supervision.grounding.answer_chain import Grounded, answer_chain
from temporal_supervisor.supervision.grounding.citations import CitedFindings
from temporal_supervisor.supervision.grounding.claim_lookup import CALCULATION
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check

SOURCE = Source("rent 1,850 a month; Q1 1,100, Q2 1,234; price 3.05; share 12 %; revenue 1.23 million and 3.19 million")


def calculated(text: str) -> dict[str, str]:
    """The claims of a text that only a calculation in it supports."""
    return {claim.text: claim.line for claim in check(text, [SOURCE]) if claim.source == CALCULATION}


def nowhere(text: str) -> list[str]:
    return [claim.text for claim in check(text, [SOURCE]) if not claim.source]


@pytest.mark.parametrize(
    ("text", "result", "calculation"),
    [
        ("The deposit is 3 × EUR 1,850 = EUR 5,550.", "EUR 5,550", "3 × EUR 1,850"),
        ("The deposit is EUR 5,550 (3 × EUR 1,850).", "EUR 5,550", "3 × EUR 1,850"),
        ("1850*3=5550", "5550", "1850*3"),
        ("Together, 1,100 units + 1,234 units = **2,334 units**", "2,334", "1,100 units + 1,234 units"),
        ("It grew by 12.2 % ((1,234 − 1,100) / 1,100).", "12.2 %", "(1,234 − 1,100) / 1,100"),
        ("(1,234 - 1,100) ÷ 1,100 ≈ 12 %", "12 %", None),  # stands in the source as it is
        ("1,234 / 1,100 – 1 = 12.18 %", "12.18 %", "1,234 / 1,100 – 1"),
        ("Die Kaution: 3,05 x 1.850 = rund 5.642,50 EUR", "5.642,50 EUR", "3,05 x 1.850"),
        ("€1.23M + €3.19M = €4.42M", "€4.42M", "1.23M + €3.19M"),
        ("1,850 × 12 % = 222", "222", "1,850 × 12 %"),
        ("1.23 million + 3.19 million = 4.4 million", "4.4 million", "1.23 million + 3.19 million"),
        ("Rent:\n3 × 1,850 = 5,550", "5,550", "3 × 1,850"),
        (f"3 × 1,850 = 5,550{', 1,234' * 30}", "5,550", "3 × 1,850"),
        ("1,850 × 3 / 100 = 55", "55", "1,850 × 3 / 100"),  # 55.5
        (f"{' + '.join(['1,100'] * 12)} = 13,200", "13,200", " + ".join(["1,100"] * 12)),
        (f"13,200 ({' + '.join(['1,100'] * 12)})", "13,200", " + ".join(["1,100"] * 12)),
        ("12 % less: 1,850 × 0.88 = 1,628", "1,628", "1,850 × 0.88"),
        ("1,100 + 1,234 + 1,850 = 4,184 / 2 = 2,092", "2,092", "4,184 / 2"),
        ("Year: 12 · 1,850 = 22,200; a week 22,200 / 52 = 426.92", "426.92", "22,200 / 52"),
    ],
)
def test_the_result_of_a_right_calculation_holds(text: str, result: str, calculation: str | None) -> None:
    assert calculated(text).get(result) == calculation
    assert nowhere(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3 × 1,850 = 5,560", ["5,560"]),  # wrong
        ("5,560 (3 × 1,850)", ["5,560"]),
        ("It grew by 13 % ((1,234 − 1,100) / 1,100).", ["13 %"]),
        ("1,850 × 47 = 86,950", ["47", "86,950"]),  # of a figure that stands nowhere
        ("1,850 × 12 = 222", ["222"]),  # which would be 12 %
        (f"{' + '.join(['1,100'] * 13)} = 14,300", ["14,300"]),  # too many
        (f"3 × 1,850 {'pears ' * 40}= 5,550", ["5,550"]),  # too far away
        ("1,850 × 1.17 = 2,164.50", ["1.17", "2,164.50"]),  # by a share that stands nowhere
        ("7 × 11 × 12 = 924", ["924"]),  # of nothing but small counts
        ("1,100 + 1,234 is 2,334", ["2,334"]),  # not written as one
        ("2,334 was made of (1,100 and 1,234)", ["2,334"]),
        ("1,100 + 1,234\n= 2,334", ["2,334"]),
        ("1,850 = 5,550 (3)", ["5,550"]),  # no operation
        ("1,850 / 0 = 5,550", ["5,550"]),
        ("1,850 ** 2 = 3,422,500", ["3,422,500"]),
        ("1,850 3 = 5,550", ["5,550"]),
        ("3 × 1,850; 4 = 5,550", ["5,550"]),
        ("5,550 (3 × 1,850", ["5,550"]),
    ],
)
def test_any_other_result_needs_support(text: str, expected: list[str]) -> None:
    assert nowhere(text) == expected


def test_a_citation_with_a_calculation_holds_by_the_findings_that_it_names() -> None:
    cited = CitedFindings({"t1": "The rent is 1,850.", "t2": "It runs for 17 months."})
    text = "Over the term that is 31,450 (17 × 1,850) [t1, t2]. The deposit is 5,550 (3 × 1,850) [t2]."
    assert [citation.subtask_ids for citation in cited.citations(text, {"t1", "t2"})] == [["t1", "t2"]]
    assert cited.miscited(text, {"t1", "t2"}, []) == {"5,550": ["t2"], "1,850": ["t2"]}


def test_the_chain_of_an_answer_says_what_was_calculated() -> None:
    findings = {"t1": Grounded(text="The rent is 1,850.")}
    right, wrong = (answer_chain(f"In all {total} (3 × 1,850) [t1].", [], findings, []) for total in ("5,550", "5,551"))
    assert [(link.text, link.elsewhere, link.problem) for link in right][0] == (
        "5,550",
        "the calculation 3 × 1,850",
        "",
    )
    assert wrong[0].problem == "no finding has it"
    below = {"t1": Grounded(text="The deposit is 5,550.", checked=check("5,550 (3 × 1,850)", [SOURCE]))}
    assert answer_chain("It is 5,550.", [], below, [])[0].elsewhere == "the calculation 3 × 1,850"
    link = answer_chain("", [Citation(claim="5,550 (3 × 1,850)", subtask_ids=["t1"])], findings, [])[0]
    assert link.problem == ""
