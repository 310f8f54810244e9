"""Values that a question names, and that neither choose the rows of a query nor are in them.

Example: `SELECT count(*) FROM voyages WHERE Flag = 'Norway'` for "How many voyages had Norway in
1994?" Only values count that could choose rows: a number between the ends of a column, a text that
a column has. `numbers_left_out` looks for the numbers, `names_left_out` for the texts.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from temporal_supervisor.supervision.base.spoken_words import STEM, stems
from temporal_supervisor.supervision.base.text import quoted
from temporal_supervisor.supervision.grounding.doubts import question_patterns as patterns
from temporal_supervisor.supervision.grounding.doubts.inquiry import (
    Inquiry,
    place_of,
)
from temporal_supervisor.supervision.grounding.doubts.query_shape import plain_number
from temporal_supervisor.supervision.grounding.rows.listed_tables import ListedColumn
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import is_year

_ONE_DIGIT = 9
_NAME_WORDS = 8
_LETTERS = 3  # of a name
_RANK = "stndrh"  # letters behind a number
_DIGITS = re.compile(r"\d+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?")  # "2004-05-02", "2004-05-02 10:30:00"

Key = tuple[str, ...]
"""Words by which a text of a column may be named."""

_COMMON_WORDS = """
the a an of in on at by for to from with and or is are was were be has have had do does did not no
yes all any more most less least than who what which when where why how many much other only first
last second third total win won loss lost lose draw drawn tie home away time times year years day
month name number game games round final place up out over under off both each per same new old one
two three four five six
"""
_COMMON = frozenset(words_of(_COMMON_WORDS))


def is_common(words: Sequence[str]) -> bool:
    """True if words name nothing in particular, as in "first time" and "2004"."""
    return all(word in _COMMON or word.isdigit() for word in words)


def numbers_left_out(inquiry: Inquiry) -> Iterator[str]:
    """Yields the years and numbers of a question on which no query has a condition."""
    for written in patterns.numbers_in(inquiry.question):
        number = plain_number(written.rstrip(_RANK))
        if _is_known(inquiry, number) or _is_a_choice(inquiry, number):
            continue
        if patterns.counts_all(inquiry.question, number) and not is_year(number):
            continue
        # Whoever has read the rows has compared them, too.
        if inquiry.can_be_compared and patterns.is_bound(inquiry.question, written):
            continue
        if could_choose(inquiry, written):
            yield _without(number)


def _is_known(inquiry: Inquiry, number: str) -> bool:
    """True if a number is in a query or a row; more than 9 is at least 10, and 94 may be 1994."""
    if number in inquiry.read_numbers:
        return True
    near = {number}
    if number.isdigit():
        near |= {str(int(number) - 1), str(int(number) + 1)}
    short = int(number) % 100 if is_year(number) else 0
    if short > _ONE_DIGIT:  # the 1 of 2001 is in any `LIMIT 1`
        near.add(str(short))
    return bool(near & inquiry.query_numbers)


def _is_a_choice(inquiry: Inquiry, word: str) -> bool:
    """True for a word of a choice whose other word was looked up, as in "1967 or 1968"."""
    pairs = [{*words_of(" ".join(pair))} for pair in patterns.choices_in(inquiry.question)]
    return any(word in pair and pair & inquiry.known_words for pair in pairs)


def could_choose(inquiry: Inquiry, written: str) -> bool:
    """True if a column has values on both sides of a number, or a year or a rank in its texts.

    A rank is written with its letters: `5th` is a value of "1st, 2nd, 5th".
    """
    if not written[-1:].isdigit():
        return any(written in words_of(text) for text in _texts_of(inquiry))

    number = plain_number(written)
    may_be_year = is_year(written)
    ends = [column.ends for column in inquiry.columns if column.ends]
    if any(_lies_within(number, each, may_be_year) for each in ends):
        return True
    if not may_be_year:
        return False
    return any(number in _DIGITS.findall(text) for text in _texts_of(inquiry))


def _texts_of(inquiry: Inquiry) -> Iterator[str]:
    for column in inquiry.columns:
        yield from column.values


def _lies_within(number: str, ends: tuple[str, str], may_be_year: bool) -> bool:
    """True if a number lies between two; a year is compared with years and dates alone."""
    first, last = (end[:4] if _DAY.fullmatch(end) else end for end in ends)
    if may_be_year != (is_year(first) and is_year(last)):
        return False
    if may_be_year and number in (first, last):
        return first != last
    try:
        return float(first) < float(number) < float(last)
    except ValueError:
        return False


def names_left_out(inquiry: Inquiry) -> Iterator[str]:
    """Yields the texts of columns that a question names, and on which no query has a condition."""
    question = patterns.without_exceptions(inquiry.question)
    choosing = [column for column in inquiry.columns if len(column.values) > 1]
    yield from _peoples_left_out(inquiry, choosing, question)
    yield from _phrases_left_out(inquiry, choosing, question)
    yield from _whole_names_left_out(inquiry, choosing, words_of(question))


def _peoples_left_out(
    inquiry: Inquiry,
    columns: Sequence[ListedColumn],
    question: str,
) -> Iterator[str]:
    """Yields the texts whose adjective a question has: Belgian riders are of Belgium."""
    adjectives = stems(word for word in patterns.adjectives_in(question) if len(word) > STEM)
    wanted = adjectives - stems(inquiry.known_words) - stems(words_of(" ".join(inquiry.heads)))
    for column in columns if wanted else ():
        for value in column.values:
            if value.isalpha() and value.lower()[:STEM] in wanted:
                yield _without(quoted(value), column)


def _phrases_left_out(
    inquiry: Inquiry,
    columns: Sequence[ListedColumn],
    question: str,
) -> Iterator[str]:
    """Yields the pairs of words that some longer texts of a column have, and not all of them."""
    pairs = _unknown_pairs(inquiry, question)
    for column in columns if pairs else ():
        texts = [words_of(value) for value in column.values]
        # A text that a query has found by other words of it needs no more of them.
        if any(inquiry.chosen_words.intersection(text) for text in texts):
            continue
        in_texts = [{*pairwise(text)} for text in texts]
        for pair, written in pairs.items():
            having = sum(pair in text for text in in_texts)
            if 0 < having < len(texts):
                yield _without(quoted(written), column)


def _unknown_pairs(inquiry: Inquiry, question: str) -> dict[Key, str]:
    """Returns the pairs of words of a question that no query, row or head has, as written."""
    known = inquiry.known_words | _COMMON
    of_columns = stems(words_of(" ".join(inquiry.heads)))
    pairs: dict[Key, str] = {}
    for written in patterns.pairs_in(question):
        pair = tuple(words_of(written))
        if len(pair) != len(written.split()) or any(len(word) < _LETTERS for word in pair):
            continue
        if known.isdisjoint(pair) and of_columns.isdisjoint(stems(pair)):
            pairs[pair] = written
    return pairs


def _whole_names_left_out(
    inquiry: Inquiry,
    columns: Sequence[ListedColumn],
    words: list[str],
) -> Iterator[str]:
    """Yields the whole texts of columns that a question has, the longest first."""
    present = {*words}
    rest = [*words]
    named = [each for each in _named_texts(columns) if present.issuperset(each[0])]
    for key, value, column in sorted(named, key=lambda each: -len(each[0])):
        at = place_of(key, rest)
        if at < 0:
            continue
        rest[at : at + len(key)] = [""] * len(key)
        is_known = not inquiry.known_words.isdisjoint(key) or _begins_heads(inquiry, key)
        if not is_known and not any(_is_a_choice(inquiry, word) for word in key):
            yield _without(quoted(value), column)


def _begins_heads(inquiry: Inquiry, key: Key) -> bool:
    """True if each word of a key is a word of a head, or the beginning of one."""
    heads = words_of(" ".join(inquiry.heads))
    return all(any(head.startswith(word) for head in heads) for word in key)


def _named_texts(columns: Sequence[ListedColumn]) -> Iterator[tuple[Key, str, ListedColumn]]:
    """Yields the texts of columns, each with each of its keys."""
    for column in columns:
        for value in column.values:
            for key in _keys_of(value):
                yield key, value, column


def _keys_of(value: str) -> Iterator[Key]:
    """Yields the words by which a text may be named: all, and those before a bracket."""
    for part in dict.fromkeys((value, value.partition(" (")[0])):
        key = tuple(words_of(part))
        letters = sum(len(word) for word in key if not word.isdigit())
        if 0 < len(key) <= _NAME_WORDS and letters >= _LETTERS and not is_common(key):
            yield key


def _without(value: str, column: ListedColumn | None = None) -> str:
    of_column = f" of {column.name}" if column else ""
    return f"the query has no condition on {value}{of_column}, which the question names"
