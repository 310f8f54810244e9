"""Values of tables that a text names, as the conditions that choose their rows.

Example: "who came after Sebastian Porto" names `Rider = 'Sebastian Porto'`. A model that sees the
condition writes it into its query; from the words alone it may guess another value.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, WORDS_OF_WORK

Json = dict[str, Any]

_CONDITIONS = 6  # of one text
_VALUE_CHARS = 60  # a longer value is a sentence
_NAME_CHARS = 40  # a longer value is a list, or has words of others beside the named one
_LETTERS = 3  # of a word that names something
_FEW = 3  # values with one word in common: of more the word names none
_TOTALS = frozenset(["total", "totals", "all", "sum", "average", "overall", "other", "others"])
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_NAME_AND_SUM = re.compile(r"\bas\s{1,5}(?:\"[^\"]{1,200}\"|\w+)\s{0,5}[-+*/]", re.IGNORECASE)
_CALCULATE_BEFORE = "AS and a name end a column: calculate before them, as in a - b AS difference."


def conditions_named(text: str, tables: Sequence[Json]) -> list[str]:
    """Returns the conditions on values that a text names whole, then by a word, at most six.

    A value is named whole by all of its words one after another, or by one of its words that names
    no column and is in at most three values.
    """
    words = _words(text)
    columns = [column for table in tables for column in table["columns"]]
    of_names = _words_of_names(columns)

    whole: list[str] = []
    used = set[str]()
    for column in columns:
        for value in _naming_values(column, of_names):
            parts = _words(value)
            if _has_phrase(words, parts):
                whole.append(_equals(column, value))
                used.update(parts)

    partly: list[str] = []
    for word in dict.fromkeys(words):
        if _is_a_name(word) and word not in of_names and word not in used:
            for column in columns:
                partly += _by_a_word(word, column)
    return list(dict.fromkeys([*whole, *partly]))[:_CONDITIONS]


def on_failed_query(sql: str, tables: Sequence[Json]) -> list[str]:
    """Returns lines on values that a query has in place of columns, and on names in a calculation.

    Example: `WHERE YEAR_END_RANKING < 2009`, where 'Year End Ranking' is a value of Tournament.
    """
    lines: list[str] = []
    if _NAME_AND_SUM.search(sql):
        lines.append(_CALCULATE_BEFORE)

    words = _words(_LITERAL.sub(" ", sql).replace("_", " "))
    columns = [column for table in tables for column in table["columns"]]
    of_names = _words_of_names(columns)
    for column in columns:
        for value in _naming_values(column, of_names):
            if _has_phrase(words, _words(value)):
                lines.append(f"{value} is a value, not a column: use {_equals(column, value)}.")
    return list(dict.fromkeys(lines))[:_FEW]


def _words_of_names(columns: Sequence[Json]) -> set[str]:
    """Returns the words that columns are called by, in the singular, too."""
    words = {word for column in columns for word in _words(column["name"].replace("_", " "))}
    return words | {word.removesuffix("s") for word in words} | {f"{word}s" for word in words}


def _naming_values(column: Json, of_names: set[str]) -> list[str]:
    """Returns the short values of a column that name something beside columns and totals."""
    naming: list[str] = []
    for value in column.get("values", []):
        if len(value) > _VALUE_CHARS or "\n" in value:
            continue
        told = [word for word in _words(value) if word not in of_names and word not in _TOTALS]
        if any(map(_is_a_name, told)) or _is_a_number_with_letters(value):
            naming.append(value)
    return naming


def _is_a_name(word: str) -> bool:
    is_common = word in SMALL_WORDS or word in WORDS_OF_WORK or word in _TOTALS
    return len(word) >= _LETTERS and not word.isdigit() and not is_common


def _is_a_number_with_letters(value: str) -> bool:
    """True for values such as `1st` and `GL-B-5`."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return has_both and len(value) >= _LETTERS and " " not in value


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def _has_phrase(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """True if words have a phrase; its last word may be in the plural there."""
    length = len(phrase)
    before, last = [*phrase[:-1]], phrase[-1]
    for at in range(len(words) - length + 1):
        part = words[at : at + length]
        if part[-1] in (last, f"{last}s") and [*part[:-1]] == before:
            return True
    return False


def _by_a_word(word: str, column: Json) -> Iterator[str]:
    """Yields the conditions on the values that a word names, if only few of the column have it."""
    having = [value for value in column.get("values", []) if word in _words(value)]
    if not 0 < len(having) <= _FEW:
        return

    if all(len(value) <= _NAME_CHARS and "\n" not in value for value in having):
        yield from (_equals(column, value) for value in having)
        return
    written = re.search(re.escape(word), having[0], re.IGNORECASE)
    if written is not None:
        yield f"{column['sql']} LIKE '%{_escaped(written[0])}%'"


def _equals(column: Json, value: str) -> str:
    return f"{column['sql']} = '{_escaped(value)}'"


def _escaped(value: str) -> str:
    return value.replace("'", "''")
