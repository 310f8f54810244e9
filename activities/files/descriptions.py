"""The descriptions of tables in `data.toml` next to the files, which override the files.

    [words]
    revenue = "amount without returns"

    [tables."sales.csv"]
    description = "orders, one a row"
    header = 3
    decimal = ","
    missing = ["x"]

    [tables."sales.csv".columns.amount]
    type = "number"
    unit = "EUR"

A table is named by its file, as `inspect` shows both. Of a file with several tables each is named
by file and table, as in `[tables."book.xlsx/book_orders"]`, or by the table alone; the file's name
then means all of them.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from activities.files.values import is_data
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import did_you_mean, one_line, quoted
from temporal_supervisor.supervision.contract.base import StrictModel

DESCRIPTION_BYTES = 256 * 1024  # of the file: some 1,000 described columns

_MISTAKES = 8  # that are named at once
_SHOWN_CHARS = 200  # of what the parser says

ColumnType = Literal["text", "number", "integer", "date"]
DecimalMark = Literal[",", "."]
RowNumber = Annotated[int, Field(ge=1, le=1_000_000)]
Words = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=300)]
MissingValues = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=100)]


class DescriptionRefused(ValueError):
    """A `data.toml` that cannot be used.

    The message names the line, the fault, and a remedy.
    """


class ColumnDescription(StrictModel):
    """The description of one column; missing fields are decided by its values."""

    type: ColumnType | None = None
    decimal: DecimalMark | None = None
    missing: MissingValues = []
    unit: Annotated[str, Field(max_length=60)] = ""
    description: Words = ""


class TableDescription(StrictModel):
    """The description of one table.

    `header` is the number of the row with the columns' names, counted in lines from 1; two or three
    for a header of several rows; an empty list for none. None leaves it to be found.
    """

    description: Words = ""
    header: RowNumber | Annotated[list[RowNumber], Field(max_length=3)] | None = None
    decimal: DecimalMark | None = None
    missing: MissingValues = []
    columns: Annotated[dict[Name, ColumnDescription], Field(max_length=500)] = {}

    def of_table(self, table: str) -> "TableDescription":
        """Returns the description of the table with that name, among those in one file."""
        return self

    @property
    def reading(self) -> str:
        """The settings for reading the file, as JSON; empty if there are only descriptions."""
        words: Any = {"description": True, "columns": {"__all__": {"description"}}}
        said = self.model_dump(mode="json", include=_OF_TABLE, exclude=words, exclude_defaults=True)
        columns = {name: column for name, column in said.pop("columns", {}).items() if column}
        return json.dumps([said, columns], sort_keys=True) if said or columns else ""


_OF_TABLE = set(TableDescription.model_fields)


class FileDescription(TableDescription):
    """The description of the tables of one file: of all, and of single ones in `parts` by name."""

    parts: dict[str, TableDescription] = {}

    def of_table(self, table: str) -> TableDescription:
        """Returns the description of one of the file's tables; its own fields take precedence."""
        own = self.parts.get(table)
        whole = {name: getattr(self, name) for name in TableDescription.model_fields}
        if own is None:
            return TableDescription(**whole)
        said = {name: getattr(own, name) for name in own.model_fields_set}
        columns = self.columns | own.columns
        return TableDescription(**{**whole, **said, "columns": columns})

    def of_member(self, name: str, members: Iterable[str]) -> "FileDescription | None":
        """Returns the description of a file in a zipped folder, by its name there, or None."""
        return DataDescription(tables=self.parts).of_file(name, members)

    @property
    def reading(self) -> str:
        """The settings for reading the file, as JSON; empty if there are only descriptions."""
        whole = super().reading
        readings = {name: part.reading for name, part in self.parts.items()}
        parts = {name: reading for name, reading in readings.items() if reading}
        return json.dumps([whole, parts], sort_keys=True) if whole or parts else ""


