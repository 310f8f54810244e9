"""A finding's closing lines are read, and nothing else of it is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervision.agent.agent_tools import conclude
from tests.unit.shapes import any_text

plain = st.lists(any_text.filter(lambda t: "onfidence" not in t.lower() and "imitation" not in t.lower()), max_size=20)


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ("Confidence: 0.8", 0.8),
        ("confidence: 1", 1.0),
        ("**Confidence:** 0.85", 0.85),
        ("- **Confidence**: .15", 0.15),
        ("Confidence: 15%", 0.15),
        ("> Confidence: 100 %.", 1.0),
        ("Confidence: 0", 0.0),
    ],
)
def test_a_line_that_states_the_confidence_is_split_off(line: str, confidence: float) -> None:
    read = conclude(f"Sales grew by 4 %.\n\n{line}\n")
    assert read.confidence == pytest.approx(confidence)
    assert read.text == "Sales grew by 4 %."


@pytest.mark.parametrize(
    "line",
    [
        "Confidence: high",
        "Confidence: 8/10",
        "Confidence: 0,8",
        "Confidence: -0.5",
        "Confidence: 120%",
        "Confidence: 95% interval from 3 to 7",
        "Confidence: 0.8 (two sources agree)",
        '  "confidence": 0.9,',
        "| Confidence: 0.9 | 12 |",
        f"Limitations:{'x' * 301}",
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
        ("Limitation: N/A", []),
        ("Limitations:", []),
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
        ("No source names sales.\n\nConfidence: 0.09", "partial", True),
        ("I could not find this.", "partial", True),
        ("Ich konnte nichts finden: es ist nicht möglich.", "partial", True),
        ("我无法完成。", "partial", True),
        ("I could not find this.\n\nConfidence: 0.9", "done", False),
        (f"Sales grew. {'They grew more. ' * 20} It cannot be said why.", "done", False),
        ("I could not find this.\nOutcome: impossible", "impossible", False),
        ("Sales grew.\n**Outcome:** Partial.", "partial", False),
        ("Sales grew.\nOutcome: uncertain", "done", False),
    ],
)
def test_a_text_says_its_outcome_or_is_unclear_about_it(message: str, outcome: str, unclear: bool) -> None:
    read = conclude(message)
    assert (read.outcome, read.unclear) == (outcome, unclear)


@pytest.mark.parametrize(
    ("closing", "outcome"),
    [("", "partial"), ("Confidence: 0.8", "done"), ("Limitations: none", "done"), ("Outcome: done", "done")],
)
def test_a_text_that_was_forced_is_partial_without_a_closing_line(closing: str, outcome: str) -> None:
    read = conclude(f"Sales grew.\n{closing}", forced=True)
    assert (read.outcome, bool(read.limitations)) == (outcome, outcome == "partial")
