"""Questions that a table answers exactly: the query for each, and its result in words.

A question is taken if every word of it is explained: by a column, a value or a time of the table, or by a word for what
is asked (how many, total, average, most, least, list, by, change). Of any other question the answer is None: it takes
a model.
"""

from collections.abc import Callable
from dataclasses import dataclass

from temporal_supervisor.standin.lookup.periods import Period, condition_on, part_of
from temporal_supervisor.standin.lookup.question_words import QuestionWords
from temporal_supervisor.standin.lookup.table_columns import Column, DataTable
from temporal_supervisor.standin.lookup.table_reading import TableReading, literal, read_question

_ROW_LIMIT = 50  # of a list: more are no answer to read
_RANKED = 10  # rows of a ranking, so that those that share the first place are seen
_AMOUNT_WORDS = "quantity qty count number unit piece amount stock"
_AMOUNTS = frozenset(_AMOUNT_WORDS.split())
_MOST = ("most", "highest", "largest", "biggest", "greatest", "maximum", "max", "top")
_LEAST = ("least", "fewest", "lowest", "smallest", "minimum", "min")
_COUNTS = ("how many", "number of", "count of", "count")
_SUMS = ("in total", "in all", "total", "sum", "altogether", "overall", "how much")
_AVERAGES = ("on average", "average", "mean")
_LISTS = ("list", "which", "what are", "name", "names of", "show", "give")
_CHANGES = (
    *("change", "changed", "develop", "developed", "grow", "grew", "growth", "rise", "rose", "fall", "fell"),
    *("difference", "increase", "increased", "decrease", "decreased", "go", "went", "evolve", "evolved"),
)
_LINKS = ("live", "work", "sold", "sell", "made", "belong", "stand", "stored", "located", "come from", "exist", "found")


@dataclass(frozen=True)
class TableAnswer:
    """A way to answer a question: a query over a table, and the words for its result.

    `kind` is the form of the question, `what` names what is asked, `where` says of which rows, empty for all.
    """

    sql: str
    kind: str
    what: str
    where: str
    explained: int


def table_answer(tables: list[DataTable], question: str) -> TableAnswer | None:
    """Returns the answer of the tables to a question.

    None if they have none, or if two of them answer it equally well.
    """
    answers = [_answer_of(table, question) for table in tables]
    made = [answer for answer in answers if answer is not None]
    best = max((answer.explained for answer in made), default=0)
    fitting = [answer for answer in made if answer.explained == best]
    return fitting[0] if len(fitting) == 1 else None


def _answer_of(table: DataTable, question: str) -> TableAnswer | None:
    reading = read_question(table, question)
    for form in _FORMS:
        words = reading.words
        kept, explained = list(words.open), words.explained
        made = form(reading)
        if made is not None:
            return made
        words.open, words.explained = kept, explained
    return None


_Form = Callable[[TableReading], TableAnswer | None]


def _changed(reading: TableReading) -> TableAnswer | None:
    """The change of a figure between two periods, else between the first and the last one."""
    time = reading.table.time
    if time is None or len(reading.numbers) != 1 or reading.words.take_any(*_CHANGES) is None:
        return None
    number = reading.numbers[0]
    periods = reading.periods or [Period.of(time.low[:7]), Period.of(time.high[:7])]
    if len(periods) == 1:
        periods = [*periods, Period.of(time.high[: len(periods[0].low)])]
    if len(periods) != 2 or any(period.low != period.high for period in periods):
        return None
    if not number.adds_up and not reading.named:
        return None
    labels = [column.sql for column in [*reading.named, *reading.by] if column.kind == "text"]
    grain = part_of(time, len(periods[0].low))
    ends = ", ".join(_literal_of(time, period.low) for period in periods)
    clauses = [*reading.clauses, f"{grain} IN ({ends})"]
    groups = ", ".join([*dict.fromkeys(labels), grain])
    value = f"sum({number.sql})" if number.adds_up else f"avg({number.sql})"
    shown = ", ".join([*dict.fromkeys(labels), f"{grain} AS period", f"{value} AS {_alias(number.title)}"])
    alone = "" if number.adds_up else " HAVING count(*) = 1"
    sql = f"SELECT {shown} FROM {reading.table.name}{_where(clauses)} GROUP BY {groups}{alone} ORDER BY {groups}"
    return _made(reading, sql, "change", number.title, with_periods=False)


