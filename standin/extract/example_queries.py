"""SQL for a subtask: the example that shares most words with it, with the names and times of the subtask."""

import re
from dataclasses import dataclass
from html import unescape

from standin.extract.text.tables import Table
from standin.extract.text.words import key_stems, shared, stems
from supervision.prompt_marks import EXAMPLE

_ROWS = 50  # of a query without an example: enough to compare, short enough for a conversation
_FURTHER = 2  # key words that the first example leaves open make one over another table worth a query
_EXAMPLE = re.compile(rf'<{EXAMPLE} question="([^"]*)">(.*?)</{EXAMPLE}>', re.DOTALL)
_CONDITION = re.compile(r"((?:\w+\.)?(\w+))\s*(?:=\s*('(?:[^']|'')*')|\bIN\s*\(([^()]*)\))", re.IGNORECASE)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_TIME = re.compile(rf"(?<![\d.]){_YEAR}(?:-(?:0[1-9]|1[0-2]))?(?!\d)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\.?,?\s+({_YEAR})\b", re.IGNORECASE)
_NOBODY = "<nobody>"  # where the subtask names nothing for a condition
_OPEN_END = re.compile(r"\b(since|after)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Example:
    """A question and the query that answers it, as a tool's output shows them."""

    question: str
    sql: str


@dataclass(frozen=True)
class _Candidate:
    table: str
    sql: str
    covered: set[str]
    fit: int = 0


def parse_examples(text: str) -> list[Example]:
    """Returns the examples in a tool's output."""
    return [Example(unescape(question), sql.strip()) for question, sql in _EXAMPLE.findall(text)]


def write_queries(tables: list[Table], examples: list[Example], focus: str, context: str = "") -> list[str]:
    """Returns one SELECT per table that the subtask is about, the best first; none if it is about none."""
    wanted = [stem for stem in key_stems(focus) if not stem.isdigit()]
    adapted = [_adapted(table, example, wanted, focus, context) for table in tables for example in examples]
    every = [one for one in adapted if one] + [_plain(table, wanted, focus, context) for table in tables]
    left, chosen = set(wanted), list[_Candidate]()
    while every:
        best = max(every, key=lambda one: (len(one.covered & left), one.fit))
        if len(best.covered & left) < (_FURTHER if chosen else 1):
            break
        chosen.append(best)
        left -= best.covered
        every = [one for one in every if one.table != best.table]
    return [one.sql for one in chosen]


def simpler(tables: list[Table], failed: str, focus: str, context: str) -> str | None:
    """Returns another try for a query that failed or found nothing: all times of what is named; None if that is it."""
    table = next((table for table in tables if _reads(failed, table)), None)
    again = _select(table, focus, context, timed=False) if table else failed
    return again if again != failed else None


def times_in(text: str) -> list[str]:
    """Returns the years (`YYYY`) and months (`YYYY-MM`) that `text` names, in order of time."""
    dated = _MONTH.sub(lambda match: f"{match[2]}-{_MONTHS.index(match[1].lower()) + 1:02d}", text)
    return sorted(set(_TIME.findall(dated)))


def named(values: list[str], text: str) -> list[str]:
    """Returns the values that `text` names in full, else those named by a word that no other value has."""
    left = f" {' '.join(stems(text))} "
    whole = set()
    for value in sorted(values, key=len, reverse=True):  # a part of a longer name is not a name
        phrase = f" {' '.join(stems(value))} "
        if phrase.strip() and phrase in left and (len(value) > 3 or value in text):
            whole.add(value)
            left = left.replace(phrase, " , ")
    if not whole:
        keys = {value: key_stems(value) for value in values}
        count = [stem for own in keys.values() for stem in own]
        whole = {value for value, own in keys.items() if any(f" {s} " in left and count.count(s) == 1 for s in own)}
    return [value for value in values if value in whole]


def _adapted(table: Table, example: Example, wanted: list[str], focus: str, context: str) -> _Candidate | None:
    """The example with the names and times of the subtask in place of its own; None if they lack."""
    if not _reads(example.sql, table):
        return None
    given, own = _times(table, focus, context), times_in(example.question)

    def condition(match: re.Match[str]) -> str:
        literals = [text.replace("''", "'") for text in _LITERAL.findall(match[3] or match[4] or "")]
        if match[2] not in table.values or not named(literals, example.question):
            return match[0]
        values = named(table.values[match[2]], focus) or named(table.values[match[2]], context)
        return _one_of(match[1], values) if values else _NOBODY

    def time(match: re.Match[str]) -> str:
        if match[0] not in own or not given:
            return match[0]
        at = own.index(match[0]) / max(1, len(own) - 1) if len(own) > 1 else 1
        return _like(given[round(at * (len(given) - 1))], match[0], last=at > 0)

    sql = _TIME.sub(time, _CONDITION.sub(condition, example.sql))
    names = [value for values in table.values.values() for value in values if _quoted(value) in sql]
    same_times = [len(moment) for moment in own] == [len(moment) for moment in times_in(focus)]
    covered = shared(wanted, " ".join([example.question, *names]))
    return _Candidate(table.name, sql, covered, 1 + len(names) + same_times) if _NOBODY not in sql else None


def _reads(sql: str, table: Table) -> bool:
    return re.search(rf"\b{re.escape(table.name)}\b", sql) is not None


def _plain(table: Table, wanted: list[str], focus: str, context: str) -> _Candidate:
    names = [value for values in table.values.values() for value in named(values, focus)]
    about = " ".join([table.text.replace("_", " "), *names])
    return _Candidate(table.name, _select(table, focus, context), shared(wanted, about))


def _select(table: Table, focus: str, context: str, timed: bool = True) -> str:
    """All columns of the rows that the subtask names."""
    clauses = []
    for column, values in table.values.items():
        if given := named(values, focus) or named(values, context):
            clauses.append(_one_of(column, given))
    times = times_in(focus) or times_in(context)
    if timed and times and table.time:
        column, low, _ = table.time
        first, last = _like(times[0], low[:7]), _like(times[-1], low[:7], last=True)
        span = (f"DATE '{first}-01'", f"DATE '{last}-01'") if "-" in low else (first, last)
        clauses.append(f"{column} BETWEEN {span[0]} AND {span[1]}")
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    return f"SELECT * FROM {table.name}{where} ORDER BY 1 LIMIT {_ROWS}"


def _times(table: Table, focus: str, context: str) -> list[str]:
    """The times that are named; of a span without an end, or if there are none, those of the table."""
    given = times_in(focus) or times_in(context)
    ends = [moment[:7] for moment in table.time[1:]] if table.time else []
    if len(given) == 1 and ends and _OPEN_END.search(f"{focus} {context}"):
        return [*given, ends[1]]
    return given or ends


def _like(time: str, pattern: str, last: bool = False) -> str:
    """A time as a year or as a month: the first of its year, or the last."""
    if "-" not in pattern:
        return time[:4]
    return time if "-" in time else f"{time}-{'12' if last else '01'}"


def _one_of(column: str, values: list[str]) -> str:
    return f"{column} IN ({', '.join(map(_quoted, values))})"


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
