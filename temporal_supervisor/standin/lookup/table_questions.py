"""Questions that a table answers exactly: the query for each, and its result in words.

A question is answered if every word of it is explained: by a column, a value or a time in the
table, or by a word for the kind of question (how many, total, average, most, least, list, by,
change). Other questions need a model.
"""

from collections.abc import Callable
from dataclasses import dataclass

from temporal_supervisor.standin.lookup.periods import Period, condition_on, part_of
from temporal_supervisor.standin.lookup.question_words import QuestionWords
from temporal_supervisor.standin.lookup.table_columns import Column, DataTable
from temporal_supervisor.standin.lookup.table_reading import TableReading, literal, read_question

_DAY_CHARS = 10
_ROW_LIMIT = 50  # of a list: more are no answer to read
_GRAIN_CHARS = {"year": 4, "month": 7, "day": 10}
_RANKED = 10  # rows of a ranking, so that those that share the first place are seen
_AMOUNT_WORDS = "quantity qty count number unit piece amount stock"
_AMOUNTS = frozenset(_AMOUNT_WORDS.split())
_MOST = ("most", "highest", "largest", "biggest", "greatest", "maximum", "max", "top")
_LEAST = ("least", "fewest", "lowest", "smallest", "minimum", "min")
_FIRST = ("first", "earliest", "oldest")
_LAST = ("last", "latest", "newest", "most recent")
_OFTEN = ("most often", "most frequently")
_SELDOM = ("least often", "least frequently")
_DEAREST = ("most expensive", "dearest", "costliest")
_CHEAPEST = ("cheapest", "least expensive")
_PRICES = frozenset(["price", "cost", "fee"])
_PLACE_WORDS = "town city place office location region address site room shelf"
_PLACES = frozenset(_PLACE_WORDS.split())
_PEOPLE = frozenset(
    ["name", "employee", "person", "customer", "member", "staff", "mechanic", "contact", "owner"]
)
_YES = frozenset(["yes", "true", "y", "ja", "oui"])
_NO = frozenset(["no", "false", "n", "nein", "non"])
_COUNTS = ("how many", "number of", "count of", "count")
_SUMS = ("in total", "in all", "total", "sum", "altogether", "overall", "how much")
_AVERAGES = ("on average", "average", "mean")
_LISTS = ("list", "which", "what are", "name", "names of", "show", "give")
_CHANGE_WORDS = """
change changed develop developed grow grew growth rise rose fall fell
difference increase increased decrease decreased go went evolve evolved
"""
_CHANGES = tuple(_CHANGE_WORDS.split())
_LINK_WORDS = (
    "live, work, sold, sell, made, belong, stand, stored, located, come from, exist, found"
)
_LINKS = tuple(_LINK_WORDS.split(", "))


