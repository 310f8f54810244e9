"""The forms in which a JSON file contains one table, other than a list of objects.

Runs in a child process.
"""

import json
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from activities.files.values import Cell, numbered
from temporal_supervisor.supervision.base.json_object import JsonObject

SHAPED_BYTES = 24 << 20  # of a file: the values of one take some eight times its size in memory
_LOOKED_AT = 1000  # rows that tell the form
_DEPTH = 3  # of objects around the table


def table_rows(source: Path) -> list[list[Cell]] | None:
    """Returns the rows of the only table in a JSON file, names first; None without one.

    Its forms: an object that contains one list of objects, a list of lists below their names, and
    an object of equally long lists, one for each column. Numbers stay numbers. Raises ValueError
    for broken JSON.
    """
    try:
        with source.open(encoding="utf-8-sig", errors="replace") as file:
            rows = _rows(json.load(file), _DEPTH)
    except RecursionError:  # so deep a text is no table
        return None
    if rows is None:
        return None
    objects = list(rows)
    names: dict[str, None] = {}
    for row in objects:
        names.update(dict.fromkeys(row))
    cells = [[_cell(row.get(name)) for name in names] for row in objects]
    return [[*names], *cells]


def _cell(value: Any) -> Cell:
    """Returns a value as a cell; lists, objects, true and false become JSON."""
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, int | float):
        return value
    return str(value)


def _rows(value: Any, depth: int) -> Iterable[JsonObject] | None:
    """Returns the rows of the only table in a value; None without one."""
    if isinstance(value, list):
        return _rows_of_list(value)
    if not isinstance(value, dict) or not value:
        return None
    for form in (_split, _columns):
        found = form(value)
        if found is not None:
            return found
    if depth == 0:
        return None
    inner_rows = [_rows(inner, depth - 1) for inner in value.values()]
    tables = [rows for rows in inner_rows if rows is not None]
    return tables[0] if len(tables) == 1 else None


def _rows_of_list(value: list[Any]) -> Iterable[JsonObject] | None:
    if len(value) < 2:
        return None
    if all(isinstance(row, dict) for row in value):
        return value
    if not all(isinstance(row, list) for row in value):
        return None
    names, *below = value[:_LOOKED_AT]
    cells = [*chain.from_iterable(below)]
    if not all(map(_is_plain, [*names, *cells])):
        return None
    if len(names) < 2 or not all(isinstance(name, str) and name.strip() for name in names):
        return None
    # Names that repeat above nothing but texts are no names: it is a row like the others.
    has_repeated = len(set(names)) < len(names)
    if has_repeated and all(isinstance(cell, str) for cell in cells):
        return None
    return _as_objects(names, islice(value, 1, None))


def _split(value: JsonObject) -> Iterable[JsonObject] | None:
    """Returns the rows of `{"columns": [...], "data": [[...], ...]}`; None for another form."""
    names = value.get("columns", value.get("fields"))
    data = value.get("data", value.get("rows"))
    if not isinstance(names, list) or not isinstance(data, list) or not names or not data:
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    if not all(isinstance(row, list) for row in data):
        return None
    return _as_objects(names, data)


def _columns(value: JsonObject) -> Iterable[JsonObject] | None:
    """Returns the rows of an object of equally long lists; None for another form."""
    lists = list(value.values())
    if len(lists) < 2 or not all(isinstance(column, list) for column in lists):
        return None
    lengths = {len(column) for column in lists}
    if len(lengths) > 1 or lengths == {0}:
        return None
    first_cells = chain.from_iterable(column[:_LOOKED_AT] for column in lists)
    if not all(map(_is_plain, first_cells)):
        return None
    return (dict(zip(value, cells, strict=True)) for cells in zip(*lists, strict=True))


def _as_objects(names: list[str], rows: Iterable[list[Any]]) -> Iterable[JsonObject]:
    """Yields rows as objects; cells without a name get numbered names."""
    known = numbered([name.strip() or f"column_{at}" for at, name in enumerate(names, 1)])
    for row in rows:
        unnamed = [f"column_{at}" for at in range(len(known) + 1, len(row) + 1)]
        missing = [None] * (len(known) - len(row))
        yield dict(zip([*known, *unnamed], [*row, *missing], strict=True))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list)
