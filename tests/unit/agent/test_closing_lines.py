"""A finding's closing lines are read, and nothing else of it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.closing_lines import conclude
from tests.unit.shapes import any_text

plain = st.lists(any_text.filter(lambda t: "onfidence" not in t.lower() and "imitation" not in t.lower()), max_size=20)


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("Confidence: 0.8", 0.8),
        ("confidence = 1", 1.0),
        ("**Confidence:** 0.85", 0.85),
        ("- **Confidence**: .15", 0.15),
        ("Confidence: 15%", 0.15),
        ("Confidence: 1 %", 0.01),
        ("> Confidence: 100%.", 1.0),
        ("Confidence: 0.9/1", 0.9),
        ("_Confidence: 0.7 out of 1.0_", 0.7),
        ("Confidence: 0", 0.0),
    ],
)
def test_a_line_that_states_the_confidence_is_split_off(line: str, confidence: float) -> None:
    read = conclude(f"Sales grew by 4 %.\n\n{line}\n")
    assert read.confidence == pytest.approx(confidence)
    assert read.text == "Sales grew by 4 %."


@pytest.mark.parametrize("line", ["Confidence: 0.8 (two sources agree)", "Confidence: 0.8, as both sources agree"])
def test_a_remark_on_the_confidence_is_kept(line: str) -> None:
    read = conclude(f"Sales grew.\n{line}")
    assert (read.text, read.confidence) == (f"Sales grew.\n{line}", 0.8)


@pytest.mark.parametrize(
    "line",
    [
        "Confidence: high",
        "Confidence: 8/10",
        "Confidence: 0,8",
        "Confidence: -0.5",
        "Confidence: 1.5 million",
        "Confidence: 120%",
        "Confidence: 0.6-0.8",
        "Confidence: 95% interval from 3 to 7",
        '  "confidence": 0.9,',
        "| Confidence: 0.9 | 12 |",
    ],
)
def test_what_is_no_confidence_stays_in_the_text(line: str) -> None:
    read = conclude(f"Sales grew.\n{line}\nThe end.")
    assert (read.text, read.confidence) == (f"Sales grew.\n{line}\nThe end.", None)


@pytest.mark.parametrize(
    ("lines", "limitations"),
    [
        ("Limitations: none", []),
        ("Limitation: N/A", []),
        (
            "**Limitations:** no data before 2020; one region is missing",
            ["no data before 2020", "one region is missing"],
        ),
        (
            "Limitations:\n\n- no data before 2020\n* one region is missing",
            ["no data before 2020", "one region is missing"],
        ),
        ("Limitations:\r\n1. no data\r\n2) no time\r\n", ["no data", "no time"]),
    ],
)
def test_limitations_are_split_off(lines: str, limitations: list[str]) -> None:
    read = conclude(f"Sales grew.\nConfidence: 0.5\n{lines}")
    assert (read.text, read.confidence, read.limitations) == ("Sales grew.", 0.5, limitations)


def test_a_limitation_too_long_for_a_line_stays_in_the_text_too() -> None:
    long = "no data " * 60
    for lines in (f"Limitations: {long}", f"Limitations:\n- {long}"):
        read = conclude(f"Sales grew.\n{lines}")
        assert read.limitations == [long.strip()]
        assert long.strip() in read.text


def test_a_heading_that_no_list_follows_stays_where_it_is() -> None:
    message = "Sales grew.\nLimitations:\nThe data ends in 2024."
    assert conclude(message).text == message


def test_a_message_of_closing_lines_only_is_its_own_text() -> None:
    read = conclude("Confidence: 0.1\nLimitations: nothing was found")
    assert read.text == "Confidence: 0.1\nLimitations: nothing was found"
    assert (read.confidence, read.limitations) == (0.1, ["nothing was found"])


def test_only_the_end_of_a_message_is_read() -> None:
    message = "Confidence: 0.2\n" + "a line\n" * 12 + "Confidence: 0.7"
    read = conclude(message)
    assert read.confidence == 0.7
    assert read.text.startswith("Confidence: 0.2\n")


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


def test_a_limitation_is_a_sentence_up_to_its_size_and_a_paragraph_stays_in_the_text() -> None:
    longest = " " + "x" * 299
    assert conclude(f"44\nLimitations:{longest}").text == "44"
    assert "xxx" in conclude(f"44\nLimitations:{longest}y").text


def test_one_long_item_keeps_the_whole_list_in_the_text() -> None:
    conclusion = conclude(f"44\nLimitations:\n- short\n- {'x' * 400}")
    assert "short" in conclusion.text
    assert len(conclusion.limitations) == 2


def test_a_list_of_limitations_ends_where_its_last_item_does() -> None:
    read = conclude("Sales grew.\nLimitations:\n- one year only\n- no prices\nAll in euros.\nBefore tax.")
    assert read.limitations == ["one year only", "no prices"]
    assert read.text == "Sales grew.\nAll in euros.\nBefore tax."
