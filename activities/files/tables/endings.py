"""Rows that are no data: repeated headers, headings inside, notes below; and totals.

Totals would count twice in a sum.
"""

import re
from collections.abc import Sequence

import duckdb

from activities.files.tables.number_shapes import BLANKS, is_missing, number_shape, shape_of
from activities.files.values import ROW_PLACE_SQL, literal, quoted
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import ADDED_UP_TOTAL

Sums = Sequence[tuple[float | None, int]]
"""Of each column the sum of some rows, and how many of them have a number."""

_LAST_ROWS = 40  # among which notes are looked for
_NOTE_CHARS = 500  # of each
_HEADING_ROWS = 200  # without a first cell; with more the table is written so
_FIRST_CELLS = 200
_LONG = 40  # characters: a lone text of more words below a table is a note
_LABELS = 2  # columns of texts in which a row may be named a total
_SUMMED_COLUMNS = 40
_UNNAMED_ROWS = 10_000  # of a table whose last row is compared with the sums, whatever it is called
_PLAIN_PARTS = 3  # that a last row without the name of a total must sum up
_NEAR = 0.006  # of a sum: its parts may be rounded
_NAMED = 20  # totals at most
_NOTE = re.compile(
    r"(?:notes?|sources?|quellen?|anmerkung(?:en)?|hinweise?|fußnoten?|stand|remarks?|fuentes?|nota|footnotes?)"
    r"(?: ?[0-9]{1,2})?[:.]"
    r"|[*†‡§¹²³]|\[[0-9a-z]{1,2}\]|\([0-9a-z]{1,2}\) |[0-9a-z]\) |_{3}|-{3}",
    re.IGNORECASE,
)
_TOTAL = (
    r"^(grand |sub-?|overall )?(total|totals|sum|gesamt|gesamtsumme|summe|insgesamt|zusammen|somme|totaux|totale|suma)"
    r"([^\pL].*)?$"
)


def _filled_columns(cells: Sequence[str | None]) -> list[int]:
    return [at for at, cell in enumerate(cells) if cell and cell.strip(BLANKS)]


def _delete(database: duckdb.DuckDBPyConnection, names: list[str], where: str) -> int:
    """Deletes rows of `texts`. Returns their number.

    Their cells are emptied first, because the engine still converts those of deleted rows.
    """
    emptied = ", ".join(f"{quoted(name)} = NULL" for name in names)
    ids = [row for (row,) in database.execute(f"SELECT rowid FROM texts WHERE {where}").fetchall()]
    if ids:
        listed = ", ".join(map(str, ids))
        database.execute(f"UPDATE texts SET {emptied} WHERE rowid IN ({listed})")
        database.execute(f"DELETE FROM texts WHERE rowid IN ({listed})")
    return len(ids)


def drop_repeated_headers(database: duckdb.DuckDBPyConnection, names: list[str], headers: list[list[str]]) -> list[str]:
    """Deletes the rows of `texts` that repeat a row of the header.

    Returns a note if there were any. A different text in the first column is kept: it is a heading
    of the following rows.
    """
    count, headings = 0, 0
    for cells in headers:
        at = [column for column in _filled_columns(cells) if 0 < column < len(names)]
        same = " AND ".join(_repeats(names[column], cells[column]) for column in at)
        first = _repeats(names[0], cells[0]) if cells[0].strip(BLANKS) else f"{quoted(names[0])} IS NULL"
        if not same or (len(at) == 1 and not cells[0]):
            continue
        count += _delete(database, names, f"{same} AND {first}")
        if len(at) > 1:
            emptied = ", ".join(f"{quoted(names[column])} = NULL" for column in at)
            (changed,) = database.execute(f"UPDATE texts SET {emptied} WHERE {same}").fetchone() or (0,)
            headings += changed
    notes = [f"the header is repeated inside: {count:,} row{'s' * (count > 1)} left out"] if count else []
    if headings:
        notes.append(
            f"the header is repeated inside under other headings, which stand in the first column: {headings:,}"
        )
    return notes


def _repeats(name: str, cell: str) -> str:
    """Returns the SQL that is true for a cell with the text of the header's cell."""
    return f"trim({quoted(name)}, {literal(BLANKS)}) = {literal(cell.strip(BLANKS))}"


def take_notes_below(database: duckdb.DuckDBPyConnection, names: list[str]) -> list[str]:
    """Deletes the notes at the end of `texts`, such as sources and footnotes.

    Returns them in order.
    """
    if len(names) < 2:
        return []
    (last,) = database.execute("SELECT max(rowid) FROM texts").fetchone() or (None,)
    if last is None:
        return []
    rows = database.execute(
        f"SELECT rowid, * FROM texts WHERE rowid > {last - _LAST_ROWS} ORDER BY rowid DESC"
    ).fetchall()
    notes, ids = list[str](), list[int]()
    for row, *cells in rows[:-1]:
        text = _note_text(cells)
        if not text:
            break
        notes.insert(0, text[:_NOTE_CHARS])
        ids.append(row)
    if ids:
        _delete(database, names, f"rowid >= {min(ids)}")
    return notes


def _note_text(cells: Sequence[str | None]) -> str:
    """Returns the text of a row that is a note; empty for data."""
    filled = _filled_columns(cells)
    texts = [str(cells[at]).strip(BLANKS) for at in filled]
    if not filled or filled[0] != 0 or any(map(_is_number, texts[1:])):
        return ""
    marked = _NOTE.match(texts[0])
    if len(filled) == 1 and (marked or (len(texts[0]) > _LONG and texts[0].count(" ") > 4)):
        return texts[0]
    return " ".join(texts) if marked and texts[0][-1:] not in "*" and len(filled) < len(cells) else ""