class DataDescription(StrictModel):
    """The content of a `data.toml`: tables by file or table name, and the words of the house."""

    words: Annotated[dict[Name, Words], Field(max_length=500)] = {}
    tables: Annotated[dict[Name, TableDescription], Field(max_length=2000)] = {}

    def of_file(self, name: str, files: Iterable[str]) -> FileDescription | None:
        """Returns the description of one of some files; None if there is none.

        A table is described together with its file, or alone.
        """
        alone = _without_file(self.tables, {name, *files})
        parts = {**alone, **_parts_of(name, self.tables)}
        if name not in self.tables and not parts:
            return None
        whole = self.tables.get(name, TableDescription())
        own = {field: getattr(whole, field) for field in whole.model_fields_set}
        return FileDescription(**own, parts=parts)


def _parts_of(name: str, tables: Mapping[str, TableDescription]) -> dict[str, TableDescription]:
    """Returns the descriptions of the parts of a file, by their names in it."""
    start = f"{name}/"
    inside = {key: said for key, said in tables.items() if key.startswith(start)}
    return {key.removeprefix(start): said for key, said in inside.items()}


def _without_file(
    tables: Mapping[str, TableDescription],
    files: set[str],
) -> dict[str, TableDescription]:
    """Returns the descriptions of tables that are named without one of the files."""
    return {key: said for key, said in tables.items() if not _names_part_of(key, files)}


def _names_part_of(key: str, files: set[str]) -> bool:
    """True if a key names one of the files, or a part of one."""
    return key in files or any(key[:at] in files for at, sign in enumerate(key) if sign == "/")


class Written(NamedTuple):
    """A parsed `data.toml`: its content, and the line of each table and column in it."""

    says: DataDescription
    lines: Mapping[tuple[str, ...], int]


def read_description(text: str) -> Written:
    """Returns a parsed `data.toml`. Raises DescriptionRefused."""
    if len(text) > DESCRIPTION_BYTES:
        most = f"it has more than {DESCRIPTION_BYTES >> 10} KiB"
        raise DescriptionRefused(f"{most}: leave out what is as it would be read")
    try:
        fields = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DescriptionRefused(_said_by_parser(str(error))) from None
    lines = _lines(text)
    try:
        return Written(DataDescription.model_validate(fields), lines)
    except ValidationError as error:
        raise DescriptionRefused("; ".join(_complaints(error, lines))) from None


