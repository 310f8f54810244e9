"""SQL for a subtask: the example that shares most words with it, with the names and times of the subtask."""

import re
from dataclasses import dataclass
from html import unescape

from standin.extract.tables import Table
from standin.extract.words import key_stems, shared, stems
from supervision.base.prompt_marks import EXAMPLE

_ROWS = 200  # of a query without an example: as many as a tool shows, so that nothing is missing in between
_FURTHER = 2  # key words that the first example leaves open make one over another table worth a query
_EXAMPLE = re.compile(rf'<{EXAMPLE} question="([^"]*)">(.*?)</{EXAMPLE}>', re.DOTALL)
_CONDITION = re.compile(r"(?<!\w)((?:\w++\.)?(\w++))\s*+(?:=\s*('(?:[^']|'')*')|\bIN\s*\(([^()]*)\))", re.IGNORECASE)
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_YEAR = r"(?:1[5-9]|20|21)\d\d"
_TIME = re.compile(rf"(?<![\d.]){_YEAR}(?:-(?:0[1-9]|1[0-2]))?(?!\d)")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})[a-z]*\.?,?\s+({_YEAR})\b", re.IGNORECASE)


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
    times = times_in(focus) or times_in(context)
    every, left, chosen = list[_Candidate](), set(wanted), list[str]()
    for table in tables:
        names = {column: named(values, focus) or named(values, context) for column, values in table.values.items()}
        every += [one for example in examples if (one := _adapted(table, example, names, times, wanted))]
        every.append(_plain(table, names, times, wanted))
    while every:
        best = max(every, key=lambda one: (len(one.covered & left), one.fit))
        if len(best.covered & left) < (_FURTHER if chosen else 1):
            break
        chosen.append(best.sql)
        left -= best.covered
        every = [one for one in every if one.table != best.table]
    return chosen


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


def _adapted(
    table: Table, example: Example, names: dict[str, list[str]], times: list[str], wanted: list[str]
) -> _Candidate | None:
    """The example with the names and times of the subtask in place of its own; None if names lack."""
    if not re.search(rf"\b{re.escape(table.name)}\b", example.sql):
        return None
    own, ends = times_in(example.question), [moment[:7] for moment in table.time[1:]] if table.time else []
    given = [*times, *ends[len(times) :]] if len(times) < len(own) else times
    lacking, used = list[str](), list[str]()

    def condition(match: re.Match[str]) -> str:
        literals = [text.replace("''", "'") for text in _LITERAL.findall(match[3] or match[4] or "")]
        if match[2] not in names or not named(literals, example.question):
            return match[0]
        (used if names[match[2]] else lacking).extend(names[match[2]] or literals)
        return _one_of(match[1], names[match[2]])

    def time(match: re.Match[str]) -> str:
        if match[0] not in own or not given:
            return match[0]
        last = match[0] == own[-1]
        return _like(given[-1 if last else min(own.index(match[0]), len(given) - 1)], match[0], last)

    sql = _TIME.sub(time, _CONDITION.sub(condition, example.sql))
    covered = shared(wanted, " ".join([example.question, *used]))
    return None if lacking else _Candidate(table.name, sql, covered, 1 + len(used) + (len(own) == len(times)))


def _plain(table: Table, names: dict[str, list[str]], times: list[str], wanted: list[str]) -> _Candidate:
    """All columns of the rows that the subtask names."""
    clauses = [_one_of(column, values) for column, values in names.items() if values]
    if times and table.time:
        column, low, _ = table.time
        first, last = _like(times[0], low), _like(times[-1], low, last=True)
        quote = "" if low.isdigit() else "'"  # a computed column of numbers equals no text
        clauses.append(f"{column} BETWEEN {quote}{first}{quote} AND {quote}{last}{quote}")
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    about = " ".join([table.text.replace("_", " "), *(value for values in names.values() for value in values)])
    return _Candidate(table.name, f"SELECT * FROM {table.name}{where} ORDER BY 1 LIMIT {_ROWS}", shared(wanted, about))


def _like(time: str, pattern: str, last: bool = False) -> str:
    """A time as a year, month or day, like the pattern: the first month of its year, or the last."""
    return (time + ("-12-01" if last else "-01-01")[len(time) - 4 :])[: len(pattern)]


def _one_of(column: str, values: list[str]) -> str:
    quoted = ("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({', '.join(quoted)})"