def _counted(reading: TableReading) -> TableAnswer | None:
    """The number of rows, of things of a kind, or of pieces."""
    words = reading.words
    if words.take_any(*_COUNTS) is None:
        return None
    if _takes_extreme(words) is not None:
        return None
    words.take_any(*_LINKS)
    if reading.numbers:
        return _aggregated(reading, "sum") if reading.numbers[0].adds_up else None
    if reading.others:
        column = reading.others[0]
        return _aggregated(reading, "distinct", column)
    amounts = [column for column in reading.table.of_kind("number") if set(column.words) & _AMOUNTS]
    if reading.named and not reading.means_rows and amounts:
        return _aggregated(reading, "sum", amounts[0]) if len(amounts) == 1 else None
    if not reading.means_rows and not reading.named and not reading.clauses:
        return None
    return _aggregated(reading, "count")


def _ranked(reading: TableReading) -> TableAnswer | None:
    """The thing with most or least of a figure or of rows, or the row with the extreme figure."""
    words = reading.words
    extreme = _takes_extreme(words)
    if extreme is None:
        return None
    order = extreme
    words.take_any(*_SUMS, *_LINKS)
    is_average = words.take_any(*_AVERAGES) is not None
    grouped = reading.subject or next(iter([*reading.by, *reading.others]), None)
    numbers = reading.numbers
    if len(numbers) > 1 or (not numbers and not reading.means_rows):
        return None
    if not numbers:
        return _ranking(reading, grouped, "count(*)", "rows", order) if grouped is not None else None
    number = numbers[0]
    if is_average and grouped is not None:
        return _ranking(reading, grouped, f"avg({number.sql})", f"average {number.title}", order)
    if number.adds_up and grouped is not None:
        return _ranking(reading, grouped, f"sum({number.sql})", f"total {number.title}", order)
    if reading.grain:
        return None
    clauses = [*_whole_clauses(reading), f"{number.sql} IS NOT NULL"]
    sql = f"SELECT * FROM {reading.table.name}{_where(clauses)} ORDER BY {number.sql} {order} LIMIT {_RANKED}"
    return _made(reading, sql, f"extreme {order}", number.title)


def _takes_extreme(words: QuestionWords) -> str | None:
    """Takes a word for most or least. Returns the order of rows that begins there; None without one."""
    for extremes, order in ((_MOST, "DESC"), (_LEAST, "ASC")):
        if words.take_any(*extremes) is not None:
            return order
    return None


def _ranking(reading: TableReading, by: Column, value: str, title: str, order: str) -> TableAnswer | None:
    numbers = [f"{number.sql} IS NOT NULL" for number in reading.numbers[:1]]
    clauses = [*_whole_clauses(reading), f"{by.sql} IS NOT NULL", *numbers]
    head = f"SELECT {by.sql}, {value} AS {_alias(title)} FROM {reading.table.name}{_where(clauses)}"
    sql = f"{head} GROUP BY {by.sql} ORDER BY 2 {order}, 1 LIMIT {_RANKED}"
    return _made(reading, sql, f"ranking {order}", f"{title} by {by.title}")


def _summed(reading: TableReading) -> TableAnswer | None:
    """A total or an average, of all rows or by groups."""
    words = reading.words
    for said, how in ((_AVERAGES, "avg"), (_SUMS, "sum")):
        if words.take_any(*said) is not None and len(reading.numbers) == 1:
            words.take_any(*_LINKS)
            return _aggregated(reading, how)
    return None


def _grouped(reading: TableReading) -> TableAnswer | None:
    """A figure by groups, without a word for how: the sum of what adds up."""
    if not (reading.by or reading.grain) or len(reading.numbers) != 1 or not reading.numbers[0].adds_up:
        return None
    reading.words.take_any(*_LISTS)
    return _aggregated(reading, "sum")


def _listed(reading: TableReading) -> TableAnswer | None:
    """The things of a kind, or the rows that the question describes."""
    words = reading.words
    asks = words.take_any(*_LISTS) is not None or reading.subject is not None
    words.take_any(*_LISTS)
    words.take_any(*_LINKS)
    if not asks or reading.numbers:
        return None
    clauses = _whole_clauses(reading)
    if len(reading.others) == 1:
        column = reading.others[0]
        where = _where([*clauses, f"{column.sql} IS NOT NULL"])
        sql = f"SELECT DISTINCT {column.sql} FROM {reading.table.name}{where} ORDER BY 1 LIMIT {_ROW_LIMIT}"
        return _made(reading, sql, "list", column.title)
    if not reading.others and reading.means_rows and (clauses or len(reading.table.columns) <= _RANKED):
        sql = f"SELECT * FROM {reading.table.name}{_where(clauses)} ORDER BY 1 LIMIT {_ROW_LIMIT}"
        return _made(reading, sql, "rows", reading.table.name)
    return None


