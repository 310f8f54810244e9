"""The look-up of claims by itself: answers with a planted fault are seen, honest ones are left in peace."""

from collections import Counter

import pytest

from temporal_supervisor.supervision.grounding.support import check
from tests.faults.answers import PLANTS, Answer, honest, planted

SEEN = 0.95  # of the planted faults
QUIET = 0.03  # of the honest answers may be flagged


def doubts(answer: Answer) -> list[str]:
    """Returns what of an answer nothing supports, with the reason if there is one."""
    return [f"{claim.text}: {claim.problem}" for claim in check(answer.text, answer.sources) if not claim.source]


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
