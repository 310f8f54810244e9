"""A brain that works by its prompt: it keeps each rule that stands there, and errs where one is missing.

What it answers it reads in the outputs of tools and in findings, so that another file gives other answers.
"""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.scripted_model import OTHERS, Reply, Step, answer, plan, tools
from tests.sensitivity.fleet import COUNT, OPEN, ROW, SIGN

_SHIP = re.compile(r"(?:is the|of the) (?P<ship>[A-Z]\w+ [A-Z]\w+)")
_MANY = re.compile(r"ships of (?P<port>\w+) have a crew of more than (?P<least>\d+)")
_CELL = re.compile(r"^\| (?P<cell>[^|\n-][^|\n]*|-\d[^|\n]*) \|$", re.MULTILINE)
_FOUND = re.compile(r"FOUND (?P<value>-?[\d.]+|nothing)")
_TABLE = re.compile(r"table (?P<name>\w+) \((?P<columns>[^\n]*)\):")
_PERCENT = 100
_WAVERS = 10  # of a hundred questions, which luck decides
_LUCK = 60  # of a hundred of these are right


@dataclass(frozen=True)
class Clerk:
    """A brain: `luck` decides the questions that waver, of a hundred others so many go wrong as it `slips`.

    It slips `by` changing the number that it found.
    """

    luck: int
    slips: int = 0
    by: Callable[[float], float] = lambda value: value + 7

    def __call__(self, step: Step) -> Reply:
        """Returns the reply to a step."""
        if step.kind == "plan":
            question = step.prompt.partition("<goal>")[2].partition("</goal>")[0].strip()
            return plan({"id": "t1", "role": "clerk", "description": question.splitlines()[0]})
        if step.kind == "turn":
            return self._turn(step)
        if step.kind == "synthesis":
            return _answer(step.prompt)
        return OTHERS[step.kind](step)

    def _turn(self, step: Step) -> Reply:
        system, opening = str(step.body.get("system")), _words(step.body["messages"][0])
        question = opening.partition("<subtask>")[2].partition("</subtask>")[0].strip()
        offered = {tool["name"] for tool in step.body.get("tools", [])}
        if "query_data" not in offered:
            return _finish("The table could not be read: FOUND nothing.")
        if step.number == 1:
            return tools(("list_tables", {}))
        if step.number == 2:
            sql = _query(question, system, step.prompt)
            return (
                tools(("query_data", {"sql": sql})) if sql else _finish("The table has no such column: FOUND nothing.")
            )
        cells = [found["cell"] for found in _CELL.finditer("\n".join(_words(each) for each in step.body["messages"]))]
        value = _number(cells[-1]) if cells else None
        if value is None:
            return _finish("The table has no such row: FOUND nothing.")
        value = abs(value) if SIGN not in system else value
        return _finish(f"FOUND {self._slipped(question, value):g} in the table.")

    def _slipped(self, question: str, value: float) -> float:
        firm, chance = (zlib.crc32(f"{salt}{question}".encode()) % _PERCENT for salt in ("wavers", self.luck))
        is_unlucky = firm < _WAVERS and chance >= _LUCK
        slips = zlib.crc32(f"slips{question}".encode()) % _PERCENT < self.slips
        return self.by(value) if is_unlucky or slips else value


def _query(question: str, system: str, listed: str) -> str:
    """Returns the query for a question; empty where the table has no such column."""
    found = _TABLE.search(listed)
    if found is None:
        return ""
    table, columns = found["name"], found["columns"]
    if many := _MANY.search(question):
        chosen = f" AND port = '{many['port']}'" if COUNT in system else ""
        return f"SELECT count(*) AS n FROM {table} WHERE crew > {many['least']}{chosen}"
    wanted = {"How long": "length_m", "balance": "balance_eur"}
    column = next((name for words, name in wanted.items() if words in question), "call_sign")
    if column not in columns:
        if OPEN in system:
            return ""
        column = "crew"
    ship = _SHIP.search(question)
    where = f" WHERE ship = '{ship['ship']}'" if ship and ROW in system else ""
    return f"SELECT {column} FROM {table}{where} LIMIT 1"


def _finish(finding: str) -> Reply:
    told = {"finding": finding, "limitations": [], "confidence": 0.9, "outcome": "done", "summary": finding}
    return tools(("finish", told))


def _answer(prompt: str) -> Reply:
    found = _FOUND.search(prompt)
    value = None if found is None else _number(found["value"])
    goal = prompt.partition("<goal>")[2].partition("</goal>")[0]
    fields: dict[str, Any] = {"value": value}
    fields |= {} if "call sign" in goal else {"scale": ""}
    if value is not None and "call sign" in goal:
        fields["value"] = f"{value:g}"
    told = f"It is {value:g}, as found [t1]." if value is not None else "It is not known [t1]."
    return answer(told, answer_json=fields)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", ""))
    except ValueError:
        return None


def _words(message: dict[str, Any]) -> str:
    """Returns all text of a message, that of tool results, too."""
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(_part(block) for block in content)


def _part(block: dict[str, Any]) -> str:
    inner = block.get("content", "")
    if isinstance(inner, list):
        inner = "\n".join(str(each.get("text", "")) for each in inner)
    return str(block.get("text") or inner)