def _listed_of_a_kind(reading: TableReading) -> TableAnswer | None:
    """The things of a kind that the question begins with, as in: which items, what town."""
    return _listed(reading) if reading.subject is not None else None


def _looked_up(reading: TableReading) -> TableAnswer | None:
    """The value of a named row."""
    asked = reading.asked
    if not asked or not (reading.named or reading.periods) or reading.by or reading.grain:
        return None
    numbers = reading.numbers
    if len(numbers) == len(asked) == 1 and numbers[0].adds_up:
        return _aggregated(reading, "sum")
    if not reading.named:
        return None
    shown = list(dict.fromkeys(column.sql for column in [*reading.named, *_time_of(reading), *asked]))
    where = _where(_whole_clauses(reading))
    sql = f"SELECT {', '.join(shown)} FROM {reading.table.name}{where} ORDER BY 1 LIMIT {_ROW_LIMIT}"
    return _made(reading, sql, "value", " and ".join(column.title for column in asked))


def _time_of(reading: TableReading) -> list[Column]:
    """Returns the column that tells rows of one name apart, if the table has several of each."""
    time = reading.table.time
    return [time] if reading.periods and time is not None else []


_FORMS: tuple[_Form, ...] = (_changed, _counted, _ranked, _summed, _grouped, _listed_of_a_kind, _looked_up, _listed)


def _aggregated(reading: TableReading, how: str, column: Column | None = None) -> TableAnswer | None:
    """Returns a count, sum or average, beside how many rows it is of and how many of them have a value."""
    number = column or next(iter(reading.numbers), None)
    groups = [each.sql for each in reading.by]
    shown = list(groups)
    time = reading.table.time
    if reading.grain and time is not None:
        grain = part_of(time, {"year": 4, "month": 7, "day": 10}.get(reading.grain, 0))
        groups.append(grain)
        shown.append(f"{grain} AS {reading.grain}")
    if how == "count" or number is None:
        shown.append("count(*) AS rows")
        title = f"rows of {reading.table.name}"
    elif how == "distinct":
        shown.append(f"count(DISTINCT {number.sql}) AS {_alias(f'number of {number.title}')}")
        title = number.title
    else:
        word = {"sum": "total", "avg": "average"}[how]
        value = f"{how}({number.sql})" if how == "sum" else f"round(avg({number.sql}), 4)"
        shown += [f"{value} AS {_alias(f'{word} {number.title}')}", f"count({number.sql}) AS with_value"]
        shown.append("count(*) AS rows")
        title = number.title
    grouped = f" GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if groups else ""
    sql = f"SELECT {', '.join(shown)} FROM {reading.table.name}{_where(_whole_clauses(reading))}{grouped}"
    by = [*(each.title for each in reading.by), *([reading.grain] if reading.grain else [])]
    kind = f"{how} by" if groups else how
    return _made(reading, sql, kind, f"{title} by {' and '.join(by)}" if by else title)


def _whole_clauses(reading: TableReading) -> list[str]:
    time = reading.table.time
    dated = [condition_on(time, reading.periods)] if time is not None and reading.periods else []
    return [*reading.clauses, *dated]


def _made(reading: TableReading, sql: str, kind: str, what: str, *, with_periods: bool = True) -> TableAnswer | None:
    """Returns the answer if every word of the question is explained by now."""
    if reading.words.left():
        return None
    times = dict.fromkeys(period.said for period in reading.periods) if with_periods else {}
    where = ", ".join([*reading.said, *([" to ".join(times)] if times else [])])
    return TableAnswer(sql, kind, what, where, reading.words.explained)


def _where(clauses: list[str]) -> str:
    return f" WHERE {' AND '.join(clauses)}" if clauses else ""


def _literal_of(time: Column, moment: str) -> str:
    return moment if time.is_years else literal(moment)


def _alias(title: str) -> str:
    return '"' + title.replace('"', "") + '"'
