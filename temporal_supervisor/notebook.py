"""Questions from a notebook: the plan as a tree in its cell, then the answer with its table.

    from temporal_supervisor.notebook import ask
    answer = await ask("What is the total revenue in the South?", data="shop")
    answer.rows, answer.result.gaps

Server and Workers run elsewhere, as for `temporal-supervisor run`, whose options `ask` takes.
"""

import csv
from collections.abc import Callable
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from rich.console import Console

from temporal_supervisor.console.base.command import Access, CommandFailed, web_address
from temporal_supervisor.console.base.terminal import safe, safe_line
from temporal_supervisor.console.commands.run_commands import start_from_options
from temporal_supervisor.console.view.answer_text import rows_of
from temporal_supervisor.console.view.event_lines import Line
from temporal_supervisor.console.view.follow import follow
from temporal_supervisor.console.view.live_view import LINE_CHARS, Picture, Screen, draw
from temporal_supervisor.messages import NoRun
from temporal_supervisor.outcomes import RunOutcome
from temporal_supervisor.supervision.contract.result import RunResult
from temporal_supervisor.supervision.results.answer_table import markdown_table

_WIDTH, _HEIGHT = 110, 30  # of the tree in a cell
_ROWS = 50  # of a table below an answer

Shows = Callable[[dict[str, str]], None]
"""Puts forms by their media types into the cell, in place of the last ones."""


class ShownAnswer:
    """The end of a run in a notebook; `rows` is its table, if it has one.

    That is the `table` that the run made of its items, a CSV text, else the table in the answer. If
    pandas is installed, `to_pandas()` returns the rows as a DataFrame.
    """

    def __init__(self, run_id: str, outcome: RunOutcome, table: str = "") -> None:
        self.run_id = run_id
        self.result: RunResult | None = outcome.result
        self._outcome = outcome
        self._table = table

    @property
    def rows(self) -> list[dict[str, JsonValue]]:
        """The rows of the table, empty without one; cells from CSV are texts."""
        if self._table:
            return [dict(row) for row in csv.DictReader(StringIO(self._table))]
        return (rows_of(self.result.answer_json) if self.result else None) or []

    def __str__(self) -> str:
        return safe(self.result.answer) if self.result else self._outcome.sentence

    def _repr_markdown_(self) -> str:
        parts = [
            str(self),
            markdown_table(self.rows[:_ROWS]),
            safe_line(self._outcome.sentence, LINE_CHARS),
        ]
        more = f"and {len(self.rows) - _ROWS:,} more rows" if len(self.rows) > _ROWS else ""
        return "\n\n".join(filter(None, [*parts, more]))

    def __getattr__(self, name: str) -> Any:
        if name != "to_pandas" or find_spec("pandas") is None:
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
        return self._frame

    def _frame(self) -> Any:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

        if self._table:
            return pandas.read_csv(StringIO(self._table))
        return pandas.DataFrame(self.rows)


class CellScreen(Screen):
    """A followed run in a notebook's cell: its tree is redrawn, events are left out."""

    def __init__(self, shows: Shows) -> None:
        super().__init__(Console(width=_WIDTH, height=_HEIGHT))
        self._shows = shows

    def __enter__(self) -> "CellScreen":
        return self

    def log(self, line: Line, limit: int = LINE_CHARS) -> None:
        """Ignores events, because the tree shows the state of the run."""

    def update(self, picture: Picture) -> None:
        """Draws the tree in place of the last one."""
        self._shows(cell_of(picture))


def cell_of(picture: Picture) -> dict[str, str]:
    """Returns a picture for a notebook, as HTML and as text."""
    screen = Console(width=_WIDTH, force_jupyter=False, record=True, file=StringIO())
    screen.print(draw(picture, _WIDTH, _HEIGHT))
    html = screen.export_html(inline_styles=True, code_format="<pre>{code}</pre>", clear=False)
    return {"text/html": html, "text/plain": screen.export_text()}


async def ask(goal: str, *, data: str | Path | None = None, **fields: Any) -> ShownAnswer:
    """Starts a run, shows it until it ends, and returns its answer.

    `data` is a folder or a file. `fields` are options of `temporal-supervisor run`, such as `team`.
    Raises RuntimeError with the message of the command for a run that cannot start or is not found.
    """
    access = Access()
    try:
        folder = [Path(data)] if data else None
        run, _ = await start_from_options(access, {"goal": goal, "data": folder, **fields})
        web = web_address(run.client, run.id)
        store = await access.store_or_none()
        outcome = await follow(run, CellScreen(_display()), store, web)
    except (CommandFailed, NoRun) as failed:
        raise RuntimeError(str(failed)) from None

    tables = outcome.result.tables if outcome.result else []
    table = ""
    if store is not None and len(tables) == 1:
        table = (await store.get(tables[0].ref)).decode()
    return ShownAnswer(run.id, outcome, table)


def _display() -> Shows:
    """Returns the function that writes into the cell; outside a notebook it does nothing."""
    if find_spec("IPython") is None:
        return lambda _: None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda forms: handle.update(forms, raw=True) if handle else None
