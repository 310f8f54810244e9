"""Questions on a table of an annual report and the text around it, played from their derivations."""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path

from activities.files.values import literal, quoted, value_text
from activities.tools.plain_tools import evaluate
from activities.tools.tool import ToolMisuse
from temporal_supervisor.supervision.scores.question_sets import EvalQuestion
from tests.oracle.plays import Call, Part, Source, Told
from tests.oracle.tables import Table, table_of, words_of
from tests.oracle.written import misread_number, number_of, with_unit, written

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SCALES = {"million": "million", "thousand": "thousand", "percent": "%", "": ""}
_WIDER = {"million": "billion", "thousand": "million", "percent": "%", "": "million"}
_NEGATIVE = re.compile(r"\((\d[\d,.]*)\)")
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_CONSTANT = re.compile(r"\d|1\d|100|20\d\d")
_MOST_PLACES = 2000  # ways to find the operands in a table


@dataclass(frozen=True)
class Operand:
    """A figure of a derivation at its place in the table."""

    value: float
    row: int
    column: int


@dataclass(frozen=True)
class Derived:
    """A derivation over places of a table: `pattern` has `{0}`, `{1}` in the place of its operands."""

    table: Table
    pattern: str
    operands: tuple[Operand, ...]
    in_percent: bool

    def label(self, operand: Operand) -> str:
        """Returns the name of an operand's row."""
        named = [cell for cell in self.table.rows[operand.row] if isinstance(cell, str)]
        return " ".join(named[0].split()) if named else ""

    def column(self, operand: Operand) -> str:
        """Returns the name of an operand's column."""
        name = self.table.columns[operand.column]
        return "" if name.startswith("column_") else name

    def shown(self, operand: Operand) -> float:
        """Returns an operand with the sign that the table gives it."""
        known = number_of(self.table.rows[operand.row][operand.column])
        return -operand.value if known is not None and known < 0 else operand.value

    @property
    def expression(self) -> str:
        """The calculation, as the calculator takes it."""
        plain = self.pattern.format(*(value_text(operand.value) for operand in self.operands))
        return f"({plain}) * 100" if self.in_percent else plain

    @property
    def result(self) -> float:
        """The value of the calculation."""
        return float(evaluate(self.expression))

    @property
    def is_change(self) -> bool:
        """True for a difference between two columns of a row."""
        first, last = self.operands[0], self.operands[-1]
        alike = len(self.operands) == 2 and first.row == last.row and first.column != last.column
        return alike and self.pattern.replace(" ", "") in ("{0}-{1}", "({0}-{1})")


def tatqa(question: EvalQuestion, folder: Path, derivation: str) -> Source | None:
    """Returns a question with its author; None if its derivation is not found in the table."""
    table = table_of(folder / "table.csv")
    derived = _derived(question, table, derivation)
    if derived is None:
        return None
    text = folder / "text.md"
    said = text.read_text(encoding="utf-8") if text.is_file() else ""
    scale = question.answer.scale or ""
    more = _scale_part(scale, said)
    in_table = bool(re.search(_SCALES[scale] or "$", (folder / "table.csv").read_text(encoding="utf-8"), re.I))
    in_table = in_table or scale == "percent"
    author = _Author(question, derived, scale, in_table, bool(more))
    return Source(question, "analyst", author.write, more)


def _scale_part(scale: str, text: str) -> tuple[Part, ...]:
    """Returns the subtask of a reader of the text, if that says in what the amounts are counted."""
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=[.:;])\s|\n", text)]
    if scale not in ("million", "thousand"):
        return ()
    naming = [sentence for sentence in sentences if re.search(rf"\bin (?:\w+ )*{scale}s\b", sentence, re.I)]
    if not naming:
        return ()
    finding = f'The amounts of the table are in {scale}s: "{naming[0]}" [text.md]'
    calls: tuple[Call, ...] = (("read_document", {"document_id": "text.md"}),)
    return (Part("reader", "In what are the amounts of the table counted?", calls, finding),)


def _derived(question: EvalQuestion, table: Table, derivation: str) -> Derived | None:
    """Returns a derivation whose operands stand in the table, and whose result is the true answer."""
    truth = question.answer.value
    if not isinstance(truth, int | float):
        return None
    for form in (derivation, _NEGATIVE.sub(r"(-\1)", derivation)):
        pattern, values = _pattern(form, table)
        if not values:
            continue
        operands = _places(question, table, values)
        if operands is None:
            continue
        for in_percent in (False, True):
            derived = Derived(table, pattern, operands, in_percent)
            if _agrees(derived, float(truth)):
                return derived
    return None


def _agrees(derived: Derived, truth: float) -> bool:
    try:
        return abs(derived.result - truth) <= 0.0051
    except ToolMisuse:
        return False


