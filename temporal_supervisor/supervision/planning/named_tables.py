"""The tables of a catalogue that a text names, so that a role that queries gets the subtask.

A catalogue is the list of a team's data in prompts, with a line for each table and document.
"""

import re
from collections.abc import Iterable

_TABLE = re.compile(r"^- table (?P<name>.+?) \(", re.MULTILINE)
_ABOUT = ("- of table ", "- a word of the owner ")  # how lines begin that only describe tables
_QUOTES = "\"'`“”„«»"
_BESIDE = re.compile(r"\btables?\b", re.IGNORECASE)
_NEAR_CHARS = 12  # before and after a name: `table "orders"`, `the orders table`


def table_lines(catalogue: str) -> dict[str, str]:
    """Returns the lines of tables in a catalogue, by the table's name."""
    lines = (line for line in catalogue.splitlines() if line.startswith("- table "))
    matches = [(_TABLE.match(line), line) for line in lines]
    return {match["name"]: line for match, line in matches if match}


def only_table(catalogue: str) -> str | None:
    """Returns the table of a catalogue without other data; None for any other catalogue."""
    tables = table_lines(catalogue)
    others = [line for line in catalogue.splitlines() if not line.startswith(("- table ", *_ABOUT))]
    return next(iter(tables)) if len(tables) == 1 and not others else None


def lines_for(text: str, catalogue: str, room: int) -> str:
    """Returns the lines of the named tables, else of all tables, in `room` characters."""
    tables = table_lines(catalogue)
    lines = [tables[name] for name in named_tables(text, tables) or tables]
    return "\n".join(lines)[:room]


def named_tables(text: str, tables: Iterable[str]) -> list[str]:
    """Returns the tables that a text names.

    A name that is an ordinary word counts only in quotes or next to the word `table`: "all orders"
    does not name a table `orders`.
    """
    return [table for table in tables if _names(text, table)]


def _names(text: str, table: str) -> bool:
    pattern = rf"(?<!\w){re.escape(table)}(?!\w)"
    for match in re.finditer(pattern, text, re.IGNORECASE):
        if not table.isalpha():  # it has an underscore or a digit, as no word has
            return True
        before, after = text[: match.start()], text[match.end() :]
        if before[-1:] in _QUOTES and after[:1] in _QUOTES and before and after:
            return True
        if _BESIDE.search(f"{before[-_NEAR_CHARS:]} {after[:_NEAR_CHARS]}"):
            return True
    return False
