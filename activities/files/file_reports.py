"""Reports on files, their tables and their documents, and these reports as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from activities.files.values import literal, numbered
from temporal_supervisor.supervision.base.text import clean

Json = dict[str, Any]


@dataclass(frozen=True)
class FileReport:
    """The report on a file: its tables, its document, or the problem with it.

    A table is {name, file, rows, columns, notes}. The report on a `data.toml` has the `words` of
    the house that it explains, and its `mistakes`: what fits no table.
    """

    name: str
    tables: Sequence[Json] = ()
    document: Json | None = None
    problem: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    mistakes: Sequence[str] = ()

    @property
    def made(self) -> list[str]:
        """The files that were made of it."""
        return [one["file"] for one in [*self.tables, self.document] if one]

    @property
    def described(self) -> str:
        """The file's name, which is its document's id, with the names of its tables."""
        tables = ", ".join(table["name"] for table in self.tables)
        return f"{self.name}, table {tables}" if tables else self.name


def contents(column: Json, most: int | None = None) -> str:
    """Returns the range of a column, or its first values and how many more it has; empty if nothing is known."""
    if "range" in column:
        return " to ".join(column["range"])
    values = column.get("values", [])
    more = len(values) - len(values[:most]) + column.get("more", 0)
    return ", ".join(map(_listed, values[:most])) + (f", ... and {more} more" if more else "")


def reading_line(reading: Json) -> str:
    """Returns a cell as it is written beside its value, what was decided, and why."""
    written, value = literal(reading["written"]), reading["value"]
    as_value = f"{written} is {value}" if value != reading["written"] else written
    why = "; ".join(filter(None, [reading.get("decision"), reading.get("why")]))
    unit = f", in {reading['unit']}" if reading.get("unit") else ""
    return f"{as_value}{unit} ({why})" if why else f"{as_value}{unit}"


def _listed(value: str) -> str:
    """Returns a value as it is listed; one that contains the separator is written as in SQL."""
    plain = clean(value).replace("\n", " ")
    return literal(plain) if ", " in plain else plain


def with_unique_tables(reports: list[FileReport]) -> list[FileReport]:
    """Returns the reports, tables of the same name numbered from the second on, each with its file as `source`.

    `own` is the name that a table has among those of its file.
    """
    names = iter(numbered([table["name"] for report in reports for table in report.tables]))
    return [
        replace(report, tables=[_renamed(table, next(names), report.name) for table in report.tables])
        for report in reports
    ]


def _renamed(table: Json, name: str, source: str) -> Json:
    return {"own": table["name"], **table, "name": name, "source": source}


def with_about(table: Json, words: str, of_columns: Mapping[str, str]) -> Json:
    """Returns a table with its description and those of its columns, under `about`."""
    about = {"about": words} if words else {}
    if not of_columns:
        return {**table, **about}
    columns = [
        {**column, "about": of_columns[column["name"]]} if column["name"] in of_columns else column
        for column in table["columns"]
    ]
    return {**table, "columns": columns, **about}
