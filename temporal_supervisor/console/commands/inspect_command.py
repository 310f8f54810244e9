"""The command `inspect`: the content of files, the readings of columns, a first `data.toml`."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from activities.files.file_reports import FileReport, contents, reading_line
from activities.files.values import DATA_TOML
from temporal_supervisor.console.base.command import BAD_INPUT, FAILED, CommandFailed, hint
from temporal_supervisor.console.base.terminal import (
    Paragraph,
    Report,
    ScreenRow,
    counted,
    safe_line,
)
from temporal_supervisor.console.run.described_files import reports_on, with_description
from temporal_supervisor.console.run.request_options import data_files
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.json_object import JsonObject

_DESCRIBE_HELP = "a data.toml by any name: how tables are read, in place of the folder's own"
_WRITE_HELP = "write a first data.toml into the folder, to be edited"
_SHOWN_VALUES = 5
_SHOWN_COLUMNS = 40  # of a table; more scroll everything else away
_ABOVE_NOTE = "what stands above the header"
_TYPES = {
    "VARCHAR": "text",
    "DATE": "date",
    "TIMESTAMP": "date",
    "BIGINT": "integer",
    "HUGEINT": "integer",
}


async def inspect_files(
    paths: Annotated[list[Path], typer.Argument(help="files and folders")],
    describe: Annotated[Path | None, typer.Option(help=_DESCRIBE_HELP)] = None,
    write: Annotated[bool, typer.Option("--write", help=_WRITE_HELP)] = False,
) -> Report:
    """Show files as a run sees them: tables, readings of columns, documents, failures and why."""
    target = _new_description_file(paths) if write else None
    reports = await reports_on(with_description(data_files(paths), describe))
    notes = []
    if target is not None:
        _write(target, _first_description(reports))
        again = hint("inspect", str(target.parent))
        notes = [f"wrote {target}: edit it, then see what it changes: {again}"]
    return Report(reports, list(_rows(reports)), notes=notes)


def _rows(reports: list[FileReport]) -> Iterator[ScreenRow | str]:
    for report in reports:
        if report.problem:
            yield f"✘ {report.name}: {report.problem}"
        if report.name == DATA_TOML and not report.problem:
            yield f"{DATA_TOML}: describes these files"
            for word, meaning in report.words.items():
                yield _indented(f"{safe_line(word, limits.LINE_BYTES)} = {meaning}", 4)
        if report.document:
            yield from _document_rows(report.name, report.document)
        for table in report.tables:
            yield from _table_rows(report.name, table)
    yield _summary_line(reports)


def _document_rows(name: str, document: JsonObject) -> Iterator[str]:
    pages = f"{counted(document['pages'], 'page')}, " if document["pages"] else ""
    title = f": {safe_line(document['title'], 80)}" if document["title"] else ""
    yield f"{name}: a document of {pages}{counted(document['chars'], 'character')}{title}"
    for note in document.get("notes", ()):
        yield f"  ! {safe_line(note, limits.SENTENCE_BYTES)}"


def _table_rows(name: str, table: JsonObject) -> Iterator[ScreenRow | str]:
    yield f"{name}: table {table['name']}, {counted(table['rows'], 'row')}"
    if table.get("about"):
        yield _indented(table["about"], 4)
    above = table.get("above")
    if above:
        yield _indented(f"above it: {' / '.join(above)}", 4)

    columns = table["columns"]
    for column in columns[:_SHOWN_COLUMNS]:
        words = f"{column['sql']} {column['type']}: {contents(column, _SHOWN_VALUES)}"
        yield f"    {safe_line(words, limits.SENTENCE_BYTES)}"
        reading = column.get("reading") or {}
        if reading.get("written"):
            yield _indented(reading_line(reading), 8)
        if column.get("about"):
            yield _indented(column["about"], 8)
    more = len(columns) - _SHOWN_COLUMNS
    if more > 0:
        yield f"    and {counted(more, 'more column')}: `--json` shows all"

    for note in table["notes"]:
        if above and note.startswith(_ABOVE_NOTE):
            continue  # its words are below the table's name
        yield f"  ! {safe_line(note, limits.SENTENCE_BYTES)}"


def _indented(text: str, columns: int) -> Paragraph:
    """Returns foreign text as an indented paragraph below its subject."""
    return Paragraph(safe_line(text, limits.SENTENCE_BYTES), columns)


def _summary_line(reports: list[FileReport]) -> str:
    tables = [table for report in reports for table in report.tables]
    documents = sum(report.document is not None for report in reports)
    unread = sum(report.problem is not None for report in reports)
    rows = counted(sum(table["rows"] for table in tables), "row")
    ending = f", {unread} that can't be read" if unread else ""
    return f"{counted(len(tables), 'table')} with {rows}, {counted(documents, 'document')}{ending}"


# --- a first data.toml --------------------------------------------------------------------------


def _new_description_file(paths: list[Path]) -> Path:
    """Returns the file that `--write` makes.

    Raises CommandFailed unless there is one folder without such a file.
    """
    folder = paths[0]
    if len(paths) > 1 or not folder.is_dir():
        why = f"the {DATA_TOML} stands beside the files it describes"
        raise CommandFailed(BAD_INPUT, f"--write needs one folder: {why}")
    target = folder / DATA_TOML
    if target.exists():
        helps = "edit it, or move it away and write a new one"
        raise CommandFailed(FAILED, f"{target} exists already: {helps}")
    return target


def _write(target: Path, text: str) -> None:
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandFailed(FAILED, f"{target} can't be written: {error.strerror}") from None


_OPENING = """\
# How the tables of this folder are read, and what they mean. \
What stands behind a # is what was found in the files:
# take the # away from what you change. \
Descriptions and words go to the planner and the worker agents.

