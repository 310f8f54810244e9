"""Which questions a query or a search can answer whole."""

import pytest

from temporal_supervisor.supervision.planning.question_reach import reach_of

_TABLES = """\
- table branches (Branch: Harbour, Old Town; Opened: 1931 to 2016; "Visitors 2025": 19020 to 66781; rows: 4)
- table loans_2025 (Title: Copper Sun; Author: Ida Holm; Days: 3 to 40; Late: no, yes; Returned: no, yes; rows: 240)
"""
_NOTES = "- document [notes.md] Notes of the head librarian\n"


@pytest.mark.parametrize(
    ("goal", "reach"),
    [
        ("How many loans were late?", "tables"),
        ("How many visitors did Old Town have in 2025?", "tables"),
        ("How many loans were returned?", "tables"),
        ("Wie viele Visitors hatte Old Town?", "tables"),
        # One word may be there by chance.
        ("For how many days may a book be kept?", "perhaps tables"),
        # No word of a table.
        ("How many employees are there?", "elsewhere"),
        ("Who waters the plants?", "elsewhere"),
        # A word of a document beside one of a table.
        ("Which branch does the head librarian like most?", "elsewhere"),
        # A reason.
        ("Why was the branch Old Town closed?", "documents"),
        ("Warum wurde Old Town geschlossen?", "documents"),
        # Figures and their reasons.
        ("How many visitors did Old Town have, and why did they stay away?", "tables and documents"),
        ("How did the visitors of Old Town change, and what explains it?", "tables and documents"),
        ("Which branch opened first, and why?", "tables and documents"),
        # Two questions: one query may have both answers, if all their words are those of tables.
        ("Which branch opened first? Which author is late most?", "tables"),
        ("How many loans were there, and what does the librarian note of them?", "tables and documents"),
        ("How many loans were there, and who paid for them?", "tables"),
        ("Which loans were there, and who paid for them?", "elsewhere"),
        # A task.
        ("Write a report on the visitors of each branch.", "elsewhere"),
    ],
)
def test_a_question_about_what_tables_have_is_answered_by_a_query(goal: str, reach: str) -> None:
    assert reach_of(goal, _TABLES + _NOTES) == reach


@pytest.mark.parametrize("goal", ["How many employees are there?", "Why was the branch Old Town closed?"])
def test_without_documents_the_model_plans_what_no_query_answers(goal: str) -> None:
    assert reach_of(goal, _TABLES) == "elsewhere"


def test_all_questions_about_the_only_table_are_answered_by_it() -> None:
    only = _TABLES.splitlines()[0]
    assert reach_of("Why was it closed?", only) == "tables"
    assert reach_of("Why was it closed?", _NOTES) == "elsewhere"
