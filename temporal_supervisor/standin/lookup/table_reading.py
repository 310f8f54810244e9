"""The reading of a question against one table: its values, times, groups and columns."""

from dataclasses import dataclass, field

from temporal_supervisor.standin.lookup.periods import Period, periods_in
from temporal_supervisor.standin.lookup.question_words import QuestionWords
from temporal_supervisor.standin.lookup.table_columns import Column, DataTable
from temporal_supervisor.standin.lookup.word_forms import stems

_SHORT_CHARS = 3  # values as short as this must be written with the same letters
_ROW_WORDS = ("row", "entry", "record", "line")
_GRAINS = ("year", "quarter", "month", "day")
_WHICH = ("which", "what")
_BY = frozenset(["by", "per", "each", "every"])
_AMOUNT_NOUNS = "sale cost revenue expense spend budget harvest yield profit turnover"
_AMOUNTS_AS_NOUNS = frozenset(_AMOUNT_NOUNS.split())
_COMPARISONS = {
    "more than": ">", "greater than": ">", "higher than": ">", "larger than": ">",
    "above": ">", "over": ">",
    "less than": "<", "fewer than": "<", "lower than": "<", "smaller than": "<",
    "below": "<", "under": "<",
    "at least": ">=", "at most": "<=", "no more than": "<=",
}  # fmt: skip
_LACKS = ("without", "no", "missing", "empty", "lack", "lacks")
_BETWEEN_LACK_AND_COLUMN = frozenset(["the", "a", "an", "any", "of", "for", "in", "value", "entry"])
_DISTINCT = ("different", "distinct", "unique")


@dataclass
class TableReading:
    """A question read against one table."""

    table: DataTable
    words: QuestionWords
    asked: list[Column] = field(default_factory=list)
    by: list[Column] = field(default_factory=list)
    subject: Column | None = None
    grain: str = ""
    asks_for_time: bool = False  # which month, what year
    clauses: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    named: list[Column] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    means_rows: bool = False

    @property
    def figures(self) -> list[Column]:
        """The requested columns of figures."""
        return [column for column in self.asked if column.kind == "number" and not column.is_key]

    @property
    def other_columns(self) -> list[Column]:
        """The other requested columns."""
        return [column for column in self.asked if column.kind != "number" or column.is_key]

    def restrict(self, column: Column, values: list[str]) -> None:
        """Adds the condition that a column has one of these values."""
        self.clauses.append(f"{column.sql} IN ({', '.join(map(literal, values))})")
        self.said.append(f"{column.title} {' and '.join(sorted(values))}")
        self.named.append(column)

    def count_rows(self) -> None:
        """Makes rows the subject: a verb such as `ordered` and the key of orders mean them."""
        self.means_rows = True
        self.asked = [column for column in self.asked if not column.is_key]
        for noun in self.table.words:
            for at in self.words.places_of_form(noun):
                self.words.explain(at, of_table=True)


def read_question(table: DataTable, question: str) -> TableReading:
    """Returns the reading of a question, before its kind is determined."""
    reading = TableReading(table, QuestionWords(question))
    _take_values(reading)
    _take_conditions(reading)
    _take_periods(reading)
    _take_groups(reading)
    _take_columns(reading)
    _take_nouns(reading)
    _take_names(reading)
    return reading


def _take_values(reading: TableReading) -> None:
    """Explains the values of text columns in the question, the longest names first."""
    listed = [
        (column, value) for column in reading.table.of_kind("text") for value in column.values
    ]
    found: dict[str, list[str]] = {}
    for column, value in sorted(listed, key=lambda one: -len(one[1])):
        wanted = stems(value)
        places = reading.words.places(wanted)
        if len(value) <= _SHORT_CHARS:
            places = [
                at for at in places if " ".join(reading.words.texts[at : at + len(wanted)]) == value
            ]
        if value.lower() in _LACKS:  # "no stock" names no value "no" of another column
            places = [
                at
                for at in places
                if stems(column.title)[-1:] == reading.words.stems[max(at - 1, 0) : at]
            ]
        for at in places:
            reading.words.explain(at, len(wanted), of_table=True)
        if places:
            found.setdefault(column.sql, []).append(value)
    for column in reading.table.columns:
        if values := found.get(column.sql):
            reading.restrict(column, values)


def _take_conditions(reading: TableReading) -> None:
    """Explains `salary above 5000`, `order 1017` and `without a price`."""
    for column in reading.table.columns:
        for at, size in _named_places(reading, column):
            if reading.words.open[at]:
                _take_condition(reading, column, at, size)


