"""A table of ships with questions about it, and the team that answers them: what a change is planted in."""

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from temporal_supervisor.supervision.scores.question_sets import EvalQuestion

HEAD = ("ship", "port", "length_m", "crew", "balance_eur")
_FIRST = ("Grey", "Ivory", "Amber", "Silver", "Russet", "Umber", "Saffron", "Cobalt")
_SECOND = ("Heron", "Petrel", "Curlew", "Dunlin", "Godwit", "Plover", "Gannet", "Whimbrel")
_PORTS = ("Vesterhavn", "Sandvig", "Esbjerg", "Ronne", "Hirtshals")
_SEED = 45
_EACH = 10  # questions of a kind

ROW = "Query the row of the ship that the question names."
SIGN = "Give each number with its sign, as the table has it."
COUNT = "Count with count(*) over the port that the question names."
OPEN = "If the table has no such column, say that it is not known."
RULES = (ROW, SIGN, COUNT, OPEN)


@dataclass(frozen=True)
class Fleet:
    """The rows of the table, by the names of its columns."""

    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self) -> str:
        """Returns the table as CSV."""
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows([self.head, *self.rows])
        return written.getvalue()

    def changed(self, column: str, change: Any) -> "Fleet":
        """Returns the table with another value in each cell of a column."""
        at = self.head.index(column)
        rows = tuple((*row[:at], change(row[at]), *row[at + 1 :]) for row in self.rows)
        return replace(self, rows=rows)


def fleet() -> Fleet:
    """Returns the table, always the same one."""
    drawn = Random(_SEED)
    names = [f"{first} {second}" for first in _FIRST for second in _SECOND]
    rows = []
    for number, name in enumerate(names):
        balance = drawn.randint(1_000, 90_000) * (-1 if number % 2 else 1)
        rows.append((name, drawn.choice(_PORTS), drawn.randint(30, 400), drawn.randint(14, 90), balance))
    return Fleet(HEAD, tuple(rows))


def questions(table: Fleet) -> list[EvalQuestion]:
    """Returns questions of four kinds: a value, one with a sign, a count, and one that has no answer."""
    found = list[dict[str, Any]]()
    by_port = {port: sum(row[1] == port for row in table.rows) for port in _PORTS}
    crews = [(port, crew) for port in _PORTS for crew in (20, 40)]
    for at in range(_EACH):
        name, _, length, _, _ = table.rows[3 * at]
        in_debt = table.rows[2 * at + 1]
        port, least = crews[at]
        many = sum(row[1] == port and row[3] > least for row in table.rows)
        found += [
            {"question": f"How long is the {name}, in metres?", "answer": _number(length)},
            {"question": f"What is the balance of the {in_debt[0]}, in euros?", "answer": _number(in_debt[4])},
            {"question": f"How many ships of {port} have a crew of more than {least}?", "answer": _number(many)},
            {"question": f"What is the call sign of the {name}?", "answer": {"kind": "none"}},
        ]
    if len(by_port) != len(_PORTS):
        raise ValueError("each port has ships")
    return [EvalQuestion.model_validate({"id": f"q{at}", "data": "fleet.csv", **each}) for at, each in enumerate(found)]


def _number(value: float) -> dict[str, Any]:
    return {"kind": "number", "value": value}


def team(rules: tuple[str, ...] = RULES, tools: tuple[str, ...] = ("list_tables", "query_data")) -> dict[str, Any]:
    """Returns the team whose only role works by these rules."""
    prompt = "\n".join(["You answer a question about ships from the table.", *(f"- {rule}" for rule in rules)])
    role = {
        "name": "clerk",
        "description": "Answers from the table of ships.",
        "system_prompt": prompt,
        "tools": [f"files/{tool}" for tool in tools],
    }
    return {"name": "fleet", "generalist": "clerk", "roles": [role]}


def written(table: Fleet, folder: Path) -> Path:
    """Writes the table and returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "fleet.csv"
    file.write_text(table.text(), encoding="utf-8")
    return file
