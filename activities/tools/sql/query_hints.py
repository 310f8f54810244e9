"""Hints below the rows of a query, on facts that its author could not see.

A filter by a text that its column lacks gets a hint on close values, on values that contain the
text, or on the column that has it. A filter by a text that other values contain gets a hint on
those. Any other query without a row gets the number of rows that meet each of its conditions. A
query with LIMIT gets a hint on a row that ties with the last one and is left out; a sum, mean or
count over all rows gets a hint on a row that sums up the others. Names with blanks are quoted.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import ADDED_UP_TOTAL, TIED
from temporal_supervisor.supervision.base.text import closest, cut, quoted
from temporal_supervisor.supervision.contract.finding import FoundNothing, QueryFacts
from temporal_supervisor.supervision.grounding.rows.queries import Query, read_query

_NO_MATCH = "No row matches this."  # before the hints on a count or sum over no row
_TIED = f"{TIED} here: name it, or query again for all."
_HINTS = 5  # below one output
_COMPARED = 40  # texts with columns: each is held against up to 200 values, on the event loop
_SHOWN = 3  # values in one hint
_VALUE_BYTES = 80
_NOTHING = frozenset(["0", "0.0", "NULL", ""])  # cells of a count or sum over no row
_BEFORE_NUMBERS = ("t", "y", "c", "_", "t_", "y_", "year_", "col_")  # to make an identifier of them
_CHOOSES_ROWS = re.compile(r"\b(?:where|having|min)\b", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\b[^\W\d]\w*")
_LITERAL = re.compile(r"'((?:[^']|''){1,100})'")
_COMPARED_TEXT = re.compile(
    r"(?P<before>(?:=|<>|\b(?:like|ilike)\b)\s{0,20})\"(?P<text>[^\"\n]{1,200})\"(?!\s{0,20}\.)",
    re.IGNORECASE,
)
_OUTSIDE_QUOTES = re.compile(r"""('(?:[^']|'')*+'|"(?:[^"]|"")*+")""")


class Hints(NamedTuple):
    """Lines on the result of a query, and its facts."""

    lines: list[str]
    facts: QueryFacts


def hints_on(sql: str, result: JsonObject, tables: Sequence[JsonObject]) -> Hints:
    """Returns hints on the `result` of a query over some tables; no lines if nothing is odd."""
    nothing: FoundNothing | None = None if result["rows"] else "no_rows"
    is_cut: bool = result["more"]
    query = read_query(json.dumps({"sql": sql}))
    if query is None:
        return Hints([], QueryFacts(nothing=nothing, is_cut=is_cut))

    met = result.get("met")
    # A row that was found may have nothing but zeros.
    matched = _has_matched(result) or bool(met and met["together"])
    on_values = [*_on_filters(query, tables, _texts(sql), matched=matched)]
    on_conditions = [] if matched or on_values else _on_conditions(met)
    if nothing is None and on_conditions:
        nothing = "conditions_unmet"
    if nothing is None and on_values and not matched:
        nothing = "no_such_value"
        on_values.insert(0, _NO_MATCH)
    # A query that leaves rows out may leave out the total by any of its values.
    on_totals = [] if _CHOOSES_ROWS.search(sql) else [*_on_totals(query, tables)]
    on_ties = [_TIED] if result.get("tied") else []
    found = [*on_values, *on_conditions, *on_ties, *on_totals]
    facts = QueryFacts(
        nothing=nothing,
        is_cut=is_cut,
        is_tied=bool(on_ties),
        adds_total=bool(on_totals),
    )
    return Hints(list(dict.fromkeys(found))[:_HINTS], facts)


