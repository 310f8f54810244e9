"""The SQL process without its check of the statement: the engine alone must hold, too."""

from types import SimpleNamespace
from typing import Any

from activities.tools.sql import sql_process


def main(setup: dict[str, Any]) -> None:
    sql_process.check = lambda sql, tables, joins: SimpleNamespace(find_all=lambda kind: [])  # type: ignore[assignment, return-value]
    sql_process.main(setup)
