"""A team's tables: CSV files, served by processes of their own."""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from activities.tools.clean import clean
from activities.tools.files import Fingerprint, files_inside, fingerprint
from activities.tools.tool import ToolMisuse
from supervision import limits
from supervision.text import one_line

Json = dict[str, Any]
T = TypeVar("T")
_Process = subprocess.Popen[bytes]
_SCRIPT = Path(__file__).with_name("sql_process.py")


@dataclass(frozen=True)
class Rows:
    """The answer to a query: texts, and whether there were more rows than are kept."""

    columns: list[str]
    rows: list[list[str]]
    more: bool


class TableStore:
    """The tables of one set of CSV files, each named after its file.

    Up to `limits.SQL_PROCESSES` processes answer queries. One that dies, of a timeout or for lack of memory,
    is replaced at the next query.
    """

    def __init__(self, files: list[Path]) -> None:
        self._files = {path.stem: path for path in files}
        self._threads = ThreadPoolExecutor(limits.SQL_PROCESSES, thread_name_prefix="sql")
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._tables: list[Json] | None = None
        self._closed = False

    @property
    def names(self) -> list[str]:
        """The tables' names."""
        return list(self._files)

    async def tables(self) -> list[Json]:
        """Returns name, columns with their values or ranges, and number of rows of each table.

        Raises ValueError if a file is no table.
        """
        if self._tables is None:
            await self._in_thread(lambda: self._give_back(self._take()))
        return self._tables or []

    async def query(self, sql: str) -> Rows:
        """Returns the rows of one SELECT. Raises ToolMisuse if the engine refuses it or it takes too much."""
        reply = await self._in_thread(lambda: self._query(sql))
        if reply is None:
            seconds = limits.SQL_TIMEOUT.total_seconds()
            raise ToolMisuse(f"the query took longer than {seconds:g} s or too much memory: ask for less at once")
        if "error" in reply:
            problem = reply["error"].split("\n\nLINE ")[0]  # what follows points into the query with a caret
            raise ToolMisuse(one_line(clean(problem), limits.COMPLAINT_BYTES))
        return Rows(reply["columns"], reply["rows"], reply["more"])

    def close(self) -> None:
        """Ends the idle processes; those at work end with their query."""
        self._closed = True
        while not self._idle.empty():
            _end(self._idle.get())

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _query(self, sql: str) -> Json | None:
        process = self._take()
        try:
            reply = _ask(process, sql)
        except OSError:  # it died before: the pipe is closed
            reply = None
        if reply is None:
            _end(process)
        else:
            self._give_back(process)
        return reply

    def _take(self) -> _Process:
        if not self._idle.empty():  # no more threads than processes: nobody else can empty it now
            return self._idle.get()
        process = self._start()
        reply = _read(process) or {"error": "the process that loads them ended"}
        if "error" in reply:
            _end(process)
            raise ValueError(f"the tables cannot be loaded: {reply['error']}")
        self._tables = reply["tables"]
        return process

    def _start(self) -> _Process:
        setup = {
            "tables": {name: str(path) for name, path in self._files.items()},
            "memory": limits.SQL_MEMORY_BYTES,
            "address": limits.SQL_ADDRESS_BYTES,
            "seconds": limits.SQL_TIMEOUT.total_seconds(),
            "start_seconds": limits.SQL_START_TIMEOUT.total_seconds(),
            "values": limits.TABLE_VALUES,
            "rows": limits.SQL_ROWS,
            "cell": limits.SQL_CELL_CHARS,
        }
        return subprocess.Popen(
            [sys.executable, "-I", str(_SCRIPT), json.dumps(setup)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TMPDIR": tempfile.gettempdir()},  # no key of the Worker reaches a process that runs a model's SQL
            start_new_session=True,  # Ctrl-C in a terminal is for the Worker, which ends this one
        )

    def _give_back(self, process: _Process) -> None:
        if self._closed:
            _end(process)
        else:
            self._idle.put(process)


def _ask(process: _Process, sql: str) -> Json | None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(sql).encode() + b"\n")
    process.stdin.flush()
    return _read(process)


def _read(process: _Process) -> Json | None:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.endswith(b"\n"):  # the process ended, perhaps while writing
        return None
    reply: Json = json.loads(line)
    return reply


def _end(process: _Process) -> None:
    process.kill()
    process.communicate()


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