def with_quoted_names(sql: str, tables: Sequence[JsonObject]) -> str:
    """Returns a query with double quotes around the names of columns that need them.

    Examples: `SELECT Final Place FROM races` and `SELECT Final_Place FROM races` become
    `SELECT "Final Place" FROM races`.
    """
    by_letters = _written_names(tables)
    if not by_letters:
        return sql

    # The longest first, as it may begin with another one.
    any_odd = "|".join(map(re.escape, sorted(by_letters, key=len, reverse=True)))
    bare = re.compile(rf"(?<![\w\"'])(?:{any_odd})(?![\w\"'])", re.IGNORECASE)

    def in_quotes(name: str) -> str:
        meant = by_letters[name.casefold()].replace('"', '""')
        return f'"{meant}"'

    def mended_name(part: str) -> str:
        name = part.strip('"')
        return in_quotes(name) if part[0] == '"' and name.casefold() in by_letters else part

    # Every second part is a text or a name in quotes already.
    parts = _OUTSIDE_QUOTES.split(sql)
    parts[::2] = [bare.sub(lambda match: in_quotes(match[0]), part) for part in parts[::2]]
    parts[1::2] = [mended_name(part) for part in parts[1::2]]
    return "".join(parts)


def _written_names(tables: Sequence[JsonObject]) -> dict[str, str]:
    """Returns the names of columns that need quotes, by the forms in which models write them.

    Forms are the name itself, the name with underscores in place of other signs, and T2005 for a
    name that is a number such as 2005.
    """
    columns = columns_of(tables)
    plain = {column["name"].casefold() for column in columns}
    names = [column["name"] for column in columns if column["sql"].startswith('"')]
    by_letters = dict[str, str]()
    for name in names:
        if name.isidentifier():
            continue
        if name.isdigit():
            made_up = (f"{letter}{name}" for letter in _BEFORE_NUMBERS)
            by_letters |= {form: name for form in made_up if form not in plain}
            continue
        by_letters[name.casefold()] = name
        joined = re.sub(r"\W+", "_", name).strip("_").casefold()
        if joined.isidentifier() and joined not in plain:
            by_letters.setdefault(joined, name)
    return by_letters


def with_known_tables(sql: str, tables: Sequence[JsonObject]) -> str:
    """Returns a query with the real names of tables, where only underscores or capitals differ.

    Example: `T2024_sales` becomes `t_2024_sales`. Names of columns stay as they are.
    """
    names: list[str] = [table["name"] for table in tables]
    known = {_squeezed(name): name for name in names}
    columns = {column["name"].casefold() for table in tables for column in table.get("columns", [])}

    def as_known(match: re.Match[str]) -> str:
        if match[0].casefold() in columns:
            return match[0]
        return known.get(_squeezed(match[0]), match[0])

    parts = _OUTSIDE_QUOTES.split(sql)
    parts[::2] = [_IDENTIFIER.sub(as_known, part) for part in parts[::2]]
    return "".join(parts)


def _squeezed(name: str) -> str:
    return name.replace("_", "").casefold()


def with_plain_escapes(sql: str) -> str:
    """Returns a query without doubled escapes of line breaks and double quotes.

    Line breaks within texts are kept. No query has a quote after a backslash.
    """
    parts = _OUTSIDE_QUOTES.split(sql.replace('\\"', '"'))
    parts[::2] = [part.replace("\\n", "\n") for part in parts[::2]]
    return "".join(parts)


def with_quoted_texts(sql: str, tables: Sequence[JsonObject]) -> str:
    """Returns a query with single quotes around compared texts that are in double quotes.

    Example: `WHERE Name = "Radium"` becomes `WHERE Name = 'Radium'`, unless a column has that name.
    """
    names = {column["name"].casefold() for column in columns_of(tables)}

    def as_text(match: re.Match[str]) -> str:
        if match["text"].casefold() in names:
            return match[0]
        text = match["text"].replace("'", "''")
        return f"{match['before']}'{text}'"

    return _COMPARED_TEXT.sub(as_text, sql)


def _has_matched(result: JsonObject) -> bool:
    """True if a row was found; one row of zeros and nulls counts as none."""
    rows = result["rows"]
    if len(rows) != 1:
        return bool(rows)
    return not all(str(cell) in _NOTHING for cell in rows[0])


