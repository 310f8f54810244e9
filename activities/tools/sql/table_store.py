"""A team's tables: CSV files, served by processes of their own."""

import re
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.tools.files import Fingerprint, files_inside, fingerprint
from activities.tools.tool import ToolMisuse
from supervision.base import limits
from supervision.base.text import clean, one_line

_SQL_PROCESSES = 2  # per team: a query that runs into its timeout does not block the next run's
_SQL_MEMORY_BYTES = 256 * 1024 * 1024  # what the engine may use by its own accounting
SQL_ADDRESS_BYTES = 1536 * 1024 * 1024  # what its process may map: strings escape the engine's accounting
SQL_CELL_CHARS = 300
TABLE_VALUES = 200  # distinct values of a text column that `list_tables` shows

Json = dict[str, Any]
CHILD = "activities.tools.sql.sql_process"


@dataclass(frozen=True)
class Rows:
    """The answer to a query: texts, a flag for more rows than these, and the tables that it read."""

    columns: list[str]
    rows: list[list[str]]
    more: bool
    read: list[str]


class TableStore:
    """The tables of one set of CSV files, each named after its file.

    Processes answer queries; the runs of a Worker take turns.
    """

    def __init__(self, files: list[Path]) -> None:
        self._files = {path.stem: path for path in files}
        self._tables: list[Json] | None = None
        setup = {
            "tables": {name: str(path) for name, path in self._files.items()},
            "memory": _SQL_MEMORY_BYTES,
            "values": TABLE_VALUES,
            "rows": limits.SQL_ROWS,
            "cell": SQL_CELL_CHARS,
            "joins": limits.SQL_JOINS,
        }
        self._children = ChildProcesses(CHILD, _SQL_PROCESSES, SQL_ADDRESS_BYTES, ("start", setup))

    @property
    def names(self) -> list[str]:
        """The tables' names."""
        return list(self._files)

    async def tables(self) -> list[Json]:
        """Returns name, columns with their values or ranges, and number of rows of each table.

        Raises ValueError if a file is no table.
        """
        if self._tables is None:
            self._tables = await self._loaded(self._children.first())
        return self._tables

    async def query(self, sql: str, run_id: str = "") -> Rows:
        """Returns the rows of one SELECT. Raises ToolMisuse if it is refused or takes too much."""
        try:
            reply = await self._loaded(self._children.call(run_id, limits.SQL_TIMEOUT, "reply", sql))
        except BoundExceeded as exceeded:
            raise ToolMisuse(f"the query cannot be answered, {exceeded}: ask for less at once") from None
        if "error" in reply:
            problem = reply["error"].split("\n\nLINE ")[0]  # what follows points into the query with a caret
            raise ToolMisuse(one_line(clean(problem), limits.SENTENCE_BYTES))
        return Rows(reply["columns"], reply["rows"], reply["more"], reply["read"])

    def close(self) -> None:
        """Ends the idle processes; those at work end with their query."""
        self._children.close()

    async def _loaded(self, reply: Awaitable[Any]) -> Any:
        try:
            return await reply
        except Failed as failed:
            raise ValueError(f"the tables cannot be loaded: {failed.text}") from None


_stores: dict[tuple[Path, str], tuple[Fingerprint, TableStore]] = {}
_stores_lock = threading.Lock()


def table_store(folder: Path, pattern: str) -> TableStore:
    """Returns the store of the files that `pattern` matches in `folder`: one per process, until a file changes.

    Raises ValueError as `files_inside` does, and if a file's name cannot name a table.
    """
    files = files_inside(folder, pattern)
    for path in files:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", path.stem):
            raise ValueError(f"{path.name}: the file's name must be letters, digits and underscores to name a table")
    current = fingerprint(files)
    with _stores_lock:
        known = _stores.get((folder, pattern))
        if known is not None and known[0] == current:
            return known[1]
        _stores[folder, pattern] = (current, TableStore(files))
    if known is not None:
        known[1].close()
    return _stores[folder, pattern][1]
