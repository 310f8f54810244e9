"""Outputs that were cut are read again by name and page, and nothing of them is lost."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.agent_tools import beginning, output_name, page, page_chars, read_call, read_output_tool
from supervision.base import limits


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


@pytest.mark.parametrize("output", ["3", "0-1", "../1-1", "t2", ""])
def test_another_name_has_no_place(output: str) -> None:
    assert read_call({"output": output}).place is None


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
