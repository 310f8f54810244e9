"""The look-up of claims by itself: answers with a planted fault are seen, honest ones are left in peace."""

from collections import Counter
from typing import Any

import pytest

from temporal_supervisor.supervision.agent.empty_words import is_empty
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import check
from tests.faults.answers import PLANTS, Answer, honest, planted, recorded, sources_in

SEEN = 0.95  # of the planted faults
QUIET = 0.03  # of the honest answers may be flagged


def doubts(answer: Answer) -> list[str]:
    """Returns what of an answer nothing supports, with the reason if there is one."""
    return doubted(answer.text, answer.sources)


def doubted(text: str, sources: list[Source]) -> list[str]:
    """Returns what of a text none of the sources supports, with the reason if there is one."""
    return [f"{claim.text}: {claim.problem}" for claim in check(text, sources) if not claim.source]


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


def signs_of(text: str, scene: dict[str, Any]) -> set[str]:
    """Returns what a reader sees of an answer: that something is unsupported, or that there is none, which is a gap."""
    made = [claim.text for claim in claims(text)]
    signs = {"unsupported"} if doubted(text, sources_in(scene)) else set()
    return signs | ({"empty"} if is_empty(text, scene["goal"], made) else set())


WRONG = [(scene, text, sign) for scene in recorded() for text, sign in scene["wrong"].items()]
RIGHT = [(scene, text) for scene in recorded() for text in scene.get("right", [])]


@pytest.mark.parametrize(("scene", "text", "sign"), WRONG, ids=[text[:50] for _, text, _ in WRONG])
def test_what_a_real_model_said_wrongly_is_seen(scene: dict[str, Any], text: str, sign: str) -> None:
    assert sign in signs_of(text, scene)


@pytest.mark.parametrize(("scene", "text"), RIGHT, ids=[text[:50] for _, text in RIGHT])
def test_what_a_real_model_said_rightly_is_left_in_peace(scene: dict[str, Any], text: str) -> None:
    assert signs_of(text, scene) == set(), doubted(text, sources_in(scene))
