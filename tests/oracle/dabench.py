"""Statistics on one small table, played from the query that computes each of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import duckdb
from pydantic import JsonValue

from activities.files.values import quoted, value_text
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.oracle.plays import Call, Source, Told
from tests.oracle.tables import Table, table_of, words_of
from tests.oracle.written import misread_number, with_unit, written

_KINDS = {
    "avg": "mean",
    "stddev_samp": "sample standard deviation",
    "stddev_pop": "population standard deviation",
    "median": "median",
    "min": "lowest value",
    "max": "highest value",
    "sum": "sum",
    "count": "number of values",
}
_MOST_COLUMNS = 6  # that a question is about


@dataclass(frozen=True)
class Statistic:
    """A statistic of one column, or the correlation of two, with its value in the table."""

    name: str
    kind: str
    columns: tuple[str, ...]
    decimals: int
    value: float

    @property
    def sql(self) -> str:
        """Its expression."""
        listed = ", ".join(map(quoted, self.columns))
        return f"round({self.kind}({listed}), {self.decimals})"

    @property
    def words(self) -> str:
        """Its name for people."""
        if self.kind == "corr":
            return f"correlation of {self.columns[0]} and {self.columns[1]}"
        return f"{_KINDS[self.kind]} of {self.columns[0]}"


def dabench(question: EvalQuestion, path: Path) -> Source | None:
    """Returns a question with its author; None if one of its numbers is none of the simple statistics."""
    (file,) = sorted(path.iterdir())
    table = table_of(file)
    truth = question.answer.value
    if not isinstance(truth, dict):
        return None
    known = list(_statistics(question, table))
    found = list[Statistic]()
    for name, value in truth.items():
        if not isinstance(value, int | float):
            return None
        decimals = len(value_text(float(value)).partition(".")[2]) or 2
        able = [each for each in known if _may_be(name, each.kind)]
        alike = [each for each in able if round(each.value, decimals) == round(float(value), decimals)]
        if not alike:
            return None
        found.append(replace(alike[0], name=name, decimals=decimals, value=float(value)))
    return Source(question, "analyst", _Author(question, table, tuple(found)).write)


def _may_be(name: str, kind: str) -> bool:
    """True if a number of that name may be such a statistic: one that equals it by chance is no answer."""
    words = name.lower()
    if "outlier" in words:
        return False
    return "corr" not in words or kind == "corr"


def _statistics(question: EvalQuestion, table: Table) -> Iterator[Statistic]:
    """Yields the statistics of the columns that a question may be about."""
    columns = _asked_columns(question, table)
    for column in columns:
        for kind in _KINDS:
            yield from _computed(table, kind, (column,))
    for pair in combinations(columns, 2):
        yield from _computed(table, "corr", pair)


def _asked_columns(question: EvalQuestion, table: Table) -> list[str]:
    numbers = [column for column in table.columns if table.is_number(column)]
    asked = words_of(question.question)

    def fit(column: str) -> tuple[bool, int]:
        is_quoted = re.search(rf"(?<!\w){re.escape(column)}(?!\w)", question.question) is not None
        return is_quoted, len(words_of(column) & asked)

    return sorted(numbers, key=fit, reverse=True)[:_MOST_COLUMNS]


def _computed(table: Table, kind: str, columns: tuple[str, ...]) -> Iterator[Statistic]:
    each = Statistic("", kind, columns, 9, 0.0)
    try:
        ((value,),) = table.answer(f"SELECT {each.sql} FROM {quoted(table.name)}")
    except duckdb.Error:
        return
    if value is not None:
        yield replace(each, value=float(value))


@dataclass(frozen=True)
class _Author:
    question: EvalQuestion
    table: Table
    statistics: tuple[Statistic, ...]

    def write(self, fault: str) -> Told | None:
        """Returns the words with this fault in the first number."""
        first, *rest = self.statistics
        unit = ""
        match fault:
            case "figure":
                first = replace(first, value=misread_number(first.value))
            case "column":
                other = self._other_column(first)
                if other is None:
                    return None
                first = replace(first, value=other)
            case "unit":
                unit = "kg"
            case "scale":
                unit = "million"
            case "sign":
                first = replace(first, value=-first.value)
            case _ if fault:
                return None
        told = [f"The {first.words} is {with_unit(written(first.value), unit)}"]
        told += [f"The {each.words} is {written(each.value)}" for each in rest]
        listed = ", ".join(f"{each.sql} AS {quoted(each.name)}" for each in self.statistics)
        sql = f"SELECT {listed} FROM {quoted(self.table.name)}"
        calls: tuple[Call, ...] = (("list_tables", {}), ("query_data", {"sql": sql}))
        fields: dict[str, JsonValue] = {each.name: each.value for each in (first, *rest)}
        return Told(calls, ". ".join(told) + ".", f"{'; '.join(told)} [t1].", fields)

    def _other_column(self, of: Statistic) -> float | None:
        """Returns the same statistic of another column."""
        others = [name for name in self.table.columns if self.table.is_number(name) and name not in of.columns]
        for other in others:
            moved = list(_computed(self.table, of.kind, (other, *of.columns[1:])))
            if moved and round(moved[0].value, of.decimals) != of.value:
                return round(moved[0].value, of.decimals)
        return None
