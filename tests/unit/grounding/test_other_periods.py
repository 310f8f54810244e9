"""Doubts about the months that a query reads: those of another half, quarter or month raise one."""

import json

import pytest

from temporal_supervisor.supervision.grounding.doubts.query_doubts import query_doubts
from temporal_supervisor.supervision.grounding.sources import Source


def doubts(question: str, *conditions: str) -> list[str]:
    """Returns the doubts about a query for each of some conditions; each found one row."""
    sources = [Source(question)]
    for condition in conditions:
        sql = f"SELECT sum(price) AS revenue FROM orders WHERE {condition}"
        output = "| revenue |\n|---|\n| 24591.6 |\n1 row"
        sources.append(Source(output, arguments=json.dumps({"sql": sql}), name="query_data"))
    return query_doubts(question, sources)


@pytest.mark.parametrize(
    ("period", "low", "high"),
    [
        ("the second half of 2025", "2025-07-01", "2025-12-31"),
        ("the first half of the year 2025", "2025-01-01", "2025-06-30"),
        ("H2 2025", "2025-07-01", "2026-01-01"),
        ("the 2. Halbjahr 2025", "2025-06-30", "2025-12-31 23:59:59"),
        ("the third quarter of 2025", "2025-07", "2025-09"),
        ("Q1 2025", "2024-12-31", "2025-04-01"),
        ("March 2024", "2024-03-01", "2024-03-31"),
        ("February 2024", "2024-02-01", "2024-03-01"),
    ],
)
def test_the_months_of_the_question_raise_no_doubt(period: str, low: str, high: str) -> None:
    assert not doubts(f"What was the revenue in {period}?", f"day BETWEEN '{low}' AND '{high}'")


@pytest.mark.parametrize(
    ("period", "low", "high", "sign"),
    [
        ("the second half of 2025", "2025-06-01", "2025-12-31", "the second half of 2025 is July to December"),
        ("the second half of 2025", "2025-07-01", "2025-11-30", "reads 2025-07-01 to 2025-11-30"),
        ("the second half of 2025", "2024-07-01", "2024-12-31", "reads 2024-07-01"),
        ("H1 2025", "2025-01-01", "2025-07-31", "H1 of 2025 is January to June"),
        ("the fourth quarter of 2025", "2025-09-01", "2025-12-31", "is October to December"),
        ("dem 3. Quartal 2025", "2025-08-01", "2025-09-30", "is July to September"),
        ("March 2024", "2024-03-01", "2024-05-01", "March 2024 is March"),
    ],
)
def test_other_months_are_doubted(period: str, low: str, high: str, sign: str) -> None:
    found = doubts(f"What was the revenue in {period}?", f"day >= '{low}' AND day <= '{high}'")

    assert any(sign in doubt for doubt in found)


@pytest.mark.parametrize(
    ("condition", "is_doubted"),
    [
        ("year = 2025 AND month(day) BETWEEN 7 AND 12", False),
        ("year = 2025 AND extract(month FROM day) IN (7, 8, 9, 10, 11, 12)", False),
        ("year = 2025 AND month(day) BETWEEN 6 AND 12", True),
        ("year = 2025 AND extract(month FROM day) IN (7, 8, 9)", True),
    ],
)
def test_a_list_of_months_is_compared(condition: str, is_doubted: bool) -> None:
    found = doubts("What was the revenue in the second half of 2025?", condition)

    assert any("reads months" in doubt for doubt in found) is is_doubted


def test_a_query_that_was_corrected_is_the_one_that_counts() -> None:
    question = "What was the revenue in the second half of 2025?"
    wrong = "day BETWEEN '2025-06-01' AND '2025-12-31'"

    assert not doubts(question, wrong, "day BETWEEN '2025-07-01' AND '2025-12-31'")


@pytest.mark.parametrize(
    "question",
    [
        "How many goals were scored in the second half of the match of 2025?",
        "How did revenue change from the first to the second half of 2025?",
        "What was the revenue in the second half of 2025 and of 2024?",
        "What was the revenue since March 2025?",
        "What was the revenue on March 3, 2025?",
        "What was the revenue in 2025?",
    ],
)
def test_other_questions_name_no_such_period(question: str) -> None:
    assert not doubts(question, "day BETWEEN '2025-05-01' AND '2025-11-30'")