def _pattern(derivation: str, table: Table) -> tuple[str, list[float]]:
    """Returns a derivation with places for the figures of the table, and these; others stay constants."""
    plain = re.sub(r"[$%\s]", "", derivation)
    values = list[float]()
    parts, end = list[str](), 0
    for match in _NUMBER.finditer(plain):
        value = float(match[0].replace(",", ""))
        parts.append(plain[end : match.start()])
        end = match.end()
        is_divisor = plain[: match.start()].endswith("/") and value < 13
        if _cells_of(table, value) and not is_divisor:
            parts.append(f"{{{len(values)}}}")
            values.append(value)
        elif _CONSTANT.fullmatch(match[0]):
            parts.append(match[0])
        else:
            return "", []
    pattern = "".join([*parts, plain[end:]])
    return re.sub(r"([-+*/])", r" \1 ", pattern).replace("( - ", "(-").strip(), values


def _cells_of(table: Table, value: float) -> list[tuple[int, int]]:
    return [
        (at, column)
        for at, row in enumerate(table.rows)
        for column, cell in enumerate(row)
        if (number := number_of(cell)) is not None and abs(abs(number) - value) < 1e-9
    ]


def _places(question: EvalQuestion, table: Table, values: list[float]) -> tuple[Operand, ...] | None:
    """Returns the operands at those places that fit the question best."""
    asked = words_of(question.question)
    each = [_cells_of(table, value) for value in values]

    def fit(places: tuple[tuple[int, int], ...]) -> float:
        rows, columns = {row for row, _ in places}, {column for _, column in places}
        named = [words_of(str(table.rows[row][0])) for row in rows]
        names = [words_of(table.columns[column]) for column in columns]
        shared = sum(len(words & asked) / max(1, len(words)) for words in [*named, *names])
        return shared + 3 * (len(rows) == 1) + 2 * (len(columns) == 1) + len(set(places))

    best = max(islice(product(*each), _MOST_PLACES), key=fit, default=None)
    if best is None:
        return None
    return tuple(Operand(value, *place) for value, place in zip(values, best, strict=True))