def _on_conditions(met: JsonObject | None) -> list[str]:
    """Returns a line on the conditions of a query that found nothing, by their columns.

    Example: `Of 543 rows, 0 meet the condition on "Price", 120 meet the one on Region.` Compared
    values are not repeated: they are the model's own, and not data.
    """
    if not met or not met["rows"]:
        return []

    parts: list[str] = []
    for number, (columns, rows) in enumerate(met["alone"], 1):
        named = " and ".join(columns) or f"number {number}"
        meet = "meet the one" if parts else "meet the condition"
        parts.append(f"{rows} {meet} {'on ' if columns else ''}{named}")
    none_fails = all(rows for _, rows in met["alone"])
    if none_fails:
        parts.append("and none meets them together")
    return [f"Of {met['rows']} rows, {', '.join(parts)}."]


def _texts(sql: str) -> dict[str, str]:
    """Returns the texts in a query, by their lower case without wildcards."""
    found = dict[str, str]()
    for text in _LITERAL.findall(sql):
        plain = text.replace("''", "'").strip("% ").lower()
        found[plain] = text
    return found


def _on_filters(
    query: Query,
    tables: Sequence[JsonObject],
    written: dict[str, str],
    *,
    matched: bool,
) -> Iterator[str]:
    """Yields hints on texts that were compared with columns; texts are shown as `written`."""
    columns = columns_of(tables)
    for column, value in islice(_compared(query, columns), _COMPARED):
        text = written.get(value, value)
        yield from _on_text(text, column, columns, matched=matched)


def _compared(query: Query, columns: Sequence[JsonObject]) -> Iterator[tuple[JsonObject, str]]:
    """Yields the columns in a query's conditions, with each text that they are compared with."""
    for name, compared in query.filters.items():
        if compared.ranged:
            continue
        for column in columns:
            if column["name"].lower() == name:
                yield from ((column, value) for value in compared.values if value)


def _on_text(
    text: str,
    column: JsonObject,
    columns: Sequence[JsonObject],
    *,
    matched: bool,
) -> Iterator[str]:
    name, values = column["sql"], column.get("values", [])
    if not values:
        return

    is_pattern = "%" in text
    plain = text.strip("% ").replace("''", "'")
    is_there = plain in values
    others = [value for value in values if value != plain and _contains(value, plain)]
    if is_there and others and not is_pattern:
        left_out = f"{quoted(plain)} in them, which this leaves out: {_list_text(others)}."
        yield f"{name} has other values with {left_out}"
    if is_there or matched:
        return

    meant = closest(plain, values)
    homes = [other for other in columns if plain in other.get("values", [])]
    if others and not is_pattern:
        yield f"{name} has no {quoted(plain)}, but {_list_text(others)}."
    elif meant is not None:
        yield f"{name} has no {quoted(plain)}, but {quoted(meant)}."
    elif homes:
        yield f"{name} has no {quoted(plain)}, but column {homes[0]['sql']} has it."


def _on_totals(query: Query, tables: Sequence[JsonObject]) -> Iterator[str]:
    """Yields the notes on rows that sum up others, if a query sums up whole columns."""
    if not query.aggregates:
        return
    for table in tables:
        yield from (f"Note: {note}" for note in table["notes"] if ADDED_UP_TOTAL in note)


def _contains(value: str, text: str) -> bool:
    """True if a value has a text as whole words, or begins with it: 1st has 1, 15th has not."""
    pattern = rf"(?<!\w){re.escape(text)}(?!\d)"
    return re.search(pattern, value, re.IGNORECASE) is not None


def _list_text(values: Sequence[str]) -> str:
    shown = ", ".join(quoted(cut(value, _VALUE_BYTES)) for value in values[:_SHOWN])
    more = len(values) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def columns_of(tables: Iterable[JsonObject]) -> list[JsonObject]:
    """Returns the columns of all tables."""
    return [column for table in tables for column in table["columns"]]
