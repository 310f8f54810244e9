"""SQL for a question, from nothing but the tables' own description of themselves."""

from dataclasses import dataclass, replace

from standin.question import Question, ask
from standin.sql_text import begins, name, one_of, where
from standin.sql_time import dated, during, ends, latest, year
from standin.table_match import Match, match_tables
from standin.tables import Column, Table
from supervision import limits

_FEW = 5  # so many values of a column are shown side by side; of more the mean is taken
_MEASURES = 4


@dataclass
class Query:
    """The parts of one SELECT."""

    match: Match
    question: Question
    entities: list[Column]
    measures: list[Column]
    mixed: bool  # rows of several things share a group: they are summed or averaged

    @property
    def table(self) -> Table:
        """The table it reads."""
        return self.match.table


def write_queries(tables: list[Table], focus: str, context: str = "") -> list[str]:
    """One SELECT per table that the question touches, the best table first; none when it touches none."""
    question, around = ask(focus), ask(f"{focus} {context}")
    if not question.period and not question.latest:
        question = replace(question, period=around.period)
    return [_write(_query(match, question)) for match in match_tables(tables, question, around)]


def simpler(tables: list[Table], focus: str, context: str, failed: str) -> str | None:
    """Another try for a query that failed or found nothing: values by their beginning, no period; then everything."""
    question, around = ask(focus), ask(f"{focus} {context}")
    for match in match_tables(tables, question, around):
        if f"FROM {name(match.table.name)}" not in failed:
            continue
        clauses = [begins(column, values) for column, values in match.values.items()]
        again = f"SELECT * FROM {name(match.table.name)}" + where(clauses) + f" LIMIT {limits.STANDIN_ROWS}"
        return again if again != failed else None
    return None


def _query(match: Match, question: Question) -> Query:
    table = match.table
    finest = max(table.texts, key=lambda column: column.distinct, default=None)
    filtered = [column for column in table.texts if column.name in match.values]
    named = [column for column in match.named if column not in filtered and column.distinct > 1]
    if finest is not None and finest not in filtered:
        whole = _whole(finest)
        if question.direction and not question.when:
            filtered = [*filtered, named[0] if named else finest]
        elif finest in named or (finest.distinct <= _FEW and not named):
            filtered = [*filtered, finest]
        elif whole and not named:
            match.values[finest.name] = [whole]
            filtered = [*filtered, finest]
        else:
            filtered = [*filtered, *named]
    fine = finest is None or any(column.distinct >= finest.distinct for column in filtered)
    return Query(match, question, filtered, (match.measures or table.measures)[:_MEASURES], mixed=not fine)


def _whole(column: Column) -> str | None:
    """The value that stands for all others, where a column has one: adding it to its parts would count twice."""
    return next((value for value in column.values if value.lower().split()[0] in ("total", "all", "overall")), None)


def _write(query: Query) -> str:
    question = query.question
    if question.direction and not _compares_values(query):
        if question.change and not question.latest and query.entities and query.table.time and not query.mixed:
            return _greatest_change(query)
        return _ranking(query)
    return _listing(query)


def _compares_values(query: Query) -> bool:
    """A superlative among named things needs all their rows; asked for a time it needs their extreme ones."""
    if query.question.when:
        return False
    finest = max((column.distinct for column in query.table.texts), default=0)
    return any(len(query.table.texts) and c.distinct >= finest and c.name in query.match.values for c in query.entities)


def _listing(query: Query) -> str:
    table, time = query.table, query.table.time
    clauses = _filters(query)
    period = query.question.period
    yearly = False
    if time is not None and query.question.latest and not period:
        clauses.append(latest(table, time, clauses))
    elif time is not None:
        span = during(table, time, period)
        if dated(time) and len(period.points) > 1 and all(point.isdigit() for point in period.points):
            yearly, clauses = True, [*clauses, *span]
        elif _expected(query) > limits.STANDIN_ROWS and not period.points:
            yearly = dated(time) and _expected(query, yearly=True) <= limits.STANDIN_ROWS
            clauses = [*clauses, *span] if yearly else [ends(table, time, [*clauses, *span])]
        else:
            clauses += span
    return _select(query, clauses, yearly)


