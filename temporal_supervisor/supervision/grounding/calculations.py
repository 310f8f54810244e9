"""Calculations in a text, such as `EUR 5,550 (3 × 1,850)`.

A result holds if it is right, and computed from figures that hold.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, DecimalException
from itertools import islice, product
from typing import NamedTuple

from temporal_supervisor.supervision.grounding.units import speaks_of_shares
from temporal_supervisor.supervision.grounding.wording.directions import may_be_unsigned
from temporal_supervisor.supervision.grounding.written_figures import SMALL, Figure, whole_values

_CONSTANT_NUMBERS = (
    *range(SMALL),
    *(24, 30, 52, 60, 100, 360, 365, 366, 1000, 1024, 3600),
    *("4.33", "4.345", "4.35", "30.4", "30.42", "30.44", "30.4375", "365.25"),  # of a month or year
)
_CONSTANTS = frozenset(map(Decimal, _CONSTANT_NUMBERS))
_HUNDRED = Decimal(100)
_MOST_CHARS = 200  # of one calculation
_MOST_FIGURES = 12
_NEAR_CHARS = 80  # around a result, of words for a sign
_MOST_READINGS = 64  # of all its figures together: 1,234 may be 1.234
# The end of what is before a result: "3 × 4 = ", "3 × 4 = EUR "; not "= 12".
_EQUALS = re.compile(r"[=≈][^\d=≈\n]{0,12}$")
_MAY_CALCULATE = re.compile(r"[=≈(]")
_OTHERS_END = re.compile(r"[\n=≈]")
# In a bracket: "3 × 1,850", "3 × (1 + 2)".
_BRACKETED = rf"(?:[^()]|\([^()]{{0,{_MOST_CHARS}}}\)){{1,{_MOST_CHARS}}}"
# Behind a result, its calculation: " (3 × 1,850)", " EUR (3 × (1 + 2))".
_BRACKET = re.compile(rf"[^\d()\n]{{0,16}}\(({_BRACKETED})\)")
_SIGNS = str.maketrans("×·−–÷", "**--/")
# A multiplication: "3 x 4", "3x4"; not "max".
_TIMES = re.compile(r"(?<![^\W\d_])x(?![^\W\d_])")
# Words and signs for what is counted: "days", "EUR", "%"; not the names of figures, as "v0".
_WORDS = re.compile(r"(?<!\w)[^\W\d_]{1,12}(?!\w)|[$€£¥%\s]")
_IN_HUNDREDTHS = re.compile(r"100|%")  # "3 / 4 × 100", "3 % / 4"
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class _Calculation(NamedTuple):
    """A part of a text that may be the calculation of a result, with the figures in it."""

    text: str
    start: int
    operands: list[Figure]


def is_constant(value: Decimal) -> bool:
    """True for a factor that needs no source.

    Examples: a small count, the days of a year, a hundred.
    """
    return value in _CONSTANTS


def as_change(factor: Figure) -> Figure:
    """Returns the change in percent that a factor makes: 19 % for 1.19, 10 % for 0.9."""
    changes = [(each, abs(each.value - 1) * _HUNDRED) for each in factor.readings]
    readings = tuple(replace(each, value=change) for each, change in changes)
    return replace(factor, readings=readings, unit="in %")


def calculated(text: str, holds: Callable[[Figure], bool]) -> dict[str, str]:
    """Returns the figures of the calculations in a text that hold, each with its calculation.

    `holds` is True for a figure that may be calculated with; results of earlier calculations may
    be, as well.
    """
    found: dict[str, str] = {}
    if not _MAY_CALCULATE.search(text):
        return found
    read = whole_values(text)

    def is_known(figure: Figure) -> bool:
        if _is_constant(figure) or figure.text in found:
            return True
        return holds(figure) or holds(as_change(figure))

    for number, result in enumerate(read):
        for calculation in _calculations_of(text, read, number):
            operands = calculation.operands
            if all(map(_is_constant, operands)) or not _may_be_share(text, calculation, result):
                continue
            if not _gives_result(calculation, result) or not all(map(is_known, operands)):
                continue
            for figure in (result, *operands):
                found.setdefault(figure.text, calculation.text.strip())
            break
    return found


def _calculations_of(text: str, read: Sequence[Figure], number: int) -> Iterator[_Calculation]:
    """Yields the parts of a text that may be the calculation of one of its figures."""
    near = read[max(0, number - _MOST_FIGURES) : number + _MOST_FIGURES + 1]
    for begin, end in _places(text, read[number], near):
        operands = [figure for figure in near if begin <= figure.start < end]
        yield _Calculation(text[begin:end], begin, operands)


def _is_constant(figure: Figure) -> bool:
    return figure.unit is None and is_constant(figure.readings[0].value)


def _places(text: str, result: Figure, near: Sequence[Figure]) -> Iterator[tuple[int, int]]:
    """Yields the spans in which the calculation of a result may be.

    They lie before `=`, from each figure or bracket on, or in a bracket behind the result.
    """
    before = text[max(0, result.start - _MOST_CHARS) : result.start]
    equals = _EQUALS.search(before)
    if equals:
        end = result.start - len(before) + equals.start()
        first = end - len(_OTHERS_END.split(before[: equals.start()])[-1])
        begins = {figure.start for figure in near if figure.start >= first}
        begins |= {at for at in range(first, end) if text[at] == "("}
        for begin in sorted(begins):
            yield begin, end

    bracket = _BRACKET.match(text, result.end)
    if bracket:
        yield bracket.span(1)


def _may_be_share(text: str, calculation: _Calculation, result: Figure) -> bool:
    """True unless a sum or difference of figures that are no shares is given in percent."""
    if result.unit != "%" or any(operand.unit == "%" for operand in calculation.operands):
        return True
    if any(sign in calculation.text for sign in "/÷:"):
        return True
    return speaks_of_shares(f"{text[: result.start]} {text[result.end :]}")


def _gives_result(calculation: _Calculation, result: Figure) -> bool:
    """True if a calculation gives a result, as exactly as this is written."""
    for value in map(abs, _values_of(calculation)):
        if _is_given(value, result) and not _is_plain_ratio(calculation.text, value, result):
            return True
    return False


def _is_plain_ratio(calculation: str, value: Decimal, result: Figure) -> bool:
    """True if a ratio is given as a percentage without the factor of 100: 3 / 4 = 0.75 %."""
    if result.unit != "%" or "/" not in calculation or _IN_HUNDREDTHS.search(calculation):
        return False
    percentage = value * _HUNDRED
    return not any(abs(percentage - each.value) <= each.tolerance for each in result.readings)


def wrong_signs(text: str) -> Iterator[tuple[str, str]]:
    """Yields each result that has the other sign than its calculation, with the calculation.

    A text that has words for a fall writes no minus.
    """
    if not _MAY_CALCULATE.search(text):
        return
    read = whole_values(text)
    for number, result in enumerate(read):
        around = text[max(0, result.start - _NEAR_CHARS) : result.end + _NEAR_CHARS]
        for calculation in _calculations_of(text, read, number):
            signs = _signs_of(calculation, result)
            if not signs or result.is_negative in signs:
                continue
            if True in signs and may_be_unsigned(around):
                continue
            yield result.text, calculation.text.strip()
            break


def _signs_of(calculation: _Calculation, result: Figure) -> set[bool]:
    """Returns True for a way of reading a calculation in which it is the result below 0.

    It is False for one above 0; a way that gives another number has neither.
    """
    signs = set[bool]()
    for value in _values_of(calculation):
        sizes = (abs(value), abs(value) * result.scale)  # operands may be written without the scale
        if value and any(_is_given(size, result) for size in sizes):
            signs.add(value < 0)
    return signs


def _is_given(value: Decimal, result: Figure) -> bool:
    """True if a value is the result, as exactly as this is written."""
    forms = (value, value * _HUNDRED) if result.unit == "%" else (value,)
    for reading in result.readings:
        wanted = reading.value * result.scale
        width = reading.tolerance * result.scale
        if any(abs(form - wanted) <= width for form in forms):
            return True
    return False


def _values_of(calculation: _Calculation) -> Iterator[Decimal]:
    """Yields the value of a calculation for each way to read its figures; none if it has no value.

    It has none if it is not understood, or divides by 0.
    """
    operands = calculation.operands
    if not 2 <= len(operands) <= _MOST_FIGURES:
        return
    try:
        tree = ast.parse(_as_python(calculation), mode="eval").body
    except (SyntaxError, ValueError):
        return

    for meant in islice(product(*map(_meanings, operands)), _MOST_READINGS):
        named = {f"v{number}": value for number, value in enumerate(meant)}
        try:
            value = _value(tree, named)
        except (KeyError, DecimalException):
            return
        yield value


def _as_python(calculation: _Calculation) -> str:
    """Returns a calculation with names for its figures, without its words."""
    written = calculation.text
    for number, figure in reversed([*enumerate(calculation.operands)]):
        begin = figure.start - calculation.start
        end = figure.end - calculation.start
        written = f"{written[:begin]} v{number} {written[end:]}"
    return _WORDS.sub(" ", _TIMES.sub("*", written)).translate(_SIGNS).strip()


def _meanings(figure: Figure) -> Iterator[Decimal]:
    """Yields the numbers that a figure may be: a percentage may be a ratio, too."""
    for reading in figure.readings:
        yield reading.value * figure.scale
        if figure.unit == "%":
            yield reading.value / _HUNDRED


def _value(node: ast.expr, named: Mapping[str, Decimal]) -> Decimal:
    """Returns the value of a tree of operations. Raises KeyError for others, DecimalException."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, named), _value(node.right, named))
    name = node.id if isinstance(node, ast.Name) else ""
    return named[name]
