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
    r"(?:notes?|sources?|quellen?|anmerkung(?:en)?|hinweise?|fußnoten?|stand"
    r"|remarks?|fuentes?|nota|footnotes?)"
    r"(?: ?[0-9]{1,2})?[:.]"
    r"|[*†‡§¹²³]|\[[0-9a-z]{1,2}\]|\([0-9a-z]{1,2}\) |[0-9a-z]\) |_{3}|-{3}",
    re.IGNORECASE,
)
_TOTAL = (
    r"^(grand |sub-?|overall )?"
    r"(total|totals|sum|gesamt|gesamtsumme|summe|insgesamt|zusammen|somme|totaux|totale|suma)"
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


def drop_repeated_headers(
    database: duckdb.DuckDBPyConnection,
    names: list[str],
    headers: list[list[str]],
) -> list[str]:
    """Deletes the rows of `texts` that repeat a row of the header.

    Returns a note if there were any. A different text in the first column is kept: it is a heading
    of the following rows.
    """
    count = headings = 0
    for cells in headers:
        at = [column for column in _filled_columns(cells) if 0 < column < len(names)]
        if not at or (len(at) == 1 and not cells[0]):
            continue
        same = " AND ".join(_repeats(names[column], cells[column]) for column in at)
        first = f"{quoted(names[0])} IS NULL"
        if cells[0].strip(BLANKS):
            first = _repeats(names[0], cells[0])
        count += _delete(database, names, f"{same} AND {first}")
        if len(at) > 1:
            emptied = ", ".join(f"{quoted(names[column])} = NULL" for column in at)
            changed = database.execute(f"UPDATE texts SET {emptied} WHERE {same}").fetchone()
            headings += changed[0] if changed else 0

    notes = []
    repeated = "the header is repeated inside"
    if count:
        notes.append(f"{repeated}: {count:,} row{'s' * (count > 1)} left out")
    if headings:
        others = "under other headings, which stand in the first column"
        notes.append(f"{repeated} {others}: {headings:,}")
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
    lowest = f"FROM texts WHERE rowid > {last - _LAST_ROWS} ORDER BY rowid DESC"
    rows = database.execute(f"SELECT rowid, * {lowest}").fetchall()
    notes: list[str] = []
    highest_note = None
    for row, *cells in rows[:-1]:
        text = _note_text(cells)
        if not text:
            break
        notes.append(text[:_NOTE_CHARS])
        highest_note = row
    if highest_note is not None:
        _delete(database, names, f"rowid >= {highest_note}")
    return notes[::-1]


def _note_text(cells: Sequence[str | None]) -> str:
    """Returns the text of a row that is a note; empty for data."""
    filled = _filled_columns(cells)
    texts = [str(cells[at]).strip(BLANKS) for at in filled]
    if not filled or filled[0] != 0 or any(map(_is_number, texts[1:])):
        return ""
    first = texts[0]
    is_marked = _NOTE.match(first) is not None
    if len(filled) == 1:
        is_long = len(first) > _LONG and first.count(" ") > 4
        if is_marked or is_long:
            return first
    is_whole_row = len(filled) == len(cells)
    if is_marked and first[-1:] not in "*" and not is_whole_row:
        return " ".join(texts)
    return ""


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
    found = f"FROM texts WHERE {first} IS NULL LIMIT {_HEADING_ROWS}"
    rows = database.execute(f"SELECT rowid, * {found}").fetchall()
    if len(rows) == _HEADING_ROWS:
        return []

    headings: list[str] = []
    numeric: dict[int, bool] = {}
    for row, *cells in rows:
        filled = _filled_columns(cells)
        if len(filled) != 1 or not _is_heading(str(cells[filled[0]])):
            continue
        [at] = filled
        if at not in numeric:
            numeric[at] = _is_numeric(database, names[at])
        if numeric[at]:
            column = quoted(names[at])
            moved = f"{first} = {column}, {column} = NULL"
            database.execute(f"UPDATE texts SET {moved} WHERE rowid = {row}")
            headings.append(str(cells[at]).strip(BLANKS))
    if not headings:
        return []
    shown = ", ".join(map(repr, headings[:3]))
    return [f"headings inside stand in the first column: {shown[:_NOTE_CHARS]}"]


def _is_heading(text: str) -> bool:
    return any(char.isalpha() for char in text) and not is_missing(text) and not _is_number(text)


def _is_numeric(database: duckdb.DuckDBPyConnection, name: str) -> bool:
    """True if most of the first cells of a column are numbers."""
    column = quoted(name)
    first = f"FROM texts WHERE {column} IS NOT NULL LIMIT {_FIRST_CELLS}"
    texts = database.execute(f"SELECT {column} {first}").fetchall()
    cells = [text for (text,) in texts if not is_missing(text)]
    return 2 * sum(map(_is_number, cells)) > len(cells)


def totals(database: duckdb.DuckDBPyConnection, columns: list[JsonObject]) -> list[str]:
    """Returns notes on the rows of the view `typed` that sum up others; sums must exclude them."""
    labels = _names_of_type(columns, ("VARCHAR",))[:_LABELS]
    numbers = _names_of_type(columns, ("BIGINT", "DOUBLE"))[:_SUMMED_COLUMNS]
    if not labels or not numbers:
        return []
    trimmed = [f"lower(trim({quoted(label)}))" for label in labels]
    named = " OR ".join(f"regexp_matches({text}, {literal(_TOTAL)})" for text in trimmed)
    label = f"coalesce({', '.join(map(quoted, labels))}, '')"
    picked = ", ".join(map(quoted, numbers))
    selected = f"SELECT {ROW_PLACE_SQL}, {label}, {picked} FROM typed"
    found = database.execute(f"{selected} WHERE {named} ORDER BY 1 LIMIT {_NAMED + 1}").fetchall()
    (count,) = database.execute("SELECT count(*) FROM typed").fetchone() or (0,)
    unnamed = 0  # the last row, where nothing names it a total
    if count <= _UNNAMED_ROWS and not any(row[0] == count for row in found):
        found += database.execute(f"{selected} WHERE {ROW_PLACE_SQL} = {count}").fetchall()
        unnamed = count

    notes: list[str] = []
    others: list[str] = []
    before = 0
    for row, text, *values in found[:_NAMED]:
        place = f"row {row} {text[:_LONG]!r}"
        is_sum = _is_plain_sum if row == unnamed else _is_sum
        of_all_above = _sums(database, numbers, 0, row)
        of_group = _sums(database, numbers, before, row)
        is_total = is_sum(values, of_all_above) or is_sum(values, of_group)
        if is_total and row > 2:
            notes.append(f"{place} {ADDED_UP_TOTAL}: leave it out where you add up")
        elif row != unnamed:
            others.append(place)
        before = row
    if others:
        more = " and others" if len(others) > 3 else ""
        shown = f"{', '.join(others[:3])}{more}"
        notes.append(f"{shown}: named a total, which may sum up other rows")
    return notes


def _names_of_type(columns: list[JsonObject], types: Sequence[str]) -> list[str]:
    return [column["name"] for column in columns if column["type"] in types]


def _sums(
    database: duckdb.DuckDBPyConnection,
    numbers: list[str],
    after: int,
    before: int,
) -> Sums:
    """Returns sum and count of each column of numbers in the rows between two places."""
    asked = ", ".join(f"sum({quoted(name)}), count({quoted(name)})" for name in numbers)
    between = f"{ROW_PLACE_SQL} > {after} AND {ROW_PLACE_SQL} < {before}"
    found = database.execute(f"SELECT {asked} FROM typed WHERE {between}").fetchone() or ()
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
