"""Tools that read no files of a team: arithmetic, the user's attachments, files for the user."""

import ast
import math
import operator
import re
from collections.abc import Callable
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field
from simpleeval import InvalidExpression, SimpleEval

from activities.files.values import value_text
from activities.tools.document_format import DOCUMENT_FORMAT
from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.text import one_line

CALCULATOR_CHARS = 500  # longer is a program, not an expression
CALCULATOR_MAGNITUDE = 1e300  # near the end of floats: whatever is above is a bomb

Number = int | float

_GRAMMAR = (
    "An expression consists of numbers, + - * / // % and ** for powers, parentheses, pi, e, and "
    "the functions sqrt, log, log10, exp, round, abs, min, max, sum, mean, pow, floor, ceil. "
    "Write numbers without units and without thousands separators."
)
_NOT_COMPUTABLE = f"This is not an expression that can be computed. {_GRAMMAR}"
# How a text fails that is no expression, or one of other things than numbers.
_NO_EXPRESSION = (
    SyntaxError,
    InvalidExpression,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    MemoryError,
)
_SQL = re.compile(r"\b(select|from|where|count|avg|case)\b", re.IGNORECASE)
_IS_QUERY = (
    "This is a query, and no expression of numbers. Make it with the tool that runs queries, with "
    f"names of columns as the list of tables has them. {_GRAMMAR}"
)
_TOO_LARGE = f"A value is above {CALCULATOR_MAGNITUDE:g}, which is too large to compute."


class Calculate(Arguments):
    """One expression."""

    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=CALCULATOR_CHARS,
            description=f"The expression, its figures as they stand in the sources. {_GRAMMAR}",
        ),
    ]


async def _calculate(arguments: Calculate, context: ToolContext) -> ToolOutput:
    expression = one_line(arguments.expression, CALCULATOR_CHARS)
    if _SQL.search(expression):
        raise ToolMisuse(_IS_QUERY)
    return ToolOutput(f"{expression} = {value_text(evaluate(expression))}")


def evaluate(expression: str) -> Number:
    """Returns the value of `expression`: `evaluate("2 * (3 + 4)")` is 14. Raises ToolMisuse."""
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
    evaluator.nodes = {kind: visit for kind, visit in evaluator.nodes.items() if kind in _NODES}
    try:
        parsed = ast.parse(expression.strip(), mode="eval")
        return _check_number(evaluator.eval(expression, parsed.body))
    except ZeroDivisionError:
        raise ToolMisuse("The expression divides by zero.") from None
    except OverflowError:
        raise ToolMisuse(_TOO_LARGE) from None
    except _NO_EXPRESSION:
        raise ToolMisuse(_NOT_COMPUTABLE) from None
    except (ArithmeticError, ValueError) as error:
        reason = one_line(str(error), limits.SENTENCE_BYTES)
        raise ToolMisuse(f"The expression cannot be computed: {reason}") from None


def _check_number(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        others = "text, lists or roots of negative numbers"
        raise ToolMisuse(f"Only real numbers can be computed, not {others}.")
    if not abs(value) <= CALCULATOR_MAGNITUDE:  # NaN fails every comparison
        raise ToolMisuse(_TOO_LARGE)
    return value


def _guarded(function: Callable[..., object]) -> Callable[..., Number]:
    """Returns a function with checked arguments and a checked result: numbers stay small."""

    def call(*values: object) -> Number:
        return _check_number(function(*[_check_number(value) for value in values]))

    return call


def _power(base: Number, exponent: Number) -> object:
    # An integer power is exact, so its size must be known before it is computed.
    if abs(base) > 1 and exponent * math.log10(abs(base)) > math.log10(CALCULATOR_MAGNITUDE):
        raise OverflowError
    return base**exponent


def _round(value: Number, digits: int = 0) -> Number:
    if abs(digits) > 15:  # round(5, -10**9) would compute 10**10**9
        raise ValueError("round takes at most 15 digits")
    return round(value, digits) if digits else round(value)


_NODES = {ast.Expr, ast.Expression, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name}
_NAMES = {"pi": math.pi, "e": math.e}
_OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: _guarded(operator.add),
    ast.Sub: _guarded(operator.sub),
    ast.Mult: _guarded(operator.mul),
    ast.Div: _guarded(operator.truediv),
    ast.FloorDiv: _guarded(operator.floordiv),
    ast.Mod: _guarded(operator.mod),
    ast.Pow: _guarded(_power),
    ast.USub: _guarded(operator.neg),
    ast.UAdd: _guarded(operator.pos),
}
_PLAIN = (math.sqrt, math.log, math.log10, math.exp, math.floor, math.ceil, abs, min, max)
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{function.__name__: _guarded(function) for function in _PLAIN},
    "round": _guarded(_round),
    "sum": _guarded(lambda *values: sum(values)),
    "mean": _guarded(lambda *values: fmean(values)),
    "pow": _guarded(_power),
}


class ReadAttachment(Arguments):
    """An attachment, or what follows in it."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="The name of the attachment, as the subtask gives it.",
        ),
    ]
    offset: Annotated[
        int,
        Field(ge=0, description="The number of characters to skip. The default is 0."),
    ] = 0


async def _read_attachment(arguments: ReadAttachment, context: ToolContext) -> ToolOutput:
    read = context.attachments.get(arguments.name)
    if read is None:
        names = ", ".join(context.attachments) or "none"
        raise ToolMisuse(f"This subtask has no attachment with this name. It has: {names}")
    text = await read()
    if arguments.offset and arguments.offset >= len(text):
        raise ToolMisuse(f"The attachment has only {len(text)} characters. Use a smaller offset.")
    return ToolOutput(text[arguments.offset :], sources=[arguments.name])


_CALCULATE = (
    "Computes one arithmetic expression exactly. Use it for every number that is not copied from "
    "a source, also for differences, shares and growth rates."
)
_ATTACHMENT = (
    "Returns the text of an attachment of this subtask, given its name. A very long one is cut; "
    "what is left out can be read from an offset on."
)
PLAIN: dict[str, Tool[Any]] = {
    "attachment": Tool(
        "read_attachment",
        _ATTACHMENT,
        ReadAttachment,
        _read_attachment,
        reads_attachments=True,
    ),
    "calculator": Tool(
        "calculate",
        _CALCULATE,
        Calculate,
        _calculate,
        reads="public",
        evidence="computed",
    ),
    "document_format": DOCUMENT_FORMAT,
}
"""The tools by their kinds; a team names them itself."""
