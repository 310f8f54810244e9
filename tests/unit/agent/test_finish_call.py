"""How a worker agent concludes, by a call or by closing lines, and how it reads outputs that were cut."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.agent_tools import (
    Conclusion,
    beginning,
    conclude,
    finish_tool,
    output_name,
    page,
    page_chars,
    read_call,
    read_finish,
    read_output_tool,
)
from supervision.base import limits
from supervision.base.prompt_marks import FINISH_TOOL
from tests.unit.shapes import any_text

DONE: dict[str, Any] = {"outcome": "done", "summary": "44 pears"}


def concluded(arguments: dict[str, Any], beside: str = "") -> Conclusion:
    conclusion = read_finish(arguments, beside)
    assert conclusion is not None
    return conclusion


def test_the_tool_asks_for_all_of_its_arguments_and_for_the_work_before_the_verdict() -> None:
    tool = finish_tool()
    assert tool["name"] == FINISH_TOOL
    assert tool["input_schema"]["required"] == ["finding", "limitations", "confidence", "outcome", "summary"]
    assert list(tool["input_schema"]["properties"]) == tool["input_schema"]["required"]


@pytest.mark.parametrize(
    ("finding", "beside", "text"),
    [
        (None, "There are 44 pears.\n\nConfidence: 0.9", "There are 44 pears."),
        ("44 pears", "There are 44 pears.", "There are 44 pears."),
        ("45 plums", "There are 44 pears.", "There are 44 pears.\n\n45 plums"),
    ],
)
def test_a_text_beside_the_call_is_the_finding_where_it_says_more(finding: str | None, beside: str, text: str) -> None:
    conclusion = concluded({**DONE, "finding": finding}, beside)
    assert (conclusion.text, conclusion.summary) == (text, "44 pears")


@pytest.mark.parametrize(
    "arguments", [None, "done", [], {}, {**DONE, "summary": " "}, {**DONE, "outcome": "perhaps"}], ids=str
)
def test_what_says_nothing_is_no_conclusion(arguments: object) -> None:
    assert read_finish(arguments) is None


@pytest.mark.parametrize(("given", "read"), [(None, None), (0.5, 0.5), (1, 1.0), (2, 0.02), (101, 1.0), (-1, 0.0)])
def test_a_confidence_is_a_share_or_a_percentage(given: float | None, read: float | None) -> None:
    conclusion = concluded({**DONE, "confidence": given})
    assert conclusion.confidence == read


plain = st.lists(any_text.filter(lambda t: "onfidence" not in t.lower() and "imitation" not in t.lower()), max_size=20)


@pytest.mark.parametrize(
    ("line", "confidence"),
    [("**Confidence:** 0.85", 0.85), ("- **Confidence**: .15", 0.15), ("> Confidence: 100 %.", 1.0)],
)
def test_a_line_that_states_the_confidence_is_split_off(line: str, confidence: float) -> None:
    read = conclude(f"Sales grew by 4 %.\n\n{line}\n")
    assert read.confidence == pytest.approx(confidence)
    assert read.text == "Sales grew by 4 %."


@pytest.mark.parametrize(
    "line",
    [
        "Confidence: high",
        "Confidence: 120%",
        "Confidence: 0.8 (two sources agree)",
        "| Confidence: 0.9 | 12 |",
        "Confidence: 0.8\nThe end.",
    ],
)
def test_a_line_that_says_more_or_does_not_close_stays_in_the_text(line: str) -> None:
    read = conclude(f"Sales grew.\n{line}")
    assert (read.text, read.confidence, read.limitations) == (f"Sales grew.\n{line}".strip(), None, [])


@pytest.mark.parametrize(
    ("line", "limitations"),
    [
        ("Limitations: none", []),
        (f"Limitations:{'x' * 300}", ["x" * 300]),
        ("**Limitations:** no data before 2020; one region", ["no data before 2020", "one region"]),
    ],
)
def test_limitations_are_split_off(line: str, limitations: list[str]) -> None:
    for closing in (f"Confidence: 0.5\r\n{line}", f"{line}\n\nConfidence: 0.5"):
        read = conclude(f"Sales grew.\n{closing}")
        assert (read.text, read.confidence, read.limitations) == ("Sales grew.", 0.5, limitations)


@given(plain)
def test_a_message_without_closing_lines_is_its_own_text(lines: list[str]) -> None:
    message = "\n".join(lines)
    read = conclude(message)
    assert (read.text, read.confidence, read.limitations) == (message.strip(), None, [])


@given(plain, st.integers(0, 100), st.lists(st.sampled_from(["no data", "one source", "old figures"]), max_size=3))
def test_closing_lines_come_off_any_text(lines: list[str], percent: int, limitations: list[str]) -> None:
    body = "\n".join(lines).strip()
    read = conclude(f"{body}\n\nConfidence: {percent}%\nLimitations: {'; '.join(limitations) or 'none'}")
    assert read.confidence == pytest.approx(percent / 100)
    assert read.limitations == limitations
    if body:
        assert read.text == body


@given(any_text | st.text("cConfidenceLimitations:=0.19%-* \n"))
def test_any_message_is_read_without_an_error_and_never_to_nothing(message: str) -> None:
    read = conclude(message)
    assert bool(read.text) == bool(message.strip())
    assert read.confidence is None or 0 <= read.confidence <= 1


@pytest.mark.parametrize(
    ("message", "outcome", "unclear"),
    [
        ("Sales grew.", "done", False),
        ("Sales grew.\n\nConfidence: 0.1", "done", False),
        ("I could not find this.", "partial", True),
        ("I could not find this.\n\nConfidence: 0.9", "done", False),
        ("I could not find this.\nOutcome: impossible", "impossible", False),
        ("Sales grew.\nOutcome: uncertain", "done", False),
    ],
)
def test_a_text_says_its_outcome_or_is_unclear_about_it(message: str, outcome: str, unclear: bool) -> None:
    read = conclude(message)
    assert (read.outcome, read.unclear) == (outcome, unclear)


@pytest.mark.parametrize(("closing", "outcome"), [("", "partial"), ("Confidence: 0.8", "done")])
def test_a_text_that_was_forced_is_partial_without_a_closing_line(closing: str, outcome: str) -> None:
    read = conclude(f"Sales grew.\n{closing}", forced=True)
    assert (read.outcome, bool(read.limitations)) == (outcome, outcome == "partial")


def pages(text: str, offset: int, most: int) -> str:
    """Reads an output to its end, as its pages say."""
    read = ""
    while True:
        shown = page(text, read_call({"output": "3-1", "offset": offset}), most)
        more = re.search(r"\n\[These are the characters \d+ to \d+ of \d+\. Continue with offset (\d+)\.\]$", shown)
        read += shown[: more.start()] if more else shown
        if more is None:
            return read
        offset = int(more[1])


@given(st.text(alphabet="ab\n数[", max_size=3000), st.integers(150, 900), st.integers(1, 700))
def test_beginning_and_pages_are_the_whole_output(text: str, limit: int, most: int) -> None:
    shown = beginning(text, "3-1", limit)
    assert len(shown) <= limit
    if len(text) <= limit:
        assert shown == text
        return
    cut = re.search(r'\n\[cut: (\d+) of \d+ characters are shown\. read_output with output "3-1" and offset \1 ', shown)
    assert cut is not None
    assert shown[: cut.start()] + pages(text, int(cut[1]), most) == text


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({}, "output is a name"),
        ({"output": 3.1}, "output is a name"),
        ({"output": "3-1", "offset": -1}, "offset a number"),
        (None, "output is a name"),
    ],
)
def test_wrong_arguments_are_answered_with_advice(arguments: object, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        read_call(arguments)


def test_an_offset_beyond_the_end_is_answered_with_the_length() -> None:
    with pytest.raises(ValueError, match="only 3 characters"):
        page("abc", read_call({"output": "1-1", "offset": 3}), 10)
    assert page("", read_call({"output": "1-1"}), 10) == ""


@pytest.mark.parametrize(("window", "most"), [(8_000, 4_000), (1_000_000, limits.TOOL_OUTPUT_CHARS - 150)])
def test_a_page_is_a_small_part_of_the_window(window: int, most: int) -> None:
    assert page_chars(window) == most


def test_an_output_is_named_by_its_reply_and_call() -> None:
    assert output_name(3, 1) == "3-1"
    assert read_call({"output": output_name(12, 7)}).place == (12, 7)


def test_the_tool_is_defined_with_all_of_its_arguments() -> None:
    assert read_output_tool()["input_schema"]["properties"].keys() == {"output", "offset"}


@pytest.mark.parametrize(("length", "whole"), [(500, True), (501, False)])
def test_a_beginning_of_exactly_the_limit_is_whole(length: int, whole: bool) -> None:
    shown = beginning("x" * length, "3-1", 500)
    assert (shown == "x" * length) == whole
    assert ("350 of 501" in shown) == (not whole)


@pytest.mark.parametrize(("length", "last"), [(15, True), (16, False)])
def test_a_page_to_the_end_is_the_last(length: int, last: bool) -> None:
    shown = page("x" * length, read_call({"output": "3-1", "offset": 5}), 10)
    assert (shown == "x" * 10) == last
    assert ("offset 15" in shown) == (not last)