@dataclass(frozen=True)
class _Author:
    question: EvalQuestion
    derived: Derived
    scale: str
    is_in_table: bool
    is_in_text: bool

    @property
    def cites(self) -> str:
        """The marks of the findings that the answer rests on."""
        return "[t1, t2]" if self.is_in_text else "[t1]"

    def write(self, fault: str) -> Told | None:
        """Returns the words with this fault."""
        derived, scale, columns, sign = self.derived, self.scale, [], 1
        columns = [self.derived.column(operand) for operand in derived.operands]
        rows = [self.derived.label(operand) for operand in derived.operands]
        changed: Derived | None = derived
        unit = _SCALES[scale] if self.is_in_table or self.is_in_text else ""
        match fault:
            case "figure":
                changed = self._moved(lambda operand: replace(operand, value=misread_number(operand.value)))
            case "row":
                changed = self._other_rows()
            case "column":
                changed = self._other_column()
            case "period":
                other = self._other_periods(columns)
                is_other = other is not None and len({operand.value for operand in derived.operands}) > 1
                columns, changed = (other or [], derived) if is_other else (columns, None)
            case "unit":
                unit, scale = ("million", "million") if scale == "percent" else ("%", "percent")
            case "scale":
                unit = scale = _WIDER[scale]
                changed = None if scale in ("%", self.scale) else changed
            case "sign":
                sign = -1
                changed = derived if self.derived.result < 0 or self.derived.is_change else None
        if changed is None:
            return None
        try:
            return self._told(changed, rows, columns, unit, scale, sign, whole=fault in ("row", "column"))
        except ToolMisuse:
            return None

    def _moved(self, move: Callable[[Operand], Operand]) -> Derived:
        operands = list(self.derived.operands)
        operands[0] = move(operands[0])
        return replace(self.derived, operands=tuple(operands))

    def _other_rows(self) -> Derived | None:
        """Returns the derivation over the row below, or above, of each operand."""
        table, operands = self.derived.table, self.derived.operands
        for distance in (1, -1, 2, -2, 3, -3):
            moved = [self._at(operand.row + distance, operand.column) for operand in operands]
            known = [operand for operand in moved if operand is not None]
            alike = [one.value == other.value for one, other in zip(known, operands, strict=False)]
            if len(known) == len(operands) and not all(alike) and 0 <= known[0].row < len(table.rows):
                return replace(self.derived, operands=tuple(known))
        return None

    def _other_column(self) -> Derived | None:
        """Returns the derivation with the last operand out of a column that it does not use."""
        operands = self.derived.operands
        used = {operand.column for operand in operands}
        last = operands[-1]
        for column in range(len(self.derived.table.columns)):
            moved = None if column in used else self._at(last.row, column)
            if moved is not None and moved.value != last.value:
                return replace(self.derived, operands=(*operands[:-1], moved))
        return None

    def _at(self, row: int, column: int) -> Operand | None:
        rows = self.derived.table.rows
        value = number_of(rows[row][column]) if 0 <= row < len(rows) else None
        return None if value is None else Operand(abs(value), row, column)

    def _other_periods(self, columns: list[str]) -> list[str] | None:
        """Returns the columns with another year of the table in the place of the last one."""
        known = [name for name in self.derived.table.columns if _YEAR.search(name)]
        spare = [name for name in known if name not in columns]
        if not columns or not _YEAR.search(columns[-1]):
            return None
        if spare:
            return [*columns[:-1], spare[0]]
        return columns[::-1] if len(set(columns)) > 1 else None

    def _told(
        self,
        derived: Derived,
        rows: list[str],
        columns: list[str],
        unit: str,
        scale: str,
        sign: int,
        whole: bool,
    ) -> Told:
        value = sign * _rounded(derived.result, self.question)
        result = with_unit(written(value), unit)
        is_honest = scale == self.scale
        in_finding = result if self.is_in_table or not is_honest else written(value)
        values = [written(derived.shown(operand)) for operand in derived.operands]
        sizes = [written(operand.value) for operand in derived.operands]
        calculation = derived.pattern.replace("-", "−").replace("*", "×").format(*sizes)
        if derived.in_percent:
            calculation = f"({calculation}) × 100"
        lines = [_named(row, column, cell) for row, column, cell in zip(rows, columns, values, strict=True)]
        listed = list(dict.fromkeys(lines))
        query = self._query(derived, rows, whole)
        calls: tuple[Call, ...] = (
            ("list_tables", {}),
            ("query_data", {"sql": query}),
            ("calculate", {"expression": derived.expression}),
        )
        direction = "an increase" if value > 0 else "a decrease"
        is_change = derived.is_change
        style = zlib.crc32(self.question.id.encode()) % 3
        if is_change and style:
            finding = (
                f"{rows[0]} was {values[0]} {_when(columns[0])} and {values[1]} {_when(columns[1])}.\n\n"
                f"Change: {calculation} = {in_finding}, {direction}."
            )
        else:
            finding = "\n".join(
                [
                    "From the table:",
                    *(f"- {line}" for line in listed),
                    "",
                    f"{calculation} = {in_finding}.",
                ]
            )
        verb = "rose" if value > 0 else "fell"
        if is_change and style == 1 and value:
            size = with_unit(written(abs(value)), unit)
            answer = (
                f"{rows[0]} {verb} by {size}, from {values[1]} {_when(columns[1])} to {values[0]} {_when(columns[0])} "
                f"{self.cites}."
            )
        elif is_change:
            when = f"from {_period(columns[1])} to {_period(columns[0])}"
            answer = f"The change in {rows[0]} {when} is {result} ({calculation}) {self.cites}."
        else:
            answer = f"It is {result} ({calculation}), from {'; '.join(listed)} {self.cites}."
        return Told(calls, finding, answer, {"value": value, "scale": scale if scale != "%" else "percent"})

    def _query(self, derived: Derived, rows: list[str], whole: bool) -> str:
        table = derived.table
        used = sorted(
            {operand.column for operand in derived.operands} | {operand.column for operand in self.derived.operands}
        )
        listed = ", ".join(quoted(table.columns[at]) for at in [0, *(at for at in used if at)])
        if whole:
            listed = "*"
        named = sorted({str(table.rows[operand.row][0]) for operand in derived.operands})
        wanted = ", ".join(map(literal, named))
        where = "" if whole or "None" in named else f" WHERE {quoted(table.columns[0])} IN ({wanted})"
        return f"SELECT {listed} FROM {table.name}{where}"


def _when(column: str) -> str:
    """Returns a column's name as a period of a sentence."""
    plain = _period(column)
    return f"in {plain}" if re.fullmatch(r"(?:19|20)\d\d", plain) else f"at {plain}"


def _period(column: str) -> str:
    """Returns the name of a column without its unit and the words before its date."""
    plain = re.sub(r"^(?:As of|At|Years? ended)\s+", "", column, flags=re.IGNORECASE)
    return re.sub(r"\s*(?:US)?[$€£][’']?(?:000|m)?\b", "", plain).strip()


def _named(row: str, column: str, cell: str) -> str:
    return f"{', '.join(filter(None, (row, _period(column))))}: {cell}"


def _rounded(value: float, question: EvalQuestion) -> float:
    truth = question.answer.value
    text = value_text(float(truth)) if isinstance(truth, int | float) else ""
    return round(value, max(2, len(text.partition(".")[2])))
