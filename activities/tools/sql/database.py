"""A PostgreSQL database: its tables as the server describes them, and queries over them in processes of their own."""

import time
from datetime import timedelta
from importlib.util import find_spec
from typing import Any

from activities.bounded.child_processes import BoundExceeded, ChildProcesses, Failed
from activities.tools.files import Files
from activities.tools.secrets import Secrets
from activities.tools.tool import ToolMisuse
from supervision.base import limits
from supervision.base.text import clean, one_line

_PROCESSES = 2
_MEMORY_BYTES = 256 * 1024 * 1024  # of a process: 200 rows of large texts
_SECONDS = {"connect": 5, "statement": 10, "lock": 1}  # of a server that others use, too
_TIME = timedelta(seconds=20)  # of a question: connection and statements
_CELL_CHARS = 300
_DESCRIBED_SECONDS = 300  # tables are rarely made or changed

Json = dict[str, Any]
CHILD = "activities.tools.sql.postgres_process"


class Database:
    """The tables that the user in a connection string may read. `url` names the secret that is this string."""

    def __init__(self, url: str, secrets: Secrets) -> None:
        """Raises ValueError if the driver is not installed."""
        if find_spec("asyncpg") is None:
            raise ValueError("PostgreSQL needs a driver: pip install temporal-supervisor[postgres]")
        self.tables: list[Json] = []
        self.names: list[str] = []
        self.unread: list[str] = []
        self._name, self._secrets = url, secrets
        self._described = float("-inf")
        self._children = ChildProcesses(CHILD, _PROCESSES, _MEMORY_BYTES, seconds=_TIME.total_seconds())

    async def get(self, run: Files | None = None) -> "Database":
        """Returns itself with its tables described. Raises ToolMisuse with the reason if they cannot be now."""
        if time.monotonic() - self._described > _DESCRIBED_SECONDS:
            tables = (await self._asked("", "describe"))["tables"]
            self.tables = [{**table, "source": f"{self._name}, table {table['name']}"} for table in tables]
            self.names = [table["name"] for table in tables]
            self._described = time.monotonic()
        return self

    async def query(self, sql: str, run_id: str = "") -> Json:
        """Returns `columns`, `rows` of texts, `more` and the tables `read`. Raises ToolMisuse."""
        bounds = {"rows": limits.SQL_ROWS, "cell": _CELL_CHARS, "joins": limits.SQL_JOINS}
        return await self._asked(run_id, "reply", sql, self.names, bounds)

    def close(self) -> None:
        """Ends the idle processes; those at work end with their question."""
        self._children.close()

    async def _asked(self, owner: str, function: str, *arguments: Any) -> Json:
        problem = f"The database {self._name} cannot be read now: "
        try:
            url = self._secrets.value(self._name)
            reply: Json = await self._children.call(owner, _TIME, function, url, _SECONDS, *arguments)
        except BoundExceeded as exceeded:
            raise ToolMisuse(f"The query cannot be answered, because {exceeded}. Ask for less at once.") from None
        except Failed:  # its text is that of any exception
            raise ToolMisuse(f"{problem}its process failed.") from None
        except ValueError as error:
            raise ToolMisuse(f"{problem}{error}") from None
        if "error" in reply:
            down = function == "describe" or "down" in reply
            raise ToolMisuse(f"{problem if down else ''}{one_line(clean(reply['error']), limits.SENTENCE_BYTES)}")
        return reply
