"""The tables of a file, as the tools open them."""

from pathlib import Path

from activities.files.file_cache import FileCache, copy_file, local_file
from activities.tools.sql.sql_tools import TableStore

CACHE = FileCache()
"""The converted files of the tests of this process."""


async def tables_of(*paths: Path) -> TableStore:
    """Returns the store of the tables in files."""
    files = [local_file(path.name, path) for path in paths]
    return TableStore(await CACHE.reports(files, "test", copy_file))
