"""The forms in which a JSON file holds one table, beside a list of objects: found, and written as such a list.

Runs in a child process.
"""

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from activities.files.values import numbered

Json = dict[str, Any]

SHAPED_BYTES = 24 << 20  # of a file: the values of one take some eight times its size in memory
_LOOKED_AT = 1000  # rows that tell the form
_DEPTH = 3  # of objects around the table


def shaped_table(source: Path, target: Path) -> bool:
    """Writes the one table of a JSON file as objects, one a line; False if it holds none, or several.

    The forms: an object with one list of objects in it, a list of lists below their names, and an object of equally
    long lists, one for each column. Raises ValueError for broken JSON.
    """
    if source.stat().st_size > SHAPED_BYTES:
        return False
    with source.open(encoding="utf-8-sig", errors="replace") as file:
        value = json.load(file)
    rows = _rows(value, _DEPTH)
    if rows is None:
        return False
    with target.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return True


def _rows(value: Any, depth: int) -> Iterable[Json] | None:
    """Returns the rows of the one table in a value; None without one."""
    if isinstance(value, list):
        return _rows_of_list(value)
    if not isinstance(value, dict) or not value:
        return None
    if (split := _split(value)) is not None:
        return split
    if (columns := _columns(value)) is not None:
        return columns
    if depth == 0:
        return None
    tables = [rows for inner in value.values() if (rows := _rows(inner, depth - 1)) is not None]
    return tables[0] if len(tables) == 1 else None


def _rows_of_list(value: list[Any]) -> Iterable[Json] | None:
    start = value[:_LOOKED_AT]
    if len(start) > 1 and all(isinstance(row, dict) for row in value):
        return value
    is_grid = len(start) > 1 and all(isinstance(row, list) for row in value)
    if not is_grid or not all(map(_is_plain, (cell for row in start for cell in row))):
        return None
    names = value[0]
    if len(names) < 2 or not all(isinstance(name, str) and name.strip() for name in names):
        return None
    # Below names there is something else, or they were no names.
    if all(isinstance(cell, str) for row in start[1:] for cell in row) and len(set(names)) < len(names):
        return None
    return _named(names, islice(value, 1, None))


def _split(value: Json) -> Iterable[Json] | None:
    """Returns the rows of `{"columns": [...], "data": [[...], ...]}`; None for another form."""
    names = value.get("columns", value.get("fields"))
    data = value.get("data", value.get("rows"))
    if not (isinstance(names, list) and isinstance(data, list) and names and data):
        return None
    if not all(isinstance(name, str) for name in names) or not all(isinstance(row, list) for row in data):
        return None
    return _named(names, data)


def _columns(value: Json) -> Iterable[Json] | None:
    """Returns the rows of an object of equally long lists of plain values; None for another form."""
    lists = list(value.values())
    if len(lists) < 2 or not all(isinstance(column, list) for column in lists):
        return None
    lengths = {len(column) for column in lists}
    if len(lengths) > 1 or lengths == {0}:
        return None
    if not all(map(_is_plain, (cell for column in lists for cell in column[:_LOOKED_AT]))):
        return None
    return (dict(zip(value, cells, strict=True)) for cells in zip(*lists, strict=True))


def _named(names: list[str], rows: Iterable[list[Any]]) -> Iterable[Json]:
    """Yields rows as objects; cells beyond the names get numbers."""
    known = numbered([name.strip() or f"column_{at}" for at, name in enumerate(names, 1)])
    for row in rows:
        more = [f"column_{at}" for at in range(len(known) + 1, len(row) + 1)]
        yield dict(zip([*known, *more], [*row, *[None] * (len(known) - len(row))], strict=True))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list)
