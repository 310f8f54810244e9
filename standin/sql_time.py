"""Time in SQL: a period as conditions on a table's column of years, dates or dated texts."""

from standin.question import Period
from standin.sql_text import name, text, where
from standin.tables import Column, Table


def during(table: Table, time: Column, period: Period) -> list[str]:
    """The period as conditions; a year without data becomes the last one before it."""
    column = name(time.name)
    if period.points and not dated(time):
        source = name(table.name)
        near = [f"(SELECT MAX({column}) FROM {source} WHERE {column} <= {point[:4]})" for point in period.points]
        return [f"{column} = {near[0]}" if len(near) == 1 else f"{column} IN ({', '.join(near)})"]
    if period.points:
        spans = [f"({_from(time, point)} AND {_to(time, point)})" for point in period.points]
        return [spans[0][1:-1] if len(spans) == 1 else f"({' OR '.join(spans)})"]
    return [
        clause
        for clause in (period.first and _from(time, period.first), period.last and _to(time, period.last))
        if clause
    ]


def _from(time: Column, point: str) -> str:
    if not dated(time):
        return f"{name(time.name)} >= {point[:4]}"
    return f"{name(time.name)} >= {_day(time, point if '-' in point else point + '-01')}"


def _to(time: Column, point: str) -> str:
    if not dated(time):
        return f"{name(time.name)} <= {point[:4]}"
    year, _, month = point.partition("-")
    after = f"{int(year) + 1}-01" if month in ("", "12") else f"{year}-{int(month) + 1:02d}"
    return f"{name(time.name)} < {_day(time, after)}"


def _day(time: Column, month: str) -> str:
    """A month's first day as a literal of the column's type; text columns may hold months or days."""
    return text(month) if _is_text(time) else f"DATE '{month}-01'"


def ends(table: Table, time: Column, clauses: list[str]) -> str:
    """The conditions narrowed to the first and the last time that fulfil them."""
    column, source = name(time.name), f"FROM {name(table.name)}{where(clauses)}"
    both = f"{column} IN ((SELECT MIN({column}) {source}), (SELECT MAX({column}) {source}))"
    return " AND ".join([*clauses, both])


def year(time: Column) -> str:
    """The year of a date, or of a text that begins with it."""
    return f"SUBSTR({name(time.name)}, 1, 4)" if _is_text(time) else f"EXTRACT(YEAR FROM {name(time.name)})"


def dated(time: Column) -> bool:
    """Whether its values are dates and not the numbers of years."""
    return not any(word in time.type.upper() for word in ("INT", "DOUBLE", "FLOAT", "DECIMAL", "NUMERIC", "REAL"))


def latest(table: Table, time: Column, clauses: list[str]) -> str:
    """The condition that a row is of the last time there is."""
    return f"{name(time.name)} = (SELECT MAX({name(time.name)}) FROM {name(table.name)}{where(clauses)})"


def _is_text(time: Column) -> bool:
    return any(word in time.type.upper() for word in ("CHAR", "TEXT", "STRING"))
