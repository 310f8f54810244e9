"""Methods that a question names, and that no query behind its answer uses.

Example: `SELECT avg(x), stddev(x) FROM t` for "the mean and deviation of x after outliers were
removed by the interquartile range". Long questions mostly explain such a method.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from temporal_supervisor.supervision.grounding.doubts.inquiry import Inquiry

_SENTENCE = re.compile(r"[.?!;]\s")
# "Do not remove outliers": the method is named to be left out.
_DENIED = re.compile(r"\b(?:not|no|never|without|don't)\b", re.IGNORECASE)


class _Method(NamedTuple):
    """A method, with the pattern of its name `in_questions`.

    A query uses it if it calls one of the `functions` and has the `words`. `example` shows it in
    SQL to whoever has left it out.
    """

    name: str
    in_questions: str
    example: str
    functions: str
    words: str = ""


_METHODS = (
    _Method(
        "outliers",
        r"\boutliers?\b|\binterquartile\b|\biqr\b",
        "x < quantile_cont(x, 0.75) + ...",
        r"quantile|percentile|iqr|stddev|std_dev|mad",
        # They are found by a bound.
        r"<(?!>)|(?<!<)>|\bbetween\b",
    ),
    _Method(
        "a z-score",
        r"\bz-?scores?\b",
        "(x - avg(x)) / stddev(x)",
        r"stddev|std_dev|variance|var_",
    ),
    _Method(
        "a correlation",
        r"\bcorrelat\w+|\bpearson\b|\bspearman\b",
        "corr(x, y)",
        r"corr|regr_|covar",
    ),
    _Method(
        "a regression",
        r"\bregression\b|\bslope\b",
        "regr_slope(y, x)",
        r"regr_|corr|covar",
    ),
    _Method(
        "a standard deviation",
        r"\bstandard deviations?\b",
        "stddev(x)",
        r"stddev|std_dev|variance|var_|sqrt",
    ),
    _Method(
        "the deviation of a whole population",
        r"\bpopulation (?:standard deviation|variance)\b",
        "stddev_pop(x)",
        r"stddev_pop|var_pop|sqrt|pow",
    ),
    _Method("a median", r"\bmedians?\b", "median(x)", r"median|quantile|percentile"),
    _Method("skewness", r"\bskew(?:ness|ed)\b", "skewness(x)", r"skewness|power|pow"),
    _Method("kurtosis", r"\bkurtosis\b", "kurtosis(x)", r"kurtosis|power|pow"),
    _Method("a logarithm", r"\blogarithms?\b|\blog[- ]transform\w*", "ln(x)", r"ln|log"),
)


def methods_left_out(inquiry: Inquiry) -> Iterator[str]:
    """Yields doubts about methods that a question names and no query uses."""
    written = " ".join(shape.bare for shape in inquiry.shapes)
    for method in _METHODS:
        if not _is_named(method, inquiry.question):
            continue
        if not _is_called(method, inquiry) or re.search(method.words, written) is None:
            missing = f"the query does not compute {method.name}, which the question names"
            yield f"{missing} (in SQL: {method.example})"


def uses_a_method(inquiry: Inquiry) -> bool:
    """True if a query uses a method that the question names."""
    named = (method for method in _METHODS if _is_named(method, inquiry.question))
    return any(_is_called(method, inquiry) for method in named)


def _is_called(method: _Method, inquiry: Inquiry) -> bool:
    """True if a query calls one of the functions of a method."""
    called = " ".join(name for shape in inquiry.shapes for name in shape.functions)
    return re.search(rf"\b(?:{method.functions})", called) is not None


def _is_named(method: _Method, question: str) -> bool:
    """True if a sentence of the question names a method without a word such as `not` before it."""
    for sentence in _SENTENCE.split(question):
        named = re.search(method.in_questions, sentence, re.IGNORECASE)
        if named is not None and _DENIED.search(sentence[: named.start()]) is None:
            return True
    return False
