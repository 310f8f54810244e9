"""Reports on files, their tables and their documents, and their forms as text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from activities.files.values import DATA_TOML, literal, numbered
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import clean, one_line

_NAME_BYTES = 300


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


def cleaned(report: JsonObject) -> FileReport:
    """Returns a report without control characters in its name and problem, which are foreign."""
    made = FileReport(**report)
    problem = made.problem and one_line(clean(made.problem), limits.SENTENCE_BYTES)
    return replace(made, name=one_line(clean(made.name), _NAME_BYTES), problem=problem)


# --- the descriptions of a `data.toml` ------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """The content of a `data.toml`, as `descriptions.describe` returned it."""

    says: JsonObject
    lines: list[Any]
    files: Mapping[str, tuple[JsonObject, str]]
    alone: JsonObject

    def of_file(self, name: str) -> tuple[JsonObject | None, str]:
        """Returns the description of a file, None without one, and its reading.

        The reading is a text that changes with the settings for reading the file.
        """
        if name not in self.files:
            return None, ""
        said, reading = self.files[name]
        return {**said, "parts": {**self.alone, **said["parts"]}}, reading


def known_table(report: FileReport, table: JsonObject) -> list[Any]:
    """Returns a table in the form in which `descriptions.described_tables` takes it."""
    columns = [column["name"] for column in table["columns"]]
    return [report.name, table["own"], columns, table.get("left_out", 0)]


def with_descriptions(
    reports: Iterable[FileReport],
    words: Mapping[str, str],
    mistakes: Iterable[str],
    about: Iterable[tuple[str, Mapping[str, str]]],
) -> list[FileReport]:
    """Returns the reports with the words `about` each table and its columns.

    The report on the `data.toml` itself gets the words of the house and the mistakes.
    """
    shown_mistakes = [one_line(clean(mistake), limits.SENTENCE_BYTES) for mistake in mistakes]
    about_next = iter(about)
    described = []
    for report in reports:
        if report.name == DATA_TOML:
            described.append(replace(report, words=words, mistakes=shown_mistakes))
            continue
        tables = [_with_about(table, *next(about_next)) for table in report.tables]
        described.append(replace(report, tables=tables))
    return described


def _with_about(table: JsonObject, words: str, of_columns: Mapping[str, str]) -> JsonObject:
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
