"""How the answers of a real model are judged."""

from typing import Any

import pytest

from tests.real.questions import QUESTIONS, judged

BY_NAME = {question.name: question for question in QUESTIONS}
RESULT: dict[str, Any] = {
    "status": "completed", "confidence": None, "gaps": [], "unsupported": [], "contradictions": [], "subtasks": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "answer", "right"),
    [
        ("d1", "It was 23.599 years.", True),
        ("d1", "It was 23.6 years in 1992", True),
        ("d1", "It was 24 years.", False),
        ("d1", "In 1992 it was 19 years.", False),
        ("d2", "It fell from 63.622 in 1987 to 46.634 in 2002.", True),
        ("d2", "It was 63.622 in 1987, 46.634 in 2002", True),
        ("d5", "There were 5,580 thousand.", True),
        ("s1", "It was 20,516.90 EUR.", True),
        ("s1", "[134] million", False),
        ("s3", "Alpen-Logistik, from 22 September 2025", True),
        ("d7", "The United States, 81.1 years", False),
        ("d8", "I do not have the necessary information.", True),
        ("d8", "It was 2.1 %.", False),
    ],
)
def test_an_answer_is_right_if_it_says_what_is_true(name: str, answer: str, right: bool) -> None:
    assert BY_NAME[name].is_met_by(answer) == right


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "wrong"),
        ({"status": "partial"}, "wrong, marked"),
        ({"unsupported": [{"text": "19", "where": "answer"}]}, "wrong, marked"),
        ({"confidence": 0.4}, "wrong, marked"),
        ({"confidence": 0.6}, "wrong"),
        ({"answer": "23.599 years"}, "right"),
        ({"answer": "23.599 years", "confidence": 0.3}, "right, marked"),
    ],
)
def test_a_wrong_answer_is_marked_where_a_reader_sees_it(changes: dict[str, Any], verdict: str) -> None:
    assert judged(BY_NAME["d1"], {**RESULT, "answer": "19 years", **changes}) == verdict
    assert judged(BY_NAME["d1"], None) == "no answer"