def _is_number(text: str) -> bool:
    shape, zero = shape_of(text)
    return number_shape(shape, zero=zero) is not None


def move_headings(database: duckdb.DuckDBPyConnection, names: list[str]) -> list[str]:
    """Moves headings that are written across the table to the first column. Returns a note on them.

    They are texts alone in their row, in a column of numbers.
    """
    if len(names) < 3:
        return []
    first = quoted(names[0])
    rows = database.execute(f"SELECT rowid, * FROM texts WHERE {first} IS NULL LIMIT {_HEADING_ROWS}").fetchall()
    if len(rows) == _HEADING_ROWS:
        return []
    headings = list[str]()
    numeric = dict[int, bool]()
    for row, *cells in rows:
        filled = _filled_columns(cells)
        if len(filled) != 1 or not _is_heading(str(cells[filled[0]])):
            continue
        at = filled[0]
        if at not in numeric:
            numeric[at] = _is_numeric(database, names[at])
        if numeric[at]:
            column = quoted(names[at])
            database.execute(f"UPDATE texts SET {first} = {column}, {column} = NULL WHERE rowid = {row}")
            headings.append(str(cells[at]).strip(BLANKS))
    if not headings:
        return []
    return [f"headings inside stand in the first column: {', '.join(map(repr, headings[:3]))[:_NOTE_CHARS]}"]


def _is_heading(text: str) -> bool:
    return any(char.isalpha() for char in text) and not is_missing(text) and not _is_number(text)


def _is_numeric(database: duckdb.DuckDBPyConnection, name: str) -> bool:
    """True if most of the first cells of a column are numbers."""
    column = quoted(name)
    texts = database.execute(f"SELECT {column} FROM texts WHERE {column} IS NOT NULL LIMIT {_FIRST_CELLS}").fetchall()
    cells = [text for (text,) in texts if not is_missing(text)]
    return 2 * sum(map(_is_number, cells)) > len(cells)


def totals(database: duckdb.DuckDBPyConnection, columns: list[JsonObject]) -> list[str]:
    """Returns notes on the rows of the view `typed` that sum up others; sums must exclude them."""
    labels = [column["name"] for column in columns if column["type"] == "VARCHAR"][:_LABELS]
    numbers = [column["name"] for column in columns if column["type"] in ("BIGINT", "DOUBLE")][:_SUMMED_COLUMNS]
    if not labels or not numbers:
        return []
    named = " OR ".join(f"regexp_matches(lower(trim({quoted(label)})), {literal(_TOTAL)})" for label in labels)
    label = f"coalesce({', '.join(quoted(name) for name in labels)}, '')"
    picked = ", ".join(quoted(name) for name in numbers)
    selected = f"SELECT {ROW_PLACE_SQL}, {label}, {picked} FROM typed"
    found = database.execute(f"{selected} WHERE {named} ORDER BY 1 LIMIT {_NAMED + 1}").fetchall()
    (count,) = database.execute("SELECT count(*) FROM typed").fetchone() or (0,)
    if count <= _UNNAMED_ROWS and not any(row[0] == count for row in found):
        found += database.execute(f"{selected} WHERE {ROW_PLACE_SQL} = {count}").fetchall()
        unnamed = count
    else:
        unnamed = 0

    notes, others, before = list[str](), list[str](), 0
    for row, text, *values in found[:_NAMED]:
        place = f"row {row} {text[:_LONG]!r}"
        sums = _sums(database, numbers, 0, row), _sums(database, numbers, before, row)
        is_sum = _is_plain_sum if row == unnamed else _is_sum
        is_total = any(is_sum(values, sums_above) for sums_above in sums)
        if is_total and row > 2:
            notes.append(f"{place} {ADDED_UP_TOTAL}: leave it out where you add up")
        elif row != unnamed:
            others.append(place)
        before = row
    if others:
        notes.append(
            f"{', '.join(others[:3])}{' and others' * (len(others) > 3)}: named a total, which may sum up other rows"
        )
    return notes


def _sums(
    database: duckdb.DuckDBPyConnection,
    numbers: list[str],
    after: int,
    before: int,
) -> Sums:
    """Returns sum and count of each column of numbers in the rows between two places."""
    asked = ", ".join(f"sum({quoted(name)}), count({quoted(name)})" for name in numbers)
    between = f"SELECT {asked} FROM typed WHERE {ROW_PLACE_SQL} > {after} AND {ROW_PLACE_SQL} < {before}"
    found = database.execute(between).fetchone() or ()
    return tuple(zip(found[::2], found[1::2], strict=True))


def _is_sum(values: Sequence[float | None], sums: Sums) -> bool:
    """True if a row has the sums of others in most of its columns that have any."""
    near = _are_near(values, sums, least=2)
    return bool(near) and 2 * sum(near) > len(near)


def _is_plain_sum(values: Sequence[float | None], sums: Sums) -> bool:
    """True if a row that is not named a total has the sums of several others, in all its columns.

    Of two numbers a third is often the sum by chance.
    """
    near = _are_near(values, sums, least=_PLAIN_PARTS)
    return bool(near) and all(near) and len(near) == sum(map(bool, values))


def _are_near(values: Sequence[float | None], sums: Sums, *, least: int) -> list[bool]:
    """Returns True for each value that is about the sum of at least `least` others.

    Values without such a sum are left out.
    """
    pairs = [
        (float(value), float(total))
        for value, (total, count) in zip(values, sums, strict=True)
        if value and total is not None and count >= least
    ]
    return [abs(value - total) <= _NEAR * abs(value) for value, total in pairs]