[words]
# revenue = "amount without returns"
"""


def _first_description(reports: Iterable[FileReport]) -> str:
    """Returns a `data.toml` with every table and column, which changes no reading yet."""
    parts = [_OPENING]
    for report in reports:
        for table in report.tables:
            name = report.name
            if len(report.tables) > 1:
                name = f"{report.name}/{table['own']}"
            parts.append("\n".join(_described_table(name, table)))
    return "\n".join(parts)


def _described_table(name: str, table: JsonObject) -> Iterator[str]:
    """Yields the lines of a table and its columns, with their present readings as comments."""
    place = f"tables.{_toml_key(name)}"
    yield f"[{place}]"
    yield 'description = ""'
    if "header" in table:
        lines = table["header"]
        yield f"# header = {lines[0] if len(lines) == 1 else lines}"
    readings = [column.get("reading") or {} for column in table["columns"]]
    marks = [reading["mark"] for reading in readings if reading.get("mark")]
    if marks:
        yield f"# decimal = {_toml_string(min(marks))}"
    yield '# missing = ["n/a"]'
    for column in table["columns"]:
        yield f"\n[{place}.columns.{_toml_key(column['name'])}]"
        yield 'description = ""'
        yield from _described_column(column)
    yield ""


def _described_column(column: JsonObject) -> Iterator[str]:
    reading = column.get("reading") or {}
    kind = _TYPES.get(column["type"])
    if re.match("DOUBLE|FLOAT|DECIMAL", column["type"]):
        kind = "number"
    if kind:
        seen = ""
        if reading.get("written"):
            seen = f"  # {safe_line(reading_line(reading), limits.LINE_BYTES)}"
        yield f'# type = "{kind}"{seen}'
    yield f"# unit = {_toml_string(reading.get('unit', ''))}"


def _toml_key(name: str) -> str:
    """Returns a name as a TOML key, without quotes if possible."""
    is_bare = re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
    return name if is_bare else _toml_string(name)


def _toml_string(text: str) -> str:
    """Returns a text as a TOML string, which is a JSON string without surrogates."""
    written = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    return written.replace("\x7f", "\\u007f")
