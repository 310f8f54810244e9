"""Reports on files, their tables and their documents, and their forms as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from activities.files.values import literal, numbered
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import clean


@dataclass(frozen=True)
class FileReport:
    """The report on a file: its tables, its document, or the problem with it.

    A table is {name, file, rows, columns, notes}. The report on a `data.toml` has the `words` of
    the house that it explains, and its `mistakes`: descriptions that match no table.
    """

    name: str
    tables: Sequence[JsonObject] = ()
    document: JsonObject | None = None
    problem: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    mistakes: Sequence[str] = ()

    @property
    def made_files(self) -> list[str]:
        """The paths of the files that it was converted to."""
        made = [table["file"] for table in self.tables]
        if self.document:
            made.append(self.document["file"])
        return made

    @property
    def name_with_tables(self) -> str:
        """The file's name with its tables: `book.xlsx, table book_orders`."""
        if not self.tables:
            return self.name
        tables = ", ".join(table["name"] for table in self.tables)
        return f"{self.name}, table {tables}"


def contents(column: JsonObject, most: int | None = None) -> str:
    """Returns the range of a column, or its first values and the number of others.

    Empty if nothing is known.
    """
    if "range" in column:
        return " to ".join(column["range"])
    values = column.get("values", [])
    shown = values[:most]
    text = ", ".join(map(_list_text, shown))
    more = len(values) - len(shown) + column.get("more", 0)
    return f"{text}, ... and {more} more" if more else text


def reading_line(reading: JsonObject) -> str:
    """Returns a cell as written, its value, the decision about it, and the reason.

    For example `'1.527' is 1527 (dots group thousands; ...)`.
    """
    line = literal(reading["written"])
    if reading["value"] != reading["written"]:
        line += f" is {reading['value']}"
    if reading.get("unit"):
        line += f", in {reading['unit']}"
    reasons = [reading.get("decision"), reading.get("why")]
    known = [reason for reason in reasons if reason]
    if known:
        line += f" ({'; '.join(known)})"
    return line


def _list_text(value: str) -> str:
    """Returns a value for a list, quoted as in SQL if it contains the separator."""
    plain = clean(value).replace("\n", " ")
    return literal(plain) if ", " in plain else plain


def with_unique_tables(reports: list[FileReport]) -> list[FileReport]:
    """Returns the reports, with numbers added to repeated names of tables.

    Each table has its file as `source`, and its name in the file as `own`.
    """
    all_names = [table["name"] for report in reports for table in report.tables]
    names = iter(numbered(all_names))
    renamed = []
    for report in reports:
        tables = []
        for table in report.tables:
            own = {"own": table["name"], **table}
            tables.append({**own, "name": next(names), "source": report.name})
        renamed.append(replace(report, tables=tables))
    return renamed


def with_about(table: JsonObject, words: str, of_columns: Mapping[str, str]) -> JsonObject:
    """Returns a table with its description and its columns' descriptions, under `about`."""
    described = {**table}
    if of_columns:
        columns = []
        for column in table["columns"]:
            own = of_columns.get(column["name"])
            columns.append(column if own is None else {**column, "about": own})
        described["columns"] = columns
    if words:
        described["about"] = words
    return described
