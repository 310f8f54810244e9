"""The look-up of claims by itself: wrong answers are seen, planted ones and those of a real model; no honest ones."""

from collections import Counter
from pathlib import Path

import pytest

from temporal_supervisor.supervision.results.confidence import DOUBTFUL, SURE
from tests.faults import calibration
from tests.faults.answers import PLANTS, Answer, honest, is_gap, planted, recorded, unsupported

SEEN = 0.95  # of the planted faults
QUIET = 0.03  # of the honest answers may be flagged
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def doubts(answer: Answer) -> list[str]:
    """Returns what of an answer nothing supports, with the reason if there is one."""
    return [f"{claim.text}: {claim.problem}" for claim in unsupported(answer)]


def test_honest_answers_are_left_in_peace() -> None:
    answers = honest()
    flagged = {answer.text: found for answer in answers if (found := doubts(answer))}
    assert len(answers) >= 100
    assert len(flagged) <= QUIET * len(answers), flagged


def test_planted_faults_are_seen() -> None:
    answers = planted()
    missed = [(answer.fault, answer.text) for answer in answers if not doubts(answer)]
    assert len(answers) >= 500
    assert len(missed) <= (1 - SEEN) * len(answers), missed


@pytest.mark.parametrize("fault", PLANTS)
def test_of_each_kind_of_fault_most_are_seen(fault: str) -> None:
    seen = Counter(bool(doubts(answer)) for answer in planted() if answer.fault == fault)
    assert seen.total() >= 20
    assert seen[True] >= 0.8 * seen.total(), seen


@pytest.mark.parametrize("answer", recorded(), ids=lambda answer: answer.text[:60])
def test_of_a_real_model_wrong_answers_are_seen_and_right_ones_are_not(answer: Answer) -> None:
    signs = {"unsupported": bool(doubts(answer)), "empty": is_gap(answer)}
    seen = [sign for sign, is_there in signs.items() if is_there]
    assert (answer.fault in seen) if answer.fault else seen == [], (seen, doubts(answer))


@pytest.mark.parametrize("answer", recorded(), ids=lambda answer: answer.text[:60])
def test_confidence_in_wrong_answers_of_a_real_model_is_low(answer: Answer) -> None:
    bound = calibration.bound_of(answer)
    assert bound < DOUBTFUL if answer.fault else bound >= SURE


def test_the_page_has_the_measured_confidence() -> None:
    assert "\n".join(calibration.table()) in PAGE.read_text(encoding="utf-8")