def _said_by_parser(message: str) -> str:
    """Returns the parser's message, with the line in front."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message[:_SHOWN_CHARS], re.DOTALL)
    if found is None:
        advice = "put texts and names with dots into quotes"
        return f"it is no TOML: {one_line(message, limits.LINE_BYTES)}: {advice}"
    fault, line, column = found.groups()
    advice = "put texts, and names with dots or blanks, into quotes"
    where = f"line {line}, column {column}"
    return f"{where}: it is no TOML: {one_line(fault, limits.LINE_BYTES)}: {advice}"


def _complaints(error: ValidationError, lines: Mapping[tuple[str, ...], int]) -> list[str]:
    """Returns the faults of some fields, each after its line."""
    said: dict[tuple[int | None, str], str] = {}
    for item in error.errors(include_url=False, include_input=False):
        # The parts behind the last name are of a union or a list: no names of fields.
        place = tuple(part for part in map(str, item["loc"]) if part != "[key]")
        line = _nearest_line(place, lines)
        where = f"line {line}: " if line else ""
        field = next((part for part in reversed(place) if part in _FORMS), "")
        complaint = _complaint(place, field, item["type"], item["msg"])
        # A field of two forms has a complaint each.
        said.setdefault((line, field or complaint), f"{where}{complaint}")
    return _first_mistakes([*said.values()])


def _nearest_line(place: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """Returns the line of a field, or else of the closest field around it that has one."""
    for end in range(len(place), 0, -1):
        if place[:end] in lines:
            return lines[place[:end]]
    return None


def _first_mistakes(found: list[str]) -> list[str]:
    """Returns the mistakes that are shown at once, with the number of the others."""
    if len(found) <= _MISTAKES:
        return found
    return [*found[:_MISTAKES], f"and {len(found) - _MISTAKES} more"]


_FORMS = {
    "type": 'write "text", "number", "integer" or "date"',
    "decimal": 'write "," or "."',
    "missing": 'write a list of texts, such as ["x", "unknown"]',
    "header": "write the number of its row, such as 3, or [2, 3], or [] for none",
    "unit": 'write a text, such as "EUR"',
    "description": "write a text",
    "words": 'write a text for each word, such as revenue = "amount without returns"',
}
_TABLE = 'write it as in [tables."sales.csv"], and its columns as [tables."sales.csv".columns.x]'


# The models of fields by their depth in the file; those of columns are deeper.
_MODELS: dict[int, type[StrictModel]] = {
    0: DataDescription,
    1: DataDescription,
    2: DataDescription,
    3: TableDescription,
}


def _complaint(place: tuple[str, ...], field: str, kind: str, message: str) -> str:
    """Returns the fault of a field, and an example of a valid value."""
    model = _MODELS.get(len(place), ColumnDescription)
    name = place[-1]
    if kind == "extra_forbidden" and is_data(f".{name}"):
        meant = f"{place[-2]}.{one_line(name, limits.LINE_BYTES)}"
        return f'a file is named in quotes: [tables."{meant}"]'
    if kind == "extra_forbidden":
        known = list(model.model_fields)
        helps = did_you_mean(name, known) or f": there are {', '.join(known)}"
        return f"there is no field {quoted(name)}{helps}"
    advice = _FORMS.get(field, _TABLE)
    return f"{quoted(field or name)} {one_line(message, limits.LINE_BYTES).lower()}: {advice}"


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """Returns the line of each key that begins one, by its path.

    Keys inside texts may be among them.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[[^\[].*\])\s*(#.*)?$", line)
        if header:
            table = _path(header[1]) or table
            for end in range(1, len(table) + 1):
                lines.setdefault(table[:end], number)
            continue
        key = re.match(r"""\s*+((?:[\w.\- ]++|"(?:[^"\\]|\\.)*+"|'[^']*+')++)=""", line)
        path = _path(f"{key[1]} = 0") if key else ()
        if path:
            lines.setdefault((*table, *path), number)
    return lines


def _path(written: str) -> tuple[str, ...]:
    """Returns the names in the only key of a line; none if it is no key."""
    try:
        value: object = tomllib.loads(written)
    except tomllib.TOMLDecodeError:
        return ()
    path = []
    while isinstance(value, dict) and len(value) == 1:
        ((name, value),) = value.items()
        path.append(name)
    return tuple(path)


# --- what fits no file ----------------------------------------------------------------------------


class KnownTable(NamedTuple):
    """A table in the files: its file, its name there, its columns, and the number of others."""

    file: str
    own: str
    columns: list[str]
    left_out: int = 0


Close = Callable[[str, Iterable[str]], str]
"""Returns words on the name that is meant; empty if none is close."""


def mistakes(written: Written, files: list[str], tables: list[KnownTable]) -> list[str]:
    """Returns the parts of a description that match no table or column, with lines and remedies."""
    looked_up = count(1)

    def close(name: str, known: Iterable[str]) -> str:
        # It takes long among many names: those that are not shown are counted only.
        return did_you_mean(name, known) if next(looked_up) <= _MISTAKES else ""

    return _first_mistakes([*_mistakes(written, files, tables, close)])


def _mistakes(
    written: Written,
    files: list[str],
    tables: list[KnownTable],
    close: Close,
) -> Iterator[str]:
    for key, said in written.says.tables.items():
        meant = [table for table in tables if key in (table.file, f"{table.file}/{table.own}")]
        meant = meant or [table for table in tables if table.own == key]
        line = written.lines.get(("tables", key))
        where = f"line {line}: " if line else ""
        if not meant:
            yield f"{where}{_no_table(key, files, tables, close)}"
            continue
        if len({table.file for table in meant}) > 1:
            better = quoted(f"{meant[0].file}/{meant[0].own}")
            several = f"several files have a table {quoted(key)}"
            yield f"{where}{several}: name its file, as in {better}"
        if any(table.left_out for table in meant):
            continue  # it may be among the columns that are not known here

        known = dict.fromkeys(column for table in meant for column in table.columns)
        for column in said.columns:
            if column not in known:
                line = written.lines.get(("tables", key, "columns", column), line)
                all_known = one_line(", ".join(known), limits.LINE_BYTES)
                helps = close(column, known) or f": it has {all_known}"
                yield f"line {line}: {quoted(key)} has no column {quoted(column)}{helps}"


def _no_table(key: str, files: list[str], tables: list[KnownTable], close: Close) -> str:
    if key in files:
        return f"{quoted(key)} holds no table"
    known = dict.fromkeys([*(table.file for table in tables), *(table.own for table in tables)])
    all_known = one_line(", ".join(known), limits.LINE_BYTES) or "none"
    helps = close(key, known) or f": there are {all_known}"
    return f"there is no table {quoted(key)}{helps}"


# --- what runs in a child process: descriptions and tables are both foreign -----------------------


def describe(path: str, names: list[str]) -> JsonObject:
    """Returns the content of a `data.toml` as `says`, and `lines` of its keys, or the `problem`.

    `files` maps each of the named files to its description, and to a hash of the settings that
    change its reading, empty without any. `alone` has the descriptions of tables that are named
    without a file: they count for every file.
    """
    source = Path(path)
    try:
        if source.stat().st_size > DESCRIPTION_BYTES:
            raise DescriptionRefused(f"it has more than {DESCRIPTION_BYTES >> 10} KiB")
        written = read_description(source.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        return {"problem": "it is no text in UTF-8: save it as such"}
    except DescriptionRefused as refused:
        return {"problem": str(refused)}

    known = set(names)
    alone = _without_file(written.says.tables, known)
    files: dict[str, list[Any]] = {}
    for name in names:
        said = written.says.of_file(name, known)
        if said is not None:
            own = {key: part for key, part in said.parts.items() if part is not alone.get(key)}
            reading = hashlib.sha256(said.reading.encode()).hexdigest() if said.reading else ""
            files[name] = [as_json(said.model_copy(update={"parts": own})), reading]
    lines = [[list(place), line] for place, line in written.lines.items()]
    return {
        "says": written.says.model_dump(mode="json", exclude_unset=True),
        "lines": lines,
        "files": files,
        "alone": {key: as_json(said) for key, said in alone.items()},
    }


def described_tables(
    says: JsonObject,
    lines: list[Any],
    names: list[str],
    tables: list[list[Any]],
) -> JsonObject:
    """Returns the `mistakes` of a `data.toml` for some tables, and the words `about` each.

    A table is given as [file, own name, columns, number of others]. `about` has for each of them
    its description, and those of its columns by name.
    """
    data = DataDescription.model_validate(says)
    written = Written(data, {tuple(place): line for place, line in lines})
    known = [KnownTable(*table) for table in tables]
    of_files = {name: data.of_file(name, names) for name in {table.file for table in known}}
    return {
        "mistakes": mistakes(written, names, known),
        "about": [_words_on(of_files[table.file], table.own, table.columns) for table in known],
    }


def _words_on(said: FileDescription | None, own: str, columns: list[str]) -> list[Any]:
    if said is None:
        return ["", {}]
    table = said.of_table(own)
    words = {name: table.columns[name].description for name in columns if name in table.columns}
    return [table.description, {name: about for name, about in words.items() if about}]


def as_json(said: TableDescription | None) -> JsonObject | None:
    """Returns a description in the form in which processes exchange it."""
    return None if said is None else said.model_dump(mode="json", exclude_unset=True)
