"""Calculations in a text, as `EUR 5,550 (3 × 1,850)`: a result holds if it is right and made of figures that hold."""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, DecimalException
from itertools import islice, product

from temporal_supervisor.supervision.grounding.units import speaks_of_shares
from temporal_supervisor.supervision.grounding.wording.directions import may_be_unsigned
from temporal_supervisor.supervision.grounding.written_figures import SMALL, Figure, whole_values

_CONSTANTS = {Decimal(n) for n in (*range(SMALL), 24, 30, 52, 60, 100, 360, 365, 366, 1000, 3600, 1024)}
_CONSTANTS |= {Decimal(n) for n in ("4.33", "4.345", "4.35", "30.4", "30.42", "30.44", "30.4375", "365.25")}  # a month
_HUNDRED = Decimal(100)
_MOST_CHARS = 200  # of one calculation
_MOST_FIGURES = 12
_NEAR_CHARS = 80  # of words that say a sign, around a result
_MOST_READINGS = 64  # of all its figures together: 1,234 may be 1.234
# The end of what is before a result: "3 × 4 = ", "3 × 4 = EUR "; not "= 12".
_EQUALS = re.compile(r"[=≈][^\d=≈\n]{0,12}$")
_MAY_CALCULATE = re.compile(r"[=≈(]")
_OTHERS_END = re.compile(r"[\n=≈]")
# Behind a result, its calculation: " (3 × 1,850)", " EUR (3 × (1 + 2))".
_BRACKET = re.compile(rf"[^\d()\n]{{0,16}}\(((?:[^()]|\([^()]{{0,{_MOST_CHARS}}}\)){{1,{_MOST_CHARS}}})\)")
_SIGNS = str.maketrans("×·−–÷", "**--/")
# A multiplication: "3 x 4", "3x4"; not "max".
_TIMES = re.compile(r"(?<![^\W\d_])x(?![^\W\d_])")
_WORDS = re.compile(r"(?<!\w)[^\W\d_]{1,12}(?!\w)|[$€£¥%\s]")  # they say what is counted
_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def is_constant(value: Decimal) -> bool:
    """True for a factor that anybody may calculate with: a small count, the days of a year, a hundred."""
    return value in _CONSTANTS


def as_change(factor: Figure) -> Figure:
    """Returns the change in percent that a factor stands for: 19 % for 1.19, 10 % for 0.9."""
    readings = tuple(replace(each, value=abs(each.value - 1) * _HUNDRED) for each in factor.readings)
    return replace(factor, readings=readings, unit="in %")


def calculated(text: str, holds: Callable[[Figure], bool]) -> dict[str, str]:
    """Returns the figures of the calculations in a text that hold, as written, each with its calculation.

    `holds` says if a figure does that is calculated with; results of earlier calculations do as well.
    """
    found: dict[str, str] = {}
    if not _MAY_CALCULATE.search(text):
        return found
    read = whole_values(text)

    def known(figure: Figure) -> bool:
        return _is_constant(figure) or figure.text in found or holds(figure) or holds(as_change(figure))

    for number, result in enumerate(read):
        near = read[max(0, number - _MOST_FIGURES) : number + _MOST_FIGURES + 1]
        for begin, end in _places(text, result, near):
            operands = [figure for figure in near if begin <= figure.start < end]
            if (
                not all(map(_is_constant, operands))
                and _may_be_share(text, (begin, end), operands, result)
                and _gives(text[begin:end], begin, operands, result)
                and all(map(known, operands))
            ):
                for figure in (result, *operands):
                    found.setdefault(figure.text, text[begin:end].strip())
                break
    return found


def _is_constant(figure: Figure) -> bool:
    return figure.unit is None and is_constant(figure.readings[0].value)


def _places(text: str, result: Figure, near: list[Figure]) -> Iterator[tuple[int, int]]:
    """Yields the spans in which the calculation of a result may stand.

    They lie before `=`, from each figure or bracket on, or in a bracket behind the result.
    """
    before = text[max(0, result.start - _MOST_CHARS) : result.start]
    if equals := _EQUALS.search(before):
        end = result.start - len(before) + equals.start()
        first = end - len(_OTHERS_END.split(before[: equals.start()])[-1])
        begins = {figure.start for figure in near if figure.start >= first}
        begins |= {at for at in range(first, end) if text[at] == "("}
        yield from ((begin, end) for begin in sorted(begins))
    if bracket := _BRACKET.match(text, result.end):
        yield bracket.span(1)


