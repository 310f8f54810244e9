"""Comparison of the numbers and words of two answers."""

import re
import unicodedata
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple

from temporal_supervisor.supervision.scores.question_sets import Scale, Truth, is_number

if TYPE_CHECKING:
    from temporal_supervisor.supervision.grounding.written_figures import Figure

FACTORS: dict[Scale, float] = {
    "": 1.0,
    "percent": 0.01,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
}
_EXACT = 1e-9  # relative: what floats lose
_ROUNDED_DIGITS = 3  # with fewer, many numbers would agree with the true one
_LENIENT = 0.005  # relative, of a number anywhere in a text
_ARTICLES = frozenset({"a", "an", "the"})
_SIGNS = re.compile(r"[-+−–$€£\s]*")  # what may stand before a number that is a whole answer
_NO_WORD = re.compile(r"[\W_]+")


class GivenNumber(NamedTuple):
    """A number in an answer: its value, and the decimals with which it is written."""

    value: float
    decimals: int
    digits: int
    scale: Scale = ""


def figure_of(given: object, scale: object = "") -> GivenNumber | None:
    """Returns the number that was given; None for anything but exactly one number."""
    known = next((name for name in FACTORS if name == scale), None)
    if known is None:
        return None
    if is_number(given):
        return _written(repr(given), known)
    if not isinstance(given, str):
        return None
    return _only_number(given.strip(), known)


def _only_number(text: str, scale: Scale) -> GivenNumber | None:
    """Returns the number of which a text consists, with the scale that it names, if any."""
    found = _whole_values(text)
    if len(found) != 1 or found[0].end != len(text) or found[0].unit not in (None, "%", *_MONEY):
        return None
    figure = found[0]
    if not _SIGNS.fullmatch(text[: figure.start]):
        return None
    sign = "-" if figure.is_negative else ""
    own = _own_scale(figure)
    return _written(f"{sign}{figure.readings[0].value:f}", scale if own == "" else own)


_MONEY = ("USD", "EUR", "GBP")


def _whole_values(text: str) -> "list[Figure]":
    # Loaded where answers are judged: all commands import this module.
    from temporal_supervisor.supervision.grounding.written_figures import whole_values

    return whole_values(text)


def _own_scale(figure: "Figure") -> Scale:
    """Returns the scale that follows a number, such as `million`; empty without one."""
    if figure.unit == "%":
        return "percent"
    factor = float(figure.scale)
    return next((name for name, known in FACTORS.items() if known == factor), "")


def _written(text: str, scale: Scale) -> GivenNumber | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    exponent = number.normalize().as_tuple().exponent
    decimals = max(0, -exponent) if isinstance(exponent, int) else 0
    return GivenNumber(float(number), decimals, len(number.normalize().as_tuple().digits), scale)


def agrees(given: GivenNumber, truth: Truth, value: float) -> bool:
    """True if a number equals the true `value` in sign, scale and digits.

    Without a scale, the true number may equal the number as it is written, or in the scale that
    follows it.
    """
    if truth.scale is None:
        written = given._replace(scale="")
        return any(_is_same_value(each, truth, value, "") for each in (written, given))
    return _is_same_value(given, truth, value, truth.scale)


def _is_same_value(given: GivenNumber, truth: Truth, value: float, scale: Scale) -> bool:
    ratio = FACTORS[given.scale] / FACTORS[scale]
    distance = abs(given.value * ratio - value)
    if truth.tolerance is not None:
        return distance <= truth.tolerance + _EXACT * abs(value)
    known = _written(repr(value), "")
    decimals = known.decimals if known else 0
    if truth.decimals is not None:
        decimals = truth.decimals
    if truth.decimals is not None or decimals:
        if distance <= _half_of_last(decimals):
            return True
    elif distance <= _EXACT * max(1.0, abs(value)):
        return True
    # A number that was rounded further, as a person does, agrees where enough of it is left.
    is_rounded = truth.decimals is None and given.decimals >= 1 and given.digits >= _ROUNDED_DIGITS
    return is_rounded and abs(given.value - value / ratio) <= _half_of_last(given.decimals)


def _half_of_last(decimals: int) -> float:
    """Returns half a unit of the last decimal, with a margin for rounding of floats."""
    return 0.5 * 10.0**-decimals * (1 + 1e-6)


def numbers_in(text: str) -> list[float]:
    """Returns every number in a text; after a minus or a bracket with both signs."""
    found: list[float] = []
    for figure in _whole_values(text):
        is_signed = figure.is_negative or text[: figure.start].endswith("(")
        value = float(figure.readings[0].value)
        found += [value, -value] if is_signed else [value]
    return found


def is_near(one: float, other: float) -> bool:
    """True if two numbers differ by at most half a percent."""
    return abs(one - other) <= max(_LENIENT * abs(other), _EXACT)


def plain(value: object) -> str:
    """Returns a value in comparable form: without case, punctuation and articles.

    Numbers become their value.
    """
    number = None if isinstance(value, bool) else figure_of(value)
    if number is not None:
        return f"{number.value * FACTORS[number.scale]:.12g}"
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    words = _NO_WORD.sub(" ", text).split()
    return " ".join(word for word in words if word not in _ARTICLES) or " ".join(words)


def has_words(text: str, value: object) -> bool:
    """True if a text contains the words of a value in a row."""
    words = plain_words(str(value))
    return bool(words) and f" {words} " in f" {plain_words(text)} "


def plain_words(text: str) -> str:
    """Returns the comparable words of a text, with numbers as they are written."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(word for word in _NO_WORD.sub(" ", folded).split() if word not in _ARTICLES)
