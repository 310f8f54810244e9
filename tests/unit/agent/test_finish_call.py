"""Calls of `finish`: what is slightly wrong in them is put right, and what says nothing is no conclusion."""

from typing import Any

import pytest

from supervision.agent.agent_tools import finish_tool, read_finish
from supervision.base.prompt_marks import FINISH_TOOL

DONE: dict[str, Any] = {"outcome": "done", "summary": "44 pears"}


def test_the_tool_asks_for_all_of_its_arguments_and_for_the_work_before_the_verdict() -> None:
    tool = finish_tool()
    assert tool["name"] == FINISH_TOOL
    assert tool["input_schema"]["required"] == ["finding", "limitations", "confidence", "outcome", "summary"]
    assert list(tool["input_schema"]["properties"]) == tool["input_schema"]["required"]


def test_a_whole_call_is_a_conclusion() -> None:
    call = {**DONE, "finding": " There are 44. ", "confidence": 0.9, "limitations": ["one tree", " ", "None."]}
    conclusion = read_finish(call)
    assert conclusion is not None
    assert (conclusion.text, conclusion.summary) == ("There are 44.", "44 pears")
    assert (conclusion.confidence, conclusion.limitations, conclusion.outcome) == (0.9, ["one tree"], "done")


def test_a_missing_part_is_taken_from_the_other() -> None:
    only_summary, only_finding = read_finish(DONE), read_finish({"outcome": "done", "summary": "", "finding": "44."})
    assert only_summary is not None
    assert only_finding is not None
    assert (only_summary.text, only_summary.summary) == ("44 pears", "44 pears")
    assert (only_finding.text, only_finding.summary) == ("44.", "44.")


@pytest.mark.parametrize(
    ("finding", "beside", "text"),
    [
        ("", "There are 44 pears.", "There are 44 pears."),
        (None, "There are 44 pears.\n\nConfidence: 0.9", "There are 44 pears."),
        ("", "Done.", "44 pears"),
        ("There are 44 pears on the tree.", "I hand it in now.", "There are 44 pears on the tree."),
        ("44 pears", "There are 44 pears.", "There are 44 pears."),
        ("45 plums", "There are 44 pears.", "There are 44 pears.\n\n45 plums"),
    ],
)
def test_a_text_beside_the_call_is_the_finding_where_it_says_more(finding: str | None, beside: str, text: str) -> None:
    conclusion = read_finish({**DONE, "finding": finding}, beside)
    assert conclusion is not None
    assert (conclusion.text, conclusion.summary) == (text, "44 pears")


@pytest.mark.parametrize(
    "arguments", [None, "done", [], {}, {**DONE, "summary": " "}, {**DONE, "outcome": "perhaps"}], ids=str
)
def test_what_says_nothing_is_no_conclusion(arguments: object) -> None:
    assert read_finish(arguments) is None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, None),
        (0, 0.0),
        (0.5, 0.5),
        (1, 1.0),
        (2, 0.02),
        (95, 0.95),
        (100, 1.0),
        (101, 1.0),
        (500, 1.0),
        (-1, 0.0),
    ],
)
def test_a_confidence_is_a_share_or_a_percentage(given: float | None, read: float | None) -> None:
    conclusion = read_finish({**DONE, "confidence": given})
    assert conclusion is not None
    assert conclusion.confidence == read


def test_arguments_that_are_null_count_as_left_out_and_one_limitation_as_a_list() -> None:
    conclusion = read_finish({**DONE, "finding": None, "limitations": "one tree"})
    assert conclusion is not None
    assert conclusion.limitations == ["one tree"]