def _may_be_share(text: str, span: tuple[int, int], operands: list[Figure], result: Figure) -> bool:
    """True unless a sum or difference of what are no shares is said to be in percent."""
    if result.unit != "%" or any(operand.unit == "%" for operand in operands):
        return True
    calculation = text[span[0] : span[1]]
    if "/" in calculation or "÷" in calculation or ":" in calculation:
        return True
    return speaks_of_shares(f"{text[: result.start]} {text[result.end :]}")


def _gives(calculation: str, begin: int, operands: list[Figure], result: Figure) -> bool:
    """True if the calculation, in one of the ways to read its figures, gives the result as exactly as it is written."""
    if not 2 <= len(operands) <= _MOST_FIGURES:
        return False
    try:
        tree = ast.parse(_as_python(calculation, begin, operands), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    for read in islice(product(*map(_meanings, operands)), _MOST_READINGS):
        try:
            value = abs(_value(tree, {f"v{number}": meant for number, meant in enumerate(read)}))
        except (KeyError, DecimalException):
            return False
        if _is_given(value, result) and not _is_plain_ratio(calculation, value, result):
            return True
    return False


def _is_plain_ratio(calculation: str, value: Decimal, result: Figure) -> bool:
    """True if a ratio is said to be so many percent without a factor of 100: 3 / 4 = 0.75 %."""
    if result.unit != "%" or "/" not in calculation or re.search(r"100|%", calculation):
        return False
    return not any(abs(value * _HUNDRED - each.value) <= each.tolerance for each in result.readings)


def wrong_signs(text: str) -> Iterator[tuple[str, str]]:
    """Yields each result that has the other sign than its calculation, with the calculation.

    A text that says in words that something fell writes no minus.
    """
    if not _MAY_CALCULATE.search(text):
        return
    read = whole_values(text)
    for number, result in enumerate(read):
        around = text[max(0, result.start - _NEAR_CHARS) : result.end + _NEAR_CHARS]
        near = read[max(0, number - _MOST_FIGURES) : number + _MOST_FIGURES + 1]
        for begin, end in _places(text, result, near):
            operands = [figure for figure in near if begin <= figure.start < end]
            signs = _signs_of(text[begin:end], begin, operands, result)
            if not signs or result.is_negative in signs:
                continue
            if True in signs and may_be_unsigned(around):
                continue
            yield result.text, text[begin:end].strip()
            break


def _signs_of(calculation: str, begin: int, operands: list[Figure], result: Figure) -> set[bool]:
    """Returns True for a way of reading a calculation in which it is the result below 0.

    False stands for one above 0; a way that gives another number has neither.
    """
    if not 2 <= len(operands) <= _MOST_FIGURES:
        return set()
    try:
        tree = ast.parse(_as_python(calculation, begin, operands), mode="eval").body
    except (SyntaxError, ValueError):
        return set()
    signs = set[bool]()
    for read in islice(product(*map(_meanings, operands)), _MOST_READINGS):
        try:
            value = _value(tree, {f"v{number}": meant for number, meant in enumerate(read)})
        except (KeyError, DecimalException):
            return set()
        sizes = (abs(value), abs(value) * result.scale)  # operands may be written without the scale
        if value and any(_is_given(size, result) for size in sizes):
            signs.add(value < 0)
    return signs


def _is_given(value: Decimal, result: Figure) -> bool:
    """True if a value is the result, as exactly as this is written."""
    forms = (value, value * _HUNDRED) if result.unit == "%" else (value,)
    for reading in result.readings:
        wanted, width = reading.value * result.scale, reading.tolerance * result.scale
        if any(abs(form - wanted) <= width for form in forms):
            return True
    return False


def _as_python(calculation: str, begin: int, operands: list[Figure]) -> str:
    """Returns the calculation with names for its figures, without its words."""
    for number, figure in reversed([*enumerate(operands)]):
        calculation = f"{calculation[: figure.start - begin]} v{number} {calculation[figure.end - begin :]}"
    return _WORDS.sub(" ", _TIMES.sub("*", calculation)).translate(_SIGNS).strip()


def _meanings(figure: Figure) -> Iterator[Decimal]:
    for reading in figure.readings:
        yield reading.value * figure.scale
        if figure.unit == "%":
            yield reading.value / _HUNDRED


def _value(node: ast.expr, named: Mapping[str, Decimal]) -> Decimal:
    """Returns the value of a tree of operations. Raises KeyError for others, DecimalException."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, named), _value(node.right, named))
    return named[node.id if isinstance(node, ast.Name) else ""]
