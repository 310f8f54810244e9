"""Tables as questions see them: each column with its kind, its words, its values and its range."""

import re
from dataclasses import dataclass, field
from typing import Literal

from temporal_supervisor.standin.lookup.word_forms import stems

Kind = Literal["number", "text", "time"]

# "table race (rider VARCHAR)", "- table race (rider, laps)"; not "tables (a)".
_LISTED = re.compile(r"^\s*(?:- )?table\s+([^\s()]+)\s*\((.*)$", re.IGNORECASE)
_NAME = r"""("[^"]++"|(?<![^\s",():;])[^\s",():;]++)"""
# 'rider VARCHAR, ', '"laps led" DECIMAL(3,1)'.
_TYPED = re.compile(_NAME + r"\s++([A-Z][A-Z0-9_]*+(?:\([^()]*+\))?)(?:, |$)")
_SUMMED = re.compile(r'("[^"]+"|[^\s",():;]+): ')
# "  rider: Bob, Jon"; not "rider: Bob".
_DETAIL = re.compile(r'^\s+("[^"]+"|[^\s",():;]+):\s+(.+)$')
# "0 to 20", "2004-05-02 to 2004-10-31"; not "one to two".
_RANGE = re.compile(r"^(-?\d\S*) to (-?\d\S*)(?: \S+)?$")
# "Bob, ... and 31 more"; not "one more".
_MORE = re.compile(r",? ?(?:\.\.\.|…)? ?and \d+ more$")
_VALUE = re.compile(r"'((?:[^']|'')*)'(?:, |$)|(.+?)(?:, |$)")
_NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "REAL", "NUMERIC")
_TIMES = ("DATE", "TIMESTAMP")
# "2004", "2004-05", "2004-05-02 10:30"; not "204".
_MOMENT = re.compile(r"(1[5-9]|20|21)\d\d(-\d\d(-\d\d)?([T ].*)?)?")
_TIME_WORDS = frozenset(
    {"date", "year", "month", "quarter", "week", "day", "time", "period", "when"}
)
_UNIT_WORDS = """
eur usd chf gbp kg g t ton tonne km m cm mm l percent pct thousand million year id no nr number code
name in per of the
"""
_UNITS = frozenset(_UNIT_WORDS.split())
_KEYS = frozenset({"id", "no", "nr", "number", "code", "key"})
# What adds up over rows; of other figures, such as prices and rates, a sum says nothing.
_ADDITIVE_WORDS = """
quantity qty amount total net gross revenue sale turnover cost unit piece hour order count number
visitor tonne value spend spent paid fee stock profit income expense budget harvest yield crop
weight volume sold
"""
_ADDITIVE = frozenset(_ADDITIVE_WORDS.split())
_RATE_WORDS = (
    "price rate percent share average mean ratio index per expectancy age temperature score"
)
_RATES = frozenset(_RATE_WORDS.split())


@dataclass
class Column:
    """A column as queries write it.

    `values` are listed, all of them if it is `whole`; `low` to `high` is its range.
    """

    sql: str
    kind: Kind
    values: list[str] = field(default_factory=list)
    whole: bool = True
    low: str = ""
    high: str = ""

    @property
    def title(self) -> str:
        """Returns the name to be read."""
        return self.sql.strip('"').replace("_", " ")

    @property
    def words(self) -> list[str]:
        """Returns the stems of its name."""
        return stems(self.title)

    @property
    def main_words(self) -> list[str]:
        """Returns the stems of its name without units; all of them if nothing else is left."""
        return [word for word in self.words if word not in _UNITS] or self.words

    @property
    def is_key(self) -> bool:
        """True for numbers that name rows, as those of orders do: nothing is computed from them."""
        return self.words[-1:] != self.words[:1] and self.words[-1] in _KEYS or self.words == ["id"]

    @property
    def adds_up(self) -> bool:
        """True if a sum over its rows says something."""
        words = set(self.words)
        return bool(words & _ADDITIVE) and not words & _RATES and not self.is_key

    @property
    def is_years(self) -> bool:
        """True for a column of whole years, which are numbers."""
        return bool(re.fullmatch(r"\d{4}", self.low))


