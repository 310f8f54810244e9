"""The command `doctor`: one row for each thing that a run needs, with the fix if something is wrong."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from shlex import quote

from rich.console import Console
from rich.text import Text
from temporalio.service import RPCError

from activities.store.artifacts import ArtifactUnavailable
from console.access import Access
from console.checks.check_row import CheckRow, Level
from console.checks.model_check import model_rows
from console.checks.server_checks import server_rows
from console.terminal import print_json, wrapped
from runtime.connection import ConnectionFailed
from runtime.paths import cache_dir
from supervision.trust import is_readable_by_others

_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_NAME_COLUMN, _TEXT_COLUMN = 9, 32  # where the names begin, and the texts


async def examine(access: Access, console: Console, *, quiet: bool, as_json: bool) -> int:
    """Prints the rows, with `quiet` only warnings and problems. Returns 1 if there is a problem."""
    rows = []
    async for row in _rows(access):
        rows.append(row)
        if not as_json and (row.level != "ok" or not quiet):
            _print_row(row, console)
    if as_json:
        print_json([asdict(row) for row in rows if row.level != "ok" or not quiet])
    return 1 if any(row.level == "problem" for row in rows) else 0


def _print_row(row: CheckRow, console: Console) -> None:
    room = console.width - _TEXT_COLUMN
    begins = Text.assemble((f"{row.level:<{_NAME_COLUMN}}", _STYLES[row.level]), row.name)
    begins.pad_right(max(1, _TEXT_COLUMN - begins.cell_len))
    for text in [*wrapped(row.text, room, ""), *wrapped(row.fix, room, "dim")]:
        further_left = max(0, console.width - text.cell_len)  # a long command
        begins.truncate(min(_TEXT_COLUMN, further_left) if not begins.plain.strip() else _TEXT_COLUMN)
        console.print(Text.assemble(begins, text), soft_wrap=True)
        begins = Text(" " * _TEXT_COLUMN)


async def _rows(access: Access) -> AsyncIterator[CheckRow]:
    async for row in model_rows(access.settings):
        yield row
    yield _files()
    store_id = None
    try:
        store_id = await access.store.identity()
        yield CheckRow("ok", "artifact store", f"{access.store.url}, id {store_id}")
    except (ArtifactUnavailable, ValueError) as error:
        yield CheckRow("problem", "artifact store", str(error), _store_fix(access))
    try:
        client = await access.client()
    except ConnectionFailed as error:
        yield CheckRow("problem", "server", str(error))
        return
    try:
        async for row in server_rows(client, store_id, access.settings.teams_folders):
            yield row
    except RPCError as error:
        yield CheckRow("problem", "server", f"it stopped answering: {error.message}")


def _store_fix(access: Access) -> str:
    url = access.settings.artifacts_url
    if "://" in url:
        return "create that bucket, check its credentials, or let SUPERVISOR_ARTIFACTS_URL name another one"
    return f"make {url} a folder of yours, or let SUPERVISOR_ARTIFACTS_URL name another one"


def _files() -> CheckRow:
    """Returns a row that warns if other users of this machine can read the cache folder."""
    folder = cache_dir()
    if is_readable_by_others(folder.stat()):
        return CheckRow(
            "warning", "cache folder", f"other users can look into {folder}", f"`chmod 700 {quote(str(folder))}`"
        )
    return CheckRow("ok", "cache folder", f"{folder}, yours alone")
