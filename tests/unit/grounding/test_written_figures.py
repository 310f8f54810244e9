"""How figures are read: what the digits may mean, how exactly they are given, and which of them are names."""

import importlib.util
import re
from decimal import Decimal

import pytest

from temporal_supervisor.supervision.grounding.units import scale_of
from temporal_supervisor.supervision.grounding.written_figures import Figure, figures, values


def only(text: str) -> Figure:
    """Returns the one figure of a text."""
    (figure,) = figures(text)
    return figure


def readings(text: str) -> list[tuple[Decimal, Decimal]]:
    """Returns the values of the one figure of a text, each with its tolerance."""
    return [(reading.value, reading.tolerance) for reading in only(text).readings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234 t", [("1234", "0.5"), ("1.234", "0.0005")]),
        ("100,234 kg", [("100234", "0.5"), ("100.234", "0.0005")]),
        ("1234,567 t", [("1234.567", "0.0005")]),
        ("12,34 t", [("12.34", "0.005")]),
        ("0,123 kg", [("0.123", "0.0005")]),
        ("1.234,5 kg", [("1234.5", "0.05")]),
        ("1,234,567 kg", [("1234567", "0.5")]),
        ("1200 people", [("1200", "0.5")]),
        ("12500 people", [("12500", "50")]),
        ("12.5 kg", [("12.5", "0.05")]),
        ("about 12.5 kg", [("12.5", "0.1")]),
        ("about 1200 people", [("1200", "50")]),
        ("more than 1200 people", [("1200", "100")]),
        ("rund 30 Leute", [("30", "5")]),
        ("knapp 30 Leute", [("30", "10")]),
        ("000 kg", [("0", "0.5")]),
        ("about 0 kg", [("0", "1")]),
        ("2e3 kg", [("2000", "500")]),
        ("2 x 10^3 kg", [("2000", "500")]),
        ("2.5e-3 kg", [("0.0025", "0.00005")]),
        ("2 x 10⁻³ kg", [("0.002", "0.0005")]),
    ],
)
def test_the_readings_of_a_figure_with_their_tolerance(text: str, expected: list[tuple[str, str]]) -> None:
    assert readings(text) == [(Decimal(value), Decimal(tolerance)) for value, tolerance in expected]


@pytest.mark.parametrize(
    ("written", "power"), [("2e98", 98), ("2e99", 99), ("2e100", 99), ("2e-99", -99), ("2e-100", -99)]
)
def test_powers_are_bounded(written: str, power: int) -> None:
    assert readings(f"{written} kg")[0][0] == 2 * Decimal(10) ** power


@pytest.mark.parametrize(
    ("text", "written", "unit", "scale"),
    [
        ("$ 50", "$ 50", "USD", 1),
        ("cost €50 million", "€50 million", "EUR", 10**6),
        ("see page 50 kg", "50 kg", "kg", 1),
        ("ISO 9001 kg", "9001 kg", "kg", 1),
        ("ISO 9 million", "9 million", None, 10**6),
        ("-50", "50", None, 1),
        ("50x", "50", None, 1),
        ("pound 50", "50", None, 1),
        ("international dollars 50", "international dollars 50", "USD", 1),
    ],
)
def test_a_figure_has_its_unit_and_scale(text: str, written: str, unit: str | None, scale: int) -> None:
    figure = only(text)
    assert (figure.text, figure.unit, figure.scale) == (written, unit, Decimal(scale))


@pytest.mark.parametrize(
    "text",
    [
        "table 50",
        "ISO 9001",
        "50th",
        "a-50",
        "a.50",
        "appendix 50",
        "Appendices: chapters 50",
        "ANIMAL 90",
        "fig. 14.2",
        "§ 1004",
        "pages 1200-1300",
    ],
)
def test_digits_of_names_and_references_are_no_figures(text: str) -> None:
    assert list(figures(text)) == []


@pytest.mark.parametrize(
    "text", ["top 14.5", "rows 10,233", "rows 10233", "section 10,233", "pages 12-14.5", "figures 14.5"]
)
def test_a_label_is_a_small_whole_number(text: str) -> None:
    assert only(text).digits == text.split(" ")[1].rpartition("-")[2]


def test_words_far_before_a_figure_say_nothing_of_it() -> None:
    assert readings("about the two of them all: 12500")[0][1] == 50
    assert readings("more than 12500")[0][1] == readings("nearly 12500")[0][1] == 100


def test_a_figure_may_have_the_scale_of_the_next_one() -> None:
    texts = (
        "12.5 to 14.5 million",
        "12.5 to 14.5",
        "12.5 kg to 14.5 million",
        "12.5 to ",
        "12.5 auf 14.5 %",
        "2016 to 14.5 %",
    )
    read = [next(iter(figures(text))).others for text in texts]
    assert [[(each.scale, each.unit) for each in others] for others in read] == [
        [(Decimal(10**6), None)], [], [], [], [(Decimal(1), "%")], [],
    ]  # fmt: skip


def test_everything_in_a_source_may_be_a_value() -> None:
    read = list(values("1,2,3 100,200,300 7 0.5"))
    assert [figure.text for figure in read] == ["1,2", "7", "0.5", "1", "2", "3", "100", "200", "300"]
    assert read[4].readings[0].tolerance == 0
    assert read[4].scale == 1


@pytest.mark.parametrize(
    ("word", "scale"), [("k", 1000), ("M", 10**6), ("x", 1), ("", 1), ("word", 1), (" mio. ", 10**6)]
)
def test_a_word_that_is_no_scale_multiplies_by_one(word: str, scale: int) -> None:
    assert scale_of(word) == scale


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [("in 2010", "0.5"), ("2010 kg", "5"), ("2010 million", "5"), ("about 2010", "5"), ("2010e0 of them", "5")],
)
def test_what_is_written_like_a_year_is_exact(text: str, tolerance: str) -> None:
    assert readings(text) == [(Decimal(2010), Decimal(tolerance))]


def test_of_commas_and_points_the_last_one_is_the_decimal_separator() -> None:
    assert readings("1.234.567,8 kg") == [(Decimal("1234567.8"), Decimal("0.05"))]


def test_the_words_for_units_are_compiled_when_a_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(re, "compile", lambda pattern, flags=0: compiled.append(pattern))
    spec = importlib.util.find_spec(scale_of.__module__)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert len(compiled) <= 5, "each command imports them"