@dataclass
class DataTable:
    """A table of a catalogue or of a list of tables."""

    name: str
    columns: list[Column] = field(default_factory=list)

    @property
    def words(self) -> list[str]:
        """Returns the stems of its name."""
        return [word for word in stems(self.name.replace("_", " ")) if not word.isdigit()]

    @property
    def time(self) -> Column | None:
        """Returns the column that dates its rows."""
        dated = [column for column in self.columns if column.kind == "time"]
        named = [column for column in dated if set(column.words) & _TIME_WORDS]
        return next(iter(named or dated), None)

    @property
    def label(self) -> Column | None:
        """Returns the column that names its rows: the first one of texts."""
        return next((column for column in self.columns if column.kind == "text"), None)

    def of_kind(self, kind: Kind) -> list[Column]:
        """Returns its columns of one kind."""
        return [column for column in self.columns if column.kind == kind]


def read_tables(text: str) -> list[DataTable]:
    """Returns the tables in a list of tables or a planner's catalogue, each name once."""
    tables: dict[str, DataTable] = {}
    current: DataTable | None = None
    for line in text.splitlines():
        if listed := _LISTED.match(line):
            name = listed[1].strip('"')
            made = _typed(name, listed[2]) or _summed(name, listed[2])
            current = tables.setdefault(name, made) if made else None
            if current is not None and len(made.columns if made else []) > len(current.columns):
                current = tables[name] = made or current
        elif current is not None and (detail := _DETAIL.match(line)):
            _learn(current, detail[1], detail[2])
    return list(tables.values())


def _typed(name: str, rest: str) -> DataTable | None:
    """Returns the table of `name TYPE, name TYPE): about`, None for another form."""
    inner = _inside(rest)
    found = _TYPED.findall(inner)
    if not found or ": " in inner:
        return None
    return DataTable(
        name, [Column(column, _kind_of_type(column, type_)) for column, type_ in found]
    )


def _summed(name: str, rest: str) -> DataTable | None:
    """Returns the table of `name: values; name: low to high; rows: 8): about`.

    None for another form.
    """
    table = DataTable(name)
    for part in _inside(rest).split("; "):
        if part.startswith("rows: "):
            continue
        if match := _SUMMED.match(part):
            column = Column(match[1], "text")
            table.columns.append(column)
            _learn(table, match[1], part[match.end() :])
            continue
        column_name, _, type_ = part.rpartition(" ")
        if column_name and type_.isupper():
            table.columns.append(
                Column(column_name, _kind_of_type(column_name, type_), whole=False)
            )
    return table if table.columns else None


def _inside(rest: str) -> str:
    """Returns the text up to the bracket that closes a list of columns."""
    depth = 1
    for at, char in enumerate(rest):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return rest[:at]
    return rest


def _kind_of_type(name: str, type_: str) -> Kind:
    if type_.startswith(_TIMES):
        return "time"
    return "number" if any(word in type_ for word in _NUMBERS) else "text"


def _learn(table: DataTable, name: str, known: str) -> None:
    """Takes a line about a column: its range or its values."""
    column = next((column for column in table.columns if column.sql == name), None)
    if column is None:
        return
    if span := _RANGE.match(known):
        column.low, column.high = span[1], span[2]
        is_dated = bool(_MOMENT.fullmatch(span[1]) and _MOMENT.fullmatch(span[2]))
        names_time = bool(set(column.words) & _TIME_WORDS)
        column.kind = "time" if is_dated and (names_time or "-" in span[1]) else "number"
        return
    listed = _MORE.sub("", known)
    column.whole = listed == known
    column.values = [quoted.replace("''", "'") or plain for quoted, plain in _VALUE.findall(listed)]
    if set(column.words) & _TIME_WORDS and all(map(_MOMENT.fullmatch, column.values)):
        column.kind, column.low, column.high = "time", min(column.values), max(column.values)
