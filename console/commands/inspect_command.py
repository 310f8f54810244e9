"""The command `inspect`: what a run would see of files and folders."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from activities.files.file_cache import FileCache, FileReport, local_file
from activities.files.manifest import DataFile
from console.command import BAD_INPUT, CommandFailed
from console.run.request_options import data_files
from console.terminal import Report, counted, safe_line
from runtime.paths import cache_dir
from supervision.base import limits

_OWNER = "inspect"
_SHOWN_VALUES = 5
_SHOWN_COLUMNS = 40  # of a table; more scroll everything else away


async def inspect_files(paths: list[Path]) -> Report:
    """Returns the tables and documents in the files, and for each that cannot be read the reason."""
    reports = await reports_on(data_files(paths))
    return Report(reports, lambda screen: _rows(reports, screen))


async def reports_on(files: list[DataFile]) -> list[FileReport]:
    """Returns what each file holds. Raises CommandFailed if one cannot be opened."""
    cache = FileCache(cache_dir())
    try:
        return await cache.reports([local_file(*file) for file in files], _OWNER)
    except OSError as error:
        raise CommandFailed(BAD_INPUT, f"{error.filename} can't be read: {error.strerror}") from None
    finally:
        cache.close()


def _rows(reports: list[FileReport], screen: Console) -> Iterable[str]:
    for report in reports:
        if report.problem:
            yield f"✘ {report.name}: {report.problem}"
        if report.document:
            pages = f"{counted(report.document['pages'], 'page')}, " if report.document["pages"] else ""
            title = f": {safe_line(report.document['title'], 80)}" if report.document["title"] else ""
            yield f"{report.name}: a document of {pages}{counted(report.document['chars'], 'character')}{title}"
        for table in report.tables:
            yield f"{report.name}: table {table['name']}, {counted(table['rows'], 'row')}"
            yield from (f"    {_column(column)}" for column in table["columns"][:_SHOWN_COLUMNS])
            if (more := len(table["columns"]) - _SHOWN_COLUMNS) > 0:
                yield f"    and {counted(more, 'more column')}: `--json` shows all"
            yield from (f"  ! {safe_line(note, limits.SENTENCE_BYTES)}" for note in table["notes"])
    tables = [table for report in reports for table in report.tables]
    documents = sum(report.document is not None for report in reports)
    unread = sum(report.problem is not None for report in reports)
    rows = counted(sum(table["rows"] for table in tables), "row")
    ending = f", {unread} that can't be read" if unread else ""
    yield f"{counted(len(tables), 'table')} with {rows}, {counted(documents, 'document')}{ending}"


def _column(column: dict[str, Any]) -> str:
    """Returns one line on a column: its name as a query has to write it, and its range or some values."""
    name = safe_line(column["sql"], 80)
    if "range" in column:
        low, high = column["range"]
        return f"{name} {column['type']}: {low} to {high}"
    values = [safe_line(value, 30) for value in column["values"][:_SHOWN_VALUES]]
    left = len(column["values"]) - len(values) + column["more"]
    return f"{name}: {', '.join(values)}{f' and {left:,} more' if left else ''}"