def _select(query: Query, clauses: list[str], yearly: bool) -> str:
    time = query.table.time
    keys = [name(column.name) for column in query.entities]
    if time is not None:
        keys.append(year(time) if yearly else name(time.name))
    grouped = query.mixed or yearly
    shown = [f"{key} AS year" if yearly and key == keys[-1] else key for key in keys]
    columns = [*shown, *(_figure(query, column) if grouped else name(column.name) for column in query.measures)]
    places = ", ".join(str(at) for at in range(1, len(keys) + 1))
    group = f" GROUP BY {places}" if grouped and keys else ""
    order = f" ORDER BY {places}" if keys else ""
    source = f"FROM {name(query.table.name)}{where(clauses)}"
    return f"SELECT {', '.join(columns) or '*'} {source}{group}{order} LIMIT {limits.STANDIN_ROWS}"


def _ranking(query: Query) -> str:
    """The extreme rows: of the mentioned or latest time, unless the time itself is asked for."""
    table, time, question = query.table, query.table.time, query.question
    clauses = _filters(query)
    if time is not None and question.period:
        clauses += during(table, time, question.period)
    elif time is not None and not question.when:
        clauses.append(latest(table, time, clauses))
    keys = [name(column.name) for column in query.entities] + ([name(time.name)] if time else [])
    columns = [*keys, *(_figure(query, column) if query.mixed else name(column.name) for column in query.measures)]
    group = f" GROUP BY {', '.join(str(at) for at in range(1, len(keys) + 1))}" if query.mixed else ""
    order = f" ORDER BY {len(keys) + 1} {question.direction}" if query.measures else ""
    return f"SELECT {', '.join(columns)} FROM {name(table.name)}{where(clauses)}{group}{order} LIMIT {question.top}"


def _greatest_change(query: Query) -> str:
    """Who changed most from the first to the last time of the period."""
    table, question = query.table, query.question
    time, entity, measure = table.time, query.entities[-1], query.measures[0]
    assert time is not None
    source, key, when, figure = (name(one) for one in (table.name, entity.name, time.name, measure.name))
    period = during(table, time, question.period)
    clauses = [
        f"{side}.{when} = (SELECT {pick}({when}) FROM {source}{where(period)})"
        for side, pick in (("a", "MIN"), ("b", "MAX"))
    ]
    clauses += [f"a.{clause}" for clause in _filters(query)]
    change, share = f"ROUND(b.{figure} - a.{figure}, 4)", f"ROUND((b.{figure} - a.{figure}) * 100.0 / a.{figure}, 2)"
    direction = {"DESC": "ASC", "ASC": "DESC"}[question.direction] if question.down else question.direction
    first, last = name(f"first_{measure.name}"), name(f"last_{measure.name}")
    return (
        f"SELECT a.{key}, a.{figure} AS {first}, b.{figure} AS {last}, "
        f"{change} AS change, {share} AS change_percent FROM {source} AS a JOIN {source} AS b ON a.{key} = b.{key}"
        f"{where(clauses)} ORDER BY {'change_percent' if question.rate else 'change'} {direction} LIMIT {question.top}"
    )


def _filters(query: Query) -> list[str]:
    return [one_of(column, values) for column, values in query.match.values.items()]


def _expected(query: Query, yearly: bool = False) -> float:
    """About how many rows a listing of the period has, from the row count and the span that the table shows."""
    table, time = query.table, query.table.time
    if time is None or not time.low[:4].isdigit() or not time.high[:4].isdigit():
        return 0
    low, high, period = int(time.low[:4]), int(time.high[:4]), query.question.period
    years = max(1, min(high, int((period.last or str(high))[:4])) - max(low, int((period.first or str(low))[:4])) + 1)
    finest = max((column.distinct for column in table.texts), default=1) or 1
    things = 1
    for column in query.entities:
        things *= len(query.match.values.get(column.name, [])) or max(1, column.distinct)
    dense = min(1.0, table.rows / finest / (high - low + 1)) if yearly else table.rows / finest / (high - low + 1)
    return things * years * dense


def _figure(query: Query, column: Column) -> str:
    function, prefix = ("SUM", "total") if query.question.total and query.mixed else ("AVG", "average")
    return f"ROUND({function}({name(column.name)}), 2) AS {name(f'{prefix}_{column.name}')}"
