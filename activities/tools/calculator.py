"""Arithmetic on one line, refused as soon as it could cost more than milliseconds."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Annotated

from pydantic import Field
from simpleeval import InvalidExpression, SimpleEval

from activities.tools.tool import Arguments, Tool, ToolContext, ToolMisuse, ToolOutput
from supervision.base import limits
from supervision.base.text import one_line

CALCULATOR_CHARS = 500  # longer is a program, not an expression
CALCULATOR_MAGNITUDE = 1e300  # near the end of floats: whatever is above is a bomb

Number = int | float

_GRAMMAR = (
    "An expression consists of numbers, + - * / // % and ** for powers, parentheses, pi, e, and the functions sqrt, "
    "log, log10, exp, round, abs, min, max, sum, mean, pow, floor, ceil. Write numbers without units and without "
    "thousands separators."
)
_NOT_COMPUTABLE = f"This is not an expression that can be computed. {_GRAMMAR}"
_TOO_LARGE = f"A value is above {CALCULATOR_MAGNITUDE:g}, which is too large to compute."


class Calculate(Arguments):
    """One expression."""

    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=CALCULATOR_CHARS,
            description=f"The expression, for example (79.4 / 40.2) ** (1 / 55) - 1. {_GRAMMAR}",
        ),
    ]


def calculator(name: str) -> Tool[Calculate]:
    """Returns a tool of the kind `calculator`."""
    description = (
        "Computes one arithmetic expression exactly. Use it for every number that is not copied from a source, also "
        "for differences, shares and growth rates."
    )
    return Tool(name, description, Calculate, _run, reads="public", evidence="computed")


async def _run(arguments: Calculate, context: ToolContext) -> ToolOutput:
    expression = one_line(arguments.expression, CALCULATOR_CHARS)
    return ToolOutput(f"{expression} = {_show(evaluate(expression))}")


def evaluate(expression: str) -> Number:
    """Returns the value of `expression`. Raises ToolMisuse with its problem."""
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
    evaluator.nodes = {kind: visit for kind, visit in evaluator.nodes.items() if kind in _NODES}
    try:
        return _checked(evaluator.eval(expression, ast.parse(expression.strip(), mode="eval").body))
    except ToolMisuse:
        raise
    except SyntaxError:  # also for 200 nested parentheses
        raise ToolMisuse(_NOT_COMPUTABLE) from None
    except ZeroDivisionError:
        raise ToolMisuse("The expression divides by zero.") from None
    except (RecursionError, MemoryError):
        raise ToolMisuse("The expression is nested too deeply. Compute it in several calls.") from None
    except OverflowError:
        raise ToolMisuse(_TOO_LARGE) from None
    except (ArithmeticError, ValueError) as error:
        raise ToolMisuse(f"The expression cannot be computed: {one_line(str(error), limits.SENTENCE_BYTES)}") from None
    except (InvalidExpression, TypeError, KeyError, AttributeError):
        raise ToolMisuse(_NOT_COMPUTABLE) from None


def _checked(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolMisuse("Only real numbers can be computed, not text, lists or roots of negative numbers.")
    if not abs(value) <= CALCULATOR_MAGNITUDE:  # NaN fails every comparison
        raise ToolMisuse(_TOO_LARGE)
    return value


def _guarded(function: Callable[..., object]) -> Callable[..., Number]:
    """Returns `function` with checked arguments and a checked result, so that numbers stay small."""

    def call(*values: object) -> Number:
        return _checked(function(*[_checked(value) for value in values]))

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


def _mean(*values: Number) -> float:
    if not values:
        raise ValueError("mean needs numbers")
    return math.fsum(values) / len(values)


def _sum(*values: Number) -> Number:
    return sum(values)


def _show(value: Number) -> str:
    if isinstance(value, int):
        return str(value)
    return f"{value:.12g}" if abs(value) < 1e12 else f"{value:.15g}"


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
_FUNCTIONS: dict[str, Callable[..., Number]] = {
    "sqrt": _guarded(math.sqrt),
    "log": _guarded(math.log),
    "log10": _guarded(math.log10),
    "exp": _guarded(math.exp),
    "round": _guarded(_round),
    "abs": _guarded(abs),
    "min": _guarded(min),
    "max": _guarded(max),
    "sum": _guarded(_sum),
    "mean": _guarded(_mean),
    "pow": _guarded(_power),
    "floor": _guarded(math.floor),
    "ceil": _guarded(math.ceil),
}
