"""Parts of a question that its answer leaves out; an answer to all of them is left in peace."""

import pytest

from temporal_supervisor.supervision.grounding.parts_left_out import parts_left_out

SOUTH = "What was the revenue in the South in the second half of 2025, and which carrier took over there?"


@pytest.mark.parametrize(
    ("question", "answer", "part"),
    [
        (
            SOUTH,
            "The total revenue in the South for the second half of 2025 was 24,591.60 EUR. [t1]",
            "which carrier took over there",
        ),
        ("Which mechanic worked the most hours, and how many?", "It was Ayla.", "how many"),
        (
            "Which mechanic worked the most hours, and how many?",
            "The most hours worked were 119.7.",
            "Which mechanic worked the most hours",
        ),
        (
            "Which order was the most expensive? How much did it cost?",
            "The most expensive order was R0083.",
            "How much did it cost",
        ),
        (
            "Which repair order was the most expensive?",
            "The most expensive repair order was [t1].",
            "Which repair order was the most expensive",
        ),
        ("How many orders were returned?", "That many orders were returned. [t1]", "How many orders were returned"),
        (
            "Wie hoch war der Umsatz? Wer liefert seit Juli in den Süden?",
            "Der Umsatz war 20.516,90 EUR.",
            "Wer liefert seit Juli in den Süden",
        ),
        (
            "Welcher Monat war der beste, und wie viele Aufträge gab es?",
            "Der beste Monat war März.",
            "wie viele Aufträge gab es",
        ),
    ],
)
def test_a_part_without_an_answer_is_named(question: str, answer: str, part: str) -> None:
    assert parts_left_out(question, answer) == [f"the answer has nothing for: {part}"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (SOUTH, "Revenue in the South was 20,516.90 EUR; Alpen-Logistik took over."),
        (SOUTH, "The revenue in the South was 20,516.90 EUR. The carrier is not in the data."),
        ("Which mechanic worked the most hours, and how many?", "Ayla, 119.7."),
        ("Which mechanic had the most repairs, and how many?", "Ayla had twelve."),
        ("Which sold more, North or South, and how many?", "North sold 12."),
        ("Who is the wife of Kim Jong-chul?", "Kim Jong-suk"),
        ("Which region was it?", "It wasn't in any region."),
        ("How many were lost?", "None."),
        ("Which year had the most wins?", "1998"),
        ("In which year did she win, and how many times?", "In 1998, 3 times."),
        ("Which route has the highest number?", "Route 12"),
        ("Name the ships and which flag they have.", "Aurora."),
        ("What was the revenue?", "20"),
        (SOUTH, ""),
    ],
)
def test_an_answer_to_all_parts_is_left_in_peace(question: str, answer: str) -> None:
    assert parts_left_out(question, answer) == []
