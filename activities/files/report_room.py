"""The ceilings for the reports on all files of a run together, and for each file.

A report that is too long is shortened step by step: first to fewer and shorter values of columns,
then to names and types, then to a part of the columns and tables, with the number of the others.
Queries still reach all of them.
"""

import json
from typing import Any

from temporal_supervisor.supervision.base.json_object import JsonObject

# Of the reports on all files of a run, as JSON: a process needs some 40 MiB for them.
RUN_CHARS = 16 << 20
FILE_CHARS = 1 << 20  # of one file's
# So many values of a column, and so many characters of each.
_DETAIL = ((200, 300), (50, 120), (20, 60), (5, 60))
_TABLE_CHARS = 1000  # of a table beside its columns
_NOTES, _NOTE_CHARS = 3, 100
_BARE = ("name", "sql", "type", "unit")


def all_fitted(reports: list[JsonObject], room: int) -> list[JsonObject]:
    """Returns reports that fit into `room` characters together, with equal shares.

    The unused part of a share goes to the following reports.
    """
    fitting = list[JsonObject]()
    for at, report in enumerate(reports):
        shorter = fitted(report, room // (len(reports) - at))
        fitting.append(shorter)
        room = max(0, room - length(shorter))
    return fitting


def fitted(report: JsonObject, room: int) -> JsonObject:
    """Returns a report on one file that fits into `room` characters, apart from its names."""
    if length(report) <= room or not report.get("tables"):
        return report
    for values, chars in _DETAIL:
        tables = [_with_values(table, values, chars) for table in report["tables"]]
        shorter = {**report, "tables": tables}
        if length(shorter) <= room:
            return shorter
    return _with_first_columns(report, room)


def length(report: Any) -> int:
    """Returns the length of a stored report in characters."""
    return len(json.dumps(report, ensure_ascii=False))


def _with_values(table: JsonObject, most: int, chars: int) -> JsonObject:
    """Returns a table with at most `most` values of each column, cut to `chars` characters."""
    columns = [_with_first_values(column, most, chars) for column in table["columns"]]
    return {**table, "columns": columns}


def _with_first_values(column: JsonObject, most: int, chars: int) -> JsonObject:
    values = column.get("values", [])
    shorter = {**column, "reading": _shortened(column.get("reading"), chars)}
    if "range" in column:
        shorter["range"] = [_cut_text(value, chars) for value in column["range"]]
    if values:
        shorter["values"] = [_cut_text(value, chars) for value in values[:most]]
        shorter["more"] = column.get("more", 0) + len(values) - len(shorter["values"])
    return shorter


def _shortened(reading: JsonObject | None, chars: int) -> JsonObject | None:
    if reading is None:
        return None
    texts = {name: said for name, said in reading.items() if isinstance(said, str)}
    return {**reading, **{name: _cut_text(text, chars) for name, text in texts.items()}}


def _cut_text(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}…"


def _with_first_columns(report: JsonObject, room: int) -> JsonObject:
    """Returns a report with only names and types, of as many tables and columns as fit."""
    tables = report["tables"][: max(1, room // (2 * _TABLE_CHARS))]
    share = room // len(tables) - _TABLE_CHARS
    shorter = [_bare(table, share) for table in tables]
    more = len(report["tables"]) - len(tables)
    if more:
        left_out = f"{more:,} more tables of this file are left out"
        remedy = "the files have too many together, pass fewer of them"
        shorter[0]["notes"].append(f"{left_out}: {remedy}")
    return {**report, "tables": shorter}


def _bare(table: JsonObject, room: int) -> JsonObject:
    """Returns a table with the names and types of as many columns as fit."""
    columns = list[JsonObject]()
    for column in table["columns"]:
        bare = {name: column[name] for name in _BARE if name in column}
        room -= length(bare)
        if room < 0:
            break
        columns.append(bare)
    notes = [_cut_text(note, _NOTE_CHARS) for note in table["notes"][:_NOTES]]
    left_out = len(table["columns"]) - len(columns)
    if left_out:
        notes.append(f"{left_out:,} more columns are not listed: SELECT * shows them")
    above = [_cut_text(line, _NOTE_CHARS) for line in table.get("above", [])[:1]]
    return {
        **table,
        "columns": columns,
        "notes": notes,
        "above": above,
        "below": [],
        "left_out": left_out,
    }
