"""Questions on one table, played from the simplest query that gives the true answer."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from activities.files.values import literal, quoted, value_text
from temporal_supervisor.supervision.scores.figures import plain
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.oracle.plays import Call, Source, Told
from tests.oracle.tables import Table, table_of, words_of
from tests.oracle.written import misread, number_of, written

_MOST = re.compile(
    r"\b(?:most|highest|largest|longest|top|greatest|best|last|latest|least|lowest|first|fewest|smallest)\b"
)
_MANY = re.compile(r"\b(?:how many|number of|total|times|combined)\b", re.IGNORECASE)
_STRANGER = "Ottokar Petersen"
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_KEY_CHARS = 60  # a longer text names no row
_WHOLE_TABLE = 40  # rows that an agent reads at once


@dataclass(frozen=True)
class Cell:
    """The place of an answer: a row, found by its `key` column, and the column of the answer."""

    row: int
    key: int
    column: int


@dataclass(frozen=True)
class Count:
    """An answer that counts the rows with this value of a column; all rows without one."""

    column: int | None = None
    value: str = ""


Derived = Cell | Count


def wtq(question: EvalQuestion, path: Path) -> Source | None:
    """Returns a question with its author; None if no simple query gives its answer."""
    table = table_of(path)
    found = max(_candidates(question, table), key=lambda each: each[0], default=None)
    if found is None:
        return None
    return Source(question, "analyst", _Author(question, table, found[1]).write)


def _candidates(question: EvalQuestion, table: Table) -> Iterator[tuple[float, Derived]]:
    """Yields the queries that give the true answer, each with how well it fits the question."""
    value = question.answer.value
    if isinstance(value, list):
        return
    truth = plain(value)
    asked = words_of(question.question)
    counts = bool(_MANY.search(question.question))
    for column in range(len(table.columns)):
        for row, cells in enumerate(table.rows):
            if cells[column] is None or plain(value_text(cells[column])) != truth:
                continue
            key = _key(table, row, column, asked)
            if key is None or (counts and not words_of(value_text(cells[key])) <= asked):
                continue
            yield _fit(table, row, key, column, asked), Cell(row, key, column)
    if counts and isinstance(value, int | float):
        yield from _counts(table, value, asked)


def _counts(table: Table, value: float, asked: set[str]) -> Iterator[tuple[float, Derived]]:
    """Yields the counts of rows that give the true number."""
    for column in range(len(table.columns)):
        cells = table.cells(table.columns[column])
        for cell in dict.fromkeys(cells):
            named = words_of(cell)
            if named and named & asked and cells.count(cell) == value:
                yield 3 * len(named & asked) / len(named), Count(column, cell)
    if len(table.rows) == value:
        yield 0.5, Count()


def _key(table: Table, row: int, column: int, asked: set[str]) -> int | None:
    """Returns the column that names a row best: one whose value the question has, else the first text."""
    cells = table.rows[row]
    others = [at for at in range(len(cells)) if at != column and cells[at] is not None]
    unique = [at for at in others if table.cells(table.columns[at]).count(value_text(cells[at])) == 1]
    named = [at for at in others if words_of(value_text(cells[at])) and words_of(value_text(cells[at])) <= asked]
    texts = [at for at in unique if isinstance(cells[at], str)]
    short = [at for at in texts if len(value_text(cells[at])) <= _KEY_CHARS]
    return next(iter([*(at for at in named if at in unique), *short]), None)


def _fit(table: Table, row: int, key: int, column: int, asked: set[str]) -> float:
    head, name = words_of(table.columns[column]), words_of(value_text(table.rows[row][key]))
    shared = len(head & asked) / max(1, len(head))
    return shared + 2 * len(name & asked) / max(1, len(name))


@dataclass(frozen=True)
class _Author:
    question: EvalQuestion
    table: Table
    derived: Derived

    def write(self, fault: str) -> Told | None:
        """Returns the words with this fault."""
        if isinstance(self.derived, Count):
            return self._count(self.derived, fault)
        return self._cell(self.derived, fault)

    def _cell(self, at: Cell, fault: str) -> Told | None:
        table, cells = self.table, self.table.rows[at.row]
        value, key = value_text(cells[at.column]), value_text(cells[at.key])
        name = table.columns[at.column]
        is_number = number_of(cells[at.column]) is not None
        unit = ""
        match fault:
            case "figure":
                other = misread(value) if re.search(r"\d", value) else _STRANGER
                value = other
            case "row":
                value = self._below(at) or value
            case "column":
                value = self._beside(at) or value
            case "period":
                key = self._other_year(at) or key
            case "unit" if is_number and not _is_year(value):
                unit = " kg"
            case "scale" if is_number and not _is_year(value):
                unit = " million"
            case "sign" if is_number and not _is_year(value):
                value = f"-{value}"
            case _ if fault:
                return None
        named = f"{table.columns[at.key]} {_text(key)}"
        finding = f"In the row of {named}, {name} is {_text(value)}{unit}."
        answer = f"{_text(value)}{unit}: it is {name} of {named} [t1]."
        return Told(self._calls(at), finding, answer, self._fields(value))

    def _calls(self, at: Cell) -> tuple[Call, ...]:
        table, key = self.table, value_text(self.table.rows[at.row][at.key])
        # Who is not told the name of the row has to read the rows.
        is_named = words_of(key) <= words_of(self.question.question)
        if len(table.rows) <= _WHOLE_TABLE or not is_named:
            sql = f"SELECT * FROM {quoted(table.name)}"
        else:
            key = literal(key)
            sql = f"SELECT * FROM {quoted(table.name)} WHERE {quoted(table.columns[at.key])} = {key}"
        return ("list_tables", {}), ("query_data", {"sql": sql})

    def _below(self, at: Cell) -> str:
        """Returns the value of another row in the same column, which the question's row does not have."""
        own = {value_text(cell) for cell in self.table.rows[at.row]}
        others = [
            row for row in self.table.rows if row[at.column] is not None and value_text(row[at.column]) not in own
        ]
        return value_text(others[0][at.column]) if others else ""

    def _beside(self, at: Cell) -> str:
        """Returns the value of another column in the same row: of the same kind, if there is one."""
        cells = self.table.rows[at.row]
        kind = number_of(cells[at.column]) is None
        known = [cell for number, cell in enumerate(cells) if number not in (at.column, at.key) and cell is not None]
        alike = [
            cell
            for cell in known
            if (number_of(cell) is None) == kind and value_text(cell) != value_text(cells[at.column])
        ]
        return value_text(alike[0]) if alike else ""

    def _other_year(self, at: Cell) -> str:
        """Returns the key of another row, if keys are years or dates."""
        keys = self.table.cells(self.table.columns[at.key])
        own = value_text(self.table.rows[at.row][at.key])
        if not _YEAR.search(own):
            return ""
        value = value_text(self.table.rows[at.row][at.column])
        with_value = {value_text(row[at.key]) for row in self.table.rows if value_text(row[at.column]) == value}
        others = [key for key in keys if _YEAR.search(key) and _YEAR.findall(key) != _YEAR.findall(own)]
        return next((key for key in others if key not in with_value), "")

    def _count(self, at: Count, fault: str) -> Told | None:
        table = self.table
        number = len(table.rows) if at.column is None else table.cells(table.columns[at.column]).count(at.value)
        unit, asked = "", at
        match fault:
            case "figure":
                number += 2 if number < 20 else 13
            case "row" if at.column is not None:
                cells = table.cells(table.columns[at.column])
                others = [cell for cell in cells if cells.count(cell) != number]
                if not others:
                    return None
                number = cells.count(others[0])
            case "unit":
                unit = " kg"
            case _ if fault:
                return None
        where = ""
        of = f"The table {table.name} has {number}{unit} rows"
        if at.column is not None:
            where = f" WHERE {quoted(table.columns[at.column])} = {literal(at.value)}"
            of = f'{number}{unit} rows have {table.columns[at.column]} "{_text(asked.value)}"'
        sql = f"SELECT count(*) AS n FROM {quoted(table.name)}{where}"
        calls: tuple[Call, ...] = (("list_tables", {}), ("query_data", {"sql": sql}))
        return Told(calls, f"{of}.", f"{number}{unit}: {of} [t1].", self._fields(str(number)))

    def _fields(self, value: str) -> JsonValue:
        number = number_of(value)
        if self.question.answer.kind == "number":
            return {"value": number, "scale": ""}
        return {"value": " ".join(value.split())}


def _is_year(value: str) -> bool:
    return re.fullmatch(r"(?:19|20)\d{2}", value) is not None


def _text(value: str) -> str:
    number = number_of(value)
    if number is None or _is_year(value):
        return " ".join(value.split())
    return written(number)
