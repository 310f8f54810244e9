"""The SQL process without its check of the statement: the engine alone must hold, too."""

from types import SimpleNamespace

from activities.tools.sql import sql_process
from activities.tools.sql.sql_process import reply

__all__ = ["reply"]

passed = SimpleNamespace(find_all=lambda kind: [])
setattr(sql_process, "check", lambda sql, tables: passed)  # noqa: B010
