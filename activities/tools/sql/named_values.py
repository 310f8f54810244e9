"""Values of tables that a text names, as conditions that select their rows.

Example: "who came after Sebastian Porto" names `Rider = 'Sebastian Porto'`. A model that sees the
condition writes it into its query; from the words alone it may guess another value.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from activities.files.values import literal
from activities.tools.sql.query_hints import columns_of
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, WORDS_OF_WORK

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


class _Value(NamedTuple):
    """A value with its words, and the index of its column."""

    text: str
    words: list[str]
    column: JsonObject
    number: int

    @property
    def condition(self) -> str:
        """The condition that selects its rows."""
        return f"{self.column['sql']} = {literal(self.text)}"


def conditions_named(text: str, tables: Sequence[JsonObject]) -> list[str]:
    """Returns the conditions on values that a text names, whole values first, at most six.

    A value is named by all of its words in sequence, or by one of its words that is in at most
    three values and in no column's name.
    """
    words = _words(text)
    columns = columns_of(tables)
    of_names = _words_of_names(columns)
    values = _values_of(columns)

    whole: list[str] = []
    used = set[str]()
    for value in _named_whole(words, values, of_names):
        whole.append(value.condition)
        used.update(value.words)

    rest: list[str] = []
    for word in dict.fromkeys(words):
        if _is_a_name(word) and word not in of_names and word not in used:
            rest.append(word)
    partly = _named_by_a_word(rest, values)
    return list(dict.fromkeys([*whole, *partly]))[:_CONDITIONS]


def on_failed_query(sql: str, tables: Sequence[JsonObject]) -> list[str]:
    """Returns lines on values that a query uses as columns, and on names in a calculation.

    Example: `WHERE YEAR_END_RANKING < 2009`, where 'Year End Ranking' is a value of Tournament.
    """
    lines: list[str] = []
    if _NAME_AND_SUM.search(sql):
        lines.append(_CALCULATE_BEFORE)

    words = _words(_LITERAL.sub(" ", sql).replace("_", " "))
    columns = columns_of(tables)
    for value in _named_whole(words, _values_of(columns), _words_of_names(columns)):
        lines.append(f"{value.text} is a value, not a column: use {value.condition}.")
    return list(dict.fromkeys(lines))[:_FEW]


def _values_of(columns: Sequence[JsonObject]) -> list[_Value]:
    """Returns the values of all columns, each read once: a wide table has many."""
    values: list[_Value] = []
    for number, column in enumerate(columns):
        for text in column.get("values", []):
            values.append(_Value(text, _words(text), column, number))
    return values


def _words_of_names(columns: Sequence[JsonObject]) -> set[str]:
    """Returns the words in the names of columns, in the singular and in the plural."""
    words = {word for column in columns for word in _words(column["name"].replace("_", " "))}
    return words | {word.removesuffix("s") for word in words} | {f"{word}s" for word in words}


def _named_whole(
    words: Sequence[str],
    values: Sequence[_Value],
    of_names: set[str],
) -> Iterator[_Value]:
    """Yields the values that name something and whose words occur in sequence among `words`."""
    present = {*words}
    for value in values:
        # Most values have a word that is not there, which is quick to see.
        if not value.words or not present.issuperset(value.words[:-1]):
            continue
        if present.isdisjoint(_forms(value.words[-1])):
            continue
        if _names_something(value, of_names) and _has_phrase(words, value.words):
            yield value


def _named_by_a_word(words: Sequence[str], values: Sequence[_Value]) -> Iterator[str]:
    """Yields conditions on values with a word that only few values of their column have."""
    wanted = {*words}
    having: dict[str, dict[int, list[_Value]]] = {word: defaultdict(list) for word in words}
    for value in values:
        for word in wanted.intersection(value.words):
            having[word][value.number].append(value)

    for word in words:
        for alike in having[word].values():
            if len(alike) <= _FEW:
                yield from _conditions_on(word, alike)


def _conditions_on(word: str, alike: Sequence[_Value]) -> Iterator[str]:
    """Yields the conditions on values of a column that have a word."""
    if all(len(value.text) <= _NAME_CHARS and "\n" not in value.text for value in alike):
        yield from (value.condition for value in alike)
        return

    first = alike[0]
    written = re.search(re.escape(word), first.text, re.IGNORECASE)
    if written is not None:
        yield f"{first.column['sql']} LIKE {literal(f'%{written[0]}%')}"


def _names_something(value: _Value, of_names: set[str]) -> bool:
    """True if a short value names more than columns and totals."""
    if len(value.text) > _VALUE_CHARS or "\n" in value.text:
        return False
    told = [word for word in value.words if word not in of_names and word not in _TOTALS]
    return any(map(_is_a_name, told)) or _is_a_number_with_letters(value.text)


def _is_a_name(word: str) -> bool:
    is_common = word in SMALL_WORDS or word in WORDS_OF_WORK or word in _TOTALS
    return len(word) >= _LETTERS and not word.isdigit() and not is_common


def _is_a_number_with_letters(value: str) -> bool:
    """True for values such as `1st` and `GL-B-5`."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return has_both and len(value) >= _LETTERS and " " not in value


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def _forms(word: str) -> tuple[str, str]:
    """Returns a word and its plural; a text may have either."""
    return word, f"{word}s"


def _has_phrase(words: Sequence[str], phrase: Sequence[str]) -> bool:
    """True if words contain a phrase, whose last word may be in the plural."""
    length = len(phrase)
    before, ends = [*phrase[:-1]], _forms(phrase[-1])
    for at in range(len(words) - length + 1):
        part = words[at : at + length]
        if part[-1] in ends and [*part[:-1]] == before:
            return True
    return False