def _take_condition(reading: TableReading, column: Column, at: int, size: int) -> None:
    words = reading.words
    lack = _lack_before(words, at)
    if lack is not None:
        words.explain(lack)
        words.explain(at, size, of_table=True)
        reading.clauses.append(f"{column.sql} IS NULL")
        reading.said.append(f"without {column.title}")
        return
    if column.kind != "number":
        return
    after = at + size + ("of" in words.texts[at + size : at + size + 1])
    if column.is_key and (number := words.number_at(after)):
        words.explain(at, after + 1 - at, of_table=True)
        reading.clauses.append(f"{column.sql} = {number}")
        reading.said.append(f"{column.title} {number}")
        reading.named.append(column)
        return
    for said, sign in _COMPARISONS.items():
        start = at - 1 - len(said.split())
        if (
            start >= 0
            and " ".join(words.texts[start : at - 1]).lower() == said
            and (number := words.number_at(at - 1))
        ):
            words.explain(start, at + size - start, of_table=True)
            reading.clauses.append(f"{column.sql} {sign} {number}")
            reading.said.append(f"{said} {number} {column.title}")
            return
        place = after + len(said.split())
        if " ".join(words.texts[after:place]).lower() == said and (
            number := words.number_at(place)
        ):
            words.explain(at, place + 1 - at, of_table=True)
            reading.clauses.append(f"{column.sql} {sign} {number}")
            reading.said.append(f"{column.title} {said} {number}")
            return


def _lack_before(words: QuestionWords, at: int) -> int | None:
    """Returns the place of `without`, `no` or `no value for` before a column's name.

    None without one.
    """
    while at > 0 and words.stems[at - 1] in _BETWEEN_LACK_AND_COLUMN:
        at -= 1
    return at - 1 if at > 0 and words.texts[at - 1].lower() in _LACKS else None


def _take_periods(reading: TableReading) -> None:
    time = reading.table.time
    if time is not None:
        reading.periods = periods_in(reading.words, time)


def _take_groups(reading: TableReading) -> None:
    """Explains `by region`, `per month` and `for each product`."""
    time = reading.table.time
    for grain in _GRAINS:
        if time is None or (time.is_years and grain != "year"):
            continue
        places = reading.words.places([grain])
        if grouped := [at for at in places if reading.words.word_before(at) in _BY]:
            _take_with_by(reading.words, grouped[0], 1)
            reading.grain = grain
            continue
        asks_which = places and reading.words.word_before(places[0]) in _WHICH
        if asks_which and time.main_words != [grain]:
            reading.words.explain(places[0], of_table=True)
            reading.grain, reading.asks_for_time = grain, True
    for column in reading.table.columns:
        if column.kind == "number" or (column is time and reading.grain):
            continue
        for at, size in _named_places(reading, column):
            if reading.words.word_before(at) in _BY and column not in reading.by:
                _take_with_by(reading.words, at, size)
                reading.by.append(column)


def _take_with_by(words: QuestionWords, at: int, size: int) -> None:
    words.explain(at, size, of_table=True)
    by = max(place for place in range(at) if words.texts[place].lower() in _BY)
    words.explain(by)


def _take_columns(reading: TableReading) -> None:
    """Explains the columns in the question, those with the longest names first."""
    columns = sorted(reading.table.columns, key=lambda column: -len(column.words))
    for column in columns:
        for at, size in _named_places(reading, column):
            if not reading.words.open[at]:
                continue
            before = reading.words.word_before(at)
            reading.words.explain(at, size, of_table=True)
            if before in _WHICH and column.kind != "number" and reading.subject is None:
                reading.subject = column
            if column not in [*reading.asked, *reading.by, *reading.named]:
                reading.asked.append(column)
    units = {
        word for column in reading.asked for word in column.words if word not in column.main_words
    }
    for unit in units:
        for at in reading.words.places([unit]):
            reading.words.explain(at)


def _named_places(reading: TableReading, column: Column) -> list[tuple[int, int]]:
    """Returns the places at which a column is named, each with its number of words.

    A column is named by its whole name, by its main words, or by one of them.
    """
    words = reading.words
    for phrase in (column.words, column.main_words):
        if places := words.places(phrase):
            return [(at, len(phrase)) for at in places]
    if len(column.main_words) == 1:
        return [(at, 1) for at in words.places_of_form(column.main_words[0])]
    first, last = column.main_words[0], column.main_words[-1]
    for word, places in ((last, words.places_of_form(last)), (first, words.places([first]))):
        others = [
            other for other in reading.table.columns if other is not column and word in other.words
        ]
        if places and not others and word not in _GRAINS:
            return [(at, 1) for at in places]
    return []


def _take_nouns(reading: TableReading) -> None:
    """Explains words for the rows: `orders` for a table of orders, or `rows`."""
    words = reading.words
    for noun in (*_ROW_WORDS, *reading.table.words):
        for at in words.places([noun]):
            words.explain(at, of_table=noun not in _ROW_WORDS)
            # "the most sales" may mean their number or their amount; "how many sales" is the number
            reading.means_rows |= noun not in _AMOUNTS_AS_NOUNS or words.texts[at - 1 : at] == [
                "many"
            ]
    words.explain_any(*_DISTINCT)


def _take_names(reading: TableReading) -> None:
    """Explains names that may be values which the list of tables leaves out."""
    partly = [column for column in reading.table.of_kind("text") if not column.whole]
    spans = reading.words.unexplained_names()
    if not partly or not spans:
        return
    names: list[str] = []
    for at, size in spans:
        names.append(" ".join(reading.words.texts[at : at + size]))
        reading.words.explain(at, size, of_table=True)
    listed = ", ".join(literal(name.lower()) for name in names)
    alike = " OR ".join(f"lower({column.sql}) IN ({listed})" for column in partly)
    reading.clauses.append(f"({alike})")
    reading.said.append(" and ".join(names))
    reading.named += partly


def literal(value: str) -> str:
    """Returns a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"