@dataclass(frozen=True)
class TableAnswer:
    """A way to answer a question: a query over a table, and the words for its result.

    `kind` is the form of the question, `what` names what is asked, `where` says of which rows,
    empty for all.
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
    if time is None or len(reading.figures) != 1 or reading.words.explain_any(*_CHANGES) is None:
        return None
    number = reading.figures[0]
    adds_up = reading.words.explain_any(*_SUMS) is not None or number.adds_up
    periods = reading.periods or [Period.of(time.low[:7]), Period.of(time.high[:7])]
    if len(periods) == 1:
        periods = [*periods, Period.of(time.high[: len(periods[0].low)])]
    if len(periods) != 2 or any(period.low != period.high for period in periods):
        return None
    if not adds_up and not reading.named:
        return None
    labels = [column.sql for column in [*reading.named, *reading.by] if column.kind == "text"]
    grain = part_of(time, len(periods[0].low))
    ends = ", ".join(_literal_of(time, period.low) for period in periods)
    clauses = [*reading.clauses, f"{grain} IN ({ends})"]
    groups = ", ".join([*dict.fromkeys(labels), grain])
    value = f"sum({number.sql})" if adds_up else f"avg({number.sql})"
    shown = ", ".join(
        [*dict.fromkeys(labels), f"{grain} AS period", f"{value} AS {_alias(number.title)}"]
    )
    alone = "" if adds_up else " HAVING count(*) = 1"
    rows = _source(reading, clauses)
    sql = f"SELECT {shown} FROM {rows} GROUP BY {groups}{alone} ORDER BY {groups}"
    return _complete_answer(reading, sql, "change", number.title, with_periods=False)


def _counted(reading: TableReading) -> TableAnswer | None:
    """The number of rows, of things of a kind, or of pieces."""
    words = reading.words
    if words.explain_any(*_COUNTS) is None:
        return None
    if _takes_extreme(words) is not None:
        return None
    words.explain_any(*_LINKS)
    if reading.figures:
        return _aggregated(reading, "sum") if reading.figures[0].adds_up else None
    if len(reading.other_columns) == 1:
        return _counted_of(reading, reading.other_columns[0])
    if reading.other_columns:
        return None
    amounts = [column for column in reading.table.of_kind("number") if set(column.words) & _AMOUNTS]
    if reading.named and not reading.means_rows and amounts:
        return _aggregated(reading, "sum", amounts[0]) if len(amounts) == 1 else None
    if not reading.means_rows and not reading.named and not reading.clauses:
        return None
    return _aggregated(reading, "count")


def _counted_of(reading: TableReading, column: Column) -> TableAnswer | None:
    """The number of things of a kind; of rows, if the column tells which of them count."""
    if not reading.means_rows:
        is_whole = column.main_words[-1] in reading.words.stems  # "bikes" are no types of bikes
        return _aggregated(reading, "distinct", column) if is_whole else None
    if yes := _values_for_yes(column):
        reading.restrict(column, yes)
    elif not column.is_key:
        return None
    return _aggregated(reading, "count")


def _values_for_yes(column: Column) -> list[str]:
    """Returns the values that mean yes; empty unless all values mean yes or no."""
    tells = column.whole and all(value.lower() in _YES | _NO for value in column.values)
    return [value for value in column.values if value.lower() in _YES] if tells else []


def _ranked(reading: TableReading) -> TableAnswer | None:
    """The thing with most or least of a figure or of rows, or the row with the extreme figure."""
    words = reading.words
    order = _takes_price_extreme(reading) or _takes_frequency(reading) or _takes_extreme(words)
    if order is None:
        return None
    is_total = words.explain_any(*_SUMS) is not None
    words.explain_any(*_LINKS)
    is_average = words.explain_any(*_AVERAGES) is not None
    if reading.grain:
        return _ranked_times(reading, order, is_average=is_average)
    grouped = reading.subject or next(iter([*reading.by, *reading.other_columns]), None)
    numbers = reading.figures
    if len(numbers) > 1 or (not numbers and not reading.means_rows):
        return None
    if not numbers:
        return (
            _ranking_of(reading, grouped, "count(*)", "rows", order)
            if grouped is not None
            else None
        )
    number = numbers[0]
    if is_average and grouped is not None:
        return _ranking_of(reading, grouped, f"avg({number.sql})", f"average {number.title}", order)
    if (is_total or number.adds_up) and grouped is not None:
        return _ranking_of(reading, grouped, f"sum({number.sql})", f"total {number.title}", order)
    clauses = [*_whole_clauses(reading), f"{number.sql} IS NOT NULL"]
    sql = f"SELECT * FROM {_source(reading, clauses)} ORDER BY {number.sql} {order} LIMIT {_RANKED}"
    return _complete_answer(reading, sql, f"extreme {order}", number.title)


def _ranking_of(
    reading: TableReading, by: Column, value: str, title: str, order: str
) -> TableAnswer | None:
    return _ranking(reading, by.sql, by.title, value, title, order)


def _ranked_times(reading: TableReading, order: str, *, is_average: bool) -> TableAnswer | None:
    """The year, quarter, month or day with most or least of a figure or of rows."""
    time, numbers = reading.table.time, reading.figures
    if time is None or not reading.asks_for_time or len(numbers) > 1:
        return None
    moment = part_of(time, _GRAIN_CHARS.get(reading.grain, 0))
    if not numbers:
        means_rows = reading.means_rows or any(column.is_key for column in reading.other_columns)
        return (
            _ranking(reading, moment, reading.grain, "count(*)", "rows", order)
            if means_rows
            else None
        )
    value = "avg" if is_average else "sum"
    word = "average" if is_average else "total"
    title = f"{word} {numbers[0].title}"
    return _ranking(reading, moment, reading.grain, f"{value}({numbers[0].sql})", title, order)


def _takes_price_extreme(reading: TableReading) -> str | None:
    """Explains a word such as cheapest, if exactly one column is a price.

    Returns the order of rows; None without one.
    """
    prices = [column for column in reading.table.of_kind("number") if set(column.words) & _PRICES]
    if len(prices) != 1 or reading.figures:
        return None
    for extremes, order in ((_DEAREST, "DESC"), (_CHEAPEST, "ASC")):
        if reading.words.explain_any(*extremes) is not None:
            # the thing itself is meant, not a sum over its rows: its key groups nothing
            reading.asked = [
                *prices,
                *(column for column in reading.other_columns if not column.is_key),
            ]
            return order
    return None


def _takes_frequency(reading: TableReading) -> str | None:
    """Explains `most often`, with a verb like the table's name.

    Returns the order of the counts; None without one.
    """
    for often, order in ((_OFTEN, "DESC"), (_SELDOM, "ASC")):
        if reading.words.explain_any(*often) is not None:
            reading.count_rows()
            return order
    return None


def _takes_extreme(words: QuestionWords) -> str | None:
    """Explains a word for most or least. Returns the order of rows; None without one."""
    for extremes, order in ((_MOST, "DESC"), (_LEAST, "ASC")):
        if words.explain_any(*extremes) is not None:
            return order
    return None


def _ranking(
    reading: TableReading, by: str, by_title: str, value: str, title: str, order: str
) -> TableAnswer | None:
    numbers = [f"{number.sql} IS NOT NULL" for number in reading.figures[:1]]
    clauses = [*_whole_clauses(reading), f"{by} IS NOT NULL", *numbers]
    head = f"SELECT {by}, {value} AS {_alias(title)} FROM {_source(reading, clauses)}"
    sql = f"{head} GROUP BY {by} ORDER BY 2 {order}, 1 LIMIT {_RANKED}"
    return _complete_answer(reading, sql, f"ranking {order}", f"{title} by {by_title}")


def _summed(reading: TableReading) -> TableAnswer | None:
    """A total or an average, of all rows or by groups."""
    words = reading.words
    for said, how in ((_AVERAGES, "avg"), (_SUMS, "sum")):
        if words.explain_any(*said) is not None and len(reading.figures) == 1:
            words.explain_any(*_LINKS)
            return _aggregated(reading, how)
    return None


def _grouped(reading: TableReading) -> TableAnswer | None:
    """A figure by groups, without a word for how: the sum of what adds up."""
    if not (reading.by or reading.grain) or len(reading.figures) != 1:
        return None
    if not reading.figures[0].adds_up:
        return None
    reading.words.explain_any(*_LISTS)
    return _aggregated(reading, "sum")


def _dated(reading: TableReading) -> TableAnswer | None:
    """The first or the last row: when it was."""
    words, time = reading.words, reading.table.time
    if time is None or words.explain_any("when") is None:
        return None
    for said, order in ((_FIRST, "ASC"), (_LAST, "DESC")):
        if words.explain_any(*said) is not None and not reading.figures:
            reading.count_rows()
            words.explain_any(*_LINKS)
            if reading.asked:
                return None
            rows = _source(reading, [*_whole_clauses(reading), f"{time.sql} IS NOT NULL"])
            sql = f"SELECT * FROM {rows} ORDER BY {time.sql} {order} LIMIT {_RANKED}"
            return _complete_answer(reading, sql, f"dated {order}", time.title)
    return None


def _listed(reading: TableReading) -> TableAnswer | None:
    """The things of a kind, or the rows that the question describes."""
    words = reading.words
    asks = words.explain_any(*_LISTS) is not None or reading.subject is not None
    asks |= _asks_for_people(reading)
    words.explain_any(*_LISTS)
    words.explain_any(*_LINKS)
    if not asks or reading.figures:
        return None
    if reading.means_rows:
        _take_conditions_on_rows(reading)
    clauses = _whole_clauses(reading)
    if len(reading.other_columns) == 1:
        column = reading.other_columns[0]
        rows = _source(reading, [*clauses, f"{column.sql} IS NOT NULL"])
        sql = f"SELECT DISTINCT {column.sql} FROM {rows} ORDER BY 1 LIMIT {_ROW_LIMIT}"
        return _complete_answer(reading, sql, "list", column.title)
    if reading.other_columns or not reading.means_rows:
        return None
    if not clauses and len(reading.table.columns) > _RANKED:
        return None
    sql = f"SELECT * FROM {_source(reading, clauses)} ORDER BY 1 LIMIT {_ROW_LIMIT}"
    return _complete_answer(reading, sql, "rows", reading.table.name)


def _take_conditions_on_rows(reading: TableReading) -> None:
    """Explains columns that select rows: of yes and no, or of times with a period."""
    for column in reading.other_columns:
        yes = _values_for_yes(column)
        if not yes and not (column is reading.table.time and reading.periods):
            continue
        reading.asked.remove(column)
        if yes:
            reading.restrict(column, yes)


def _asks_for_people(reading: TableReading) -> bool:
    """Adds the column of people's names to a question that begins with who.

    Returns False if there is none.
    """
    label = reading.table.label
    if reading.words.texts[:1] not in (["Who"], ["who"]) or label is None or reading.asked:
        return False
    if not set(label.words) & _PEOPLE or not reading.clauses:
        return False
    reading.asked.append(label)
    return True


def _listed_of_a_kind(reading: TableReading) -> TableAnswer | None:
    """The things of a kind that the question begins with, as in: which items, what town."""
    return _listed(reading) if reading.subject is not None else None


def _looked_up(reading: TableReading) -> TableAnswer | None:
    """The value of a named row."""
    asked = reading.asked or _place_asked(reading)
    if not asked or not (reading.named or reading.periods) or reading.by or reading.grain:
        return None
    numbers = reading.figures
    if len(numbers) == len(asked) == 1 and numbers[0].adds_up:
        return _aggregated(reading, "sum")
    is_a_day = [
        period.low
        for period in reading.periods
        if len(period.low) == _DAY_CHARS and period.low == period.high
    ]
    if not reading.named and not is_a_day:
        return None
    if any(column.kind == "time" for column in asked):
        reading.words.explain_any("when", "since when")
    shown = list(
        dict.fromkeys(column.sql for column in [*reading.named, *_time_of(reading), *asked])
    )
    rows = _source(reading, _whole_clauses(reading))
    sql = f"SELECT {', '.join(shown)} FROM {rows} ORDER BY 1 LIMIT {_ROW_LIMIT}"
    what = " and ".join(column.title for column in asked)
    return _complete_answer(reading, sql, "value", what)


def _place_asked(reading: TableReading) -> list[Column]:
    """Explains `where`, if exactly one column has places, and returns that column."""
    places = [column for column in reading.table.of_kind("text") if set(column.words) & _PLACES]
    if len(places) != 1 or not reading.named or reading.words.explain_any("where") is None:
        return []
    reading.words.explain_any(*_LINKS)
    return places


def _time_of(reading: TableReading) -> list[Column]:
    """Returns the column that tells rows of one name apart, if the table has several of each."""
    time = reading.table.time
    return [time] if reading.periods and time is not None else []


_FORMS: tuple[_Form, ...] = (
    _changed,
    _dated,
    _counted,
    _ranked,
    _summed,
    _grouped,
    _listed_of_a_kind,
    _looked_up,
    _listed,
)


def _aggregated(
    reading: TableReading, how: str, column: Column | None = None
) -> TableAnswer | None:
    """Returns a count, sum or average, with the numbers of rows and of rows with a value."""
    number = column or next(iter(reading.figures), None)
    groups = [each.sql for each in reading.by]
    shown = list(groups)
    time = reading.table.time
    if reading.grain and time is not None:
        grain = part_of(time, _GRAIN_CHARS.get(reading.grain, 0))
        groups.append(grain)
        shown.append(f"{grain} AS {reading.grain}")
    if how == "count" or number is None:
        shown.append("count(*) AS rows")
        title = f"rows of {reading.table.name}"
    elif how == "distinct":
        shown.append(f"count(DISTINCT {number.sql}) AS {_alias(f'number of {number.title}')}")
        title = number.title if number.is_key else f"different values of {number.title}"
    else:
        word = {"sum": "total", "avg": "average"}[how]
        value = f"{how}({number.sql})" if how == "sum" else f"round(avg({number.sql}), 4)"
        shown += [
            f"{value} AS {_alias(f'{word} {number.title}')}",
            f"count({number.sql}) AS with_value",
        ]
        shown.append("count(*) AS rows")
        title = number.title
    grouped = f" GROUP BY {', '.join(groups)} ORDER BY {', '.join(groups)}" if groups else ""
    rows = _source(reading, _whole_clauses(reading))
    sql = f"SELECT {', '.join(shown)} FROM {rows}{grouped}"
    by = [column.title for column in reading.by]
    if reading.grain:
        by.append(reading.grain)
    if by:
        title = f"{title} by {' and '.join(by)}"
    kind = f"{how} by" if groups else how
    return _complete_answer(reading, sql, kind, title)


def _whole_clauses(reading: TableReading) -> list[str]:
    time = reading.table.time
    dated = [condition_on(time, reading.periods)] if time is not None and reading.periods else []
    return [*reading.clauses, *dated]


def _complete_answer(
    reading: TableReading, sql: str, kind: str, what: str, *, with_periods: bool = True
) -> TableAnswer | None:
    """Returns the answer if every word of the question is explained; else None."""
    if reading.words.unexplained():
        return None
    times = dict.fromkeys(period.said for period in reading.periods) if with_periods else {}
    where = ", ".join([*reading.said, *([" to ".join(times)] if times else [])])
    return TableAnswer(sql, kind, what, where, reading.words.explained)


def _source(reading: TableReading, clauses: list[str]) -> str:
    """Returns the table with the conditions on its rows: `orders WHERE region = 'South'`."""
    conditions = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"{reading.table.name}{conditions}"


def _literal_of(time: Column, moment: str) -> str:
    return moment if time.is_years else literal(moment)


def _alias(title: str) -> str:
    return '"' + title.replace('"', "") + '"'
