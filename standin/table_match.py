"""Which tables, columns and values a question speaks of."""

from dataclasses import dataclass, field

from standin.question import Question
from standin.tables import Column, Table, name_stems, subject_stems
from standin.words import STOP, alike, derived, key_stems, stem, stems, words

_PARTIAL_VALUES = 60  # in a longer list one shared word says little
_ENOUGH = 4  # a value, or a column's name and more: what makes a further table worth a query


@dataclass
class Match:
    """A table with what of it the question mentions; `covered` are the question's stems that it explains."""

    table: Table
    values: dict[str, list[str]] = field(default_factory=dict)
    measures: list[Column] = field(default_factory=list)
    named: list[Column] = field(default_factory=list)
    covered: set[str] = field(default_factory=set)
    score: float = 0


def match_tables(tables: list[Table], question: Question, context: Question) -> list[Match]:
    """The best table for the question, then those that explain what the ones before left open.

    Values that the question does not mention are taken from its context.
    """
    chosen: list[Match] = []
    left = set(question.keys)
    while len(chosen) < len(tables):
        rest = [table for table in tables if all(table is not one.table for one in chosen)]
        best = max((match(table, question, left) for table in rest), key=lambda one: one.score)
        if best.score < (_ENOUGH if chosen else 1):
            break
        chosen.append(best)
        left -= best.covered
    for one in chosen:
        one.values = one.values or _values(one.table, context)[0]
    return chosen


def match(table: Table, question: Question, left: set[str]) -> Match:
    """What the question mentions of a table; scored by the stems in `left` only."""
    values, by_value = _values(table, question)
    measures = _measures(table, question)
    named = [column for column in table.texts if any(one in question.stems for one in name_stems(column.name))]
    by_name = _known(question.keys, [*name_stems(table.name), *(s for c in table.columns for s in name_stems(c.name))])
    by_words = _known(question.keys, key_stems(table.description)) - by_name - by_value
    found = Match(table, values, measures, named, by_value | by_name | by_words)
    found.score = 4 * len(by_value & left) + 3 * len(by_name & left) + len(by_words & left)
    return found


def _known(keys: tuple[str, ...], present: list[str]) -> set[str]:
    return {key for key in keys if any(alike(key, one) for one in present)}


def _measures(table: Table, question: Question) -> list[Column]:
    """Columns of which the question names at least half; the best named ones."""
    scored = []
    for column in table.measures:
        parts = [part for part in subject_stems(column.name) if part not in STOP]
        hits = sum(any(alike(part, one) for one in question.stems) for part in parts)
        if parts and hits * 2 >= len(parts):
            scored.append((hits / len(parts), column))
    best = [column for share, column in scored if share == 1.0]
    return best or [column for _, column in scored]


def _values(table: Table, question: Question) -> tuple[dict[str, list[str]], set[str]]:
    """Values of text columns that the question mentions, longest first so that a part of a name is not a name."""
    found: dict[str, list[str]] = {}
    covered: set[str] = set()
    for column in table.texts:
        free = list(question.stems)
        hits: list[str] = []
        for value in sorted(column.values, key=lambda value: -len(stems(value))):
            at = _position(stems(value), free) if _telling(value, question) else None
            if at is not None:
                size = len(stems(value))
                covered.update(free[at : at + size])
                free[at : at + size] = [""] * size
                hits.append(value)
            elif _initials(value, question):
                covered.update(stem(word) for word in _initials(value, question))
                hits.append(value)
        if not hits:
            hits, parts = _partial(column, question)
            covered |= parts
        if hits:
            found[column.name] = [value for value in column.values if value in hits]
    return found, covered


def _telling(value: str, question: Question) -> bool:
    """Very short values and everyday words count only as they are written in the question."""
    if len(value) <= 3 or value.lower() in STOP:
        return value in question.text.replace(".", "").split() or f"({value})" in question.text
    return True


def _position(value: list[str], text: list[str]) -> int | None:
    for at in range(len(text) - len(value) + 1) if value else []:
        same = all(one == other for one, other in zip(value[:-1], text[at:], strict=False))
        if same and derived(text[at + len(value) - 1], value[-1]):
            return at
    return None


def _initials(value: str, question: Question) -> list[str]:
    """Capitals in the question that stand for a value of several words."""
    parts = [word for word in words(value) if word[0].isupper()]
    if len(parts) < 2:
        return []
    short = "".join(word[0] for word in parts)
    return [word for word in words(question.text) if word in (short, f"{short}A") and word.isupper()]


def _partial(column: Column, question: Question) -> tuple[list[str], set[str]]:
    """Values known by one word that no other value of the column has."""
    if column.distinct > _PARTIAL_VALUES:
        return [], set()
    hits, parts = [], set()
    all_stems = [set(key_stems(value)) for value in column.values]
    for value, own in zip(column.values, all_stems, strict=True):
        telling = {one for one in own if sum(one in other for other in all_stems) == 1 and one in question.keys}
        if telling and len(own) <= 4:
            hits.append(value)
            parts |= telling
    return hits, parts
