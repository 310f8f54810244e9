"""Names that a text joins and no row does: "the rider of Suzuki is Biaggi", who rode for another.

A sentence that names exactly two values of different columns says that they belong together, unless
it compares them, tells what came before or after, or gives a reason.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.column_kinds import has_word, written_head
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.row_facts import Mention, Names
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

# A whole cell, such as "-3", "1,234 %": of these the rule for figures knows more.
_FIGURE = re.compile(r"[-−+$€£]{0,3}[\d.,\s]++%?")
# Behind a cell that is all of a clause: ".", "**,", "” [", the end.
_ENDS = re.compile(r"[\"”*']{0,4}(?:[.,;)]|\s\[|\s{0,3}\Z)")
# Behind a part of a word or number: "s", ".5", "'s", "-Malo".
_GOES_ON = re.compile(r"\w|[.,]\d|[’'-]\w")
_ROWS = 500  # of a table: beyond, a sentence is not compared with each of them
_SENTENCES = 60  # of a text that are compared with rows
# Words that keep two names apart: "ahead of Jon", "not Jon"; not "with Jon".
_OTHERWISE = re.compile(
    r"\b(?:than|ahead|behind|before|after|next|previous\w*|follow\w*|preced\w*|except|besides|"
    r"beside|without|unlike|not|no|never|neither|nor|other|others|another|compared|versus|vs|"
    r"against|beat|defeat\w*|instead|rather|"
    r"because|due|since|caus\w*|reason\w*|if|though|but|while|whereas|and|or|between|from|"
    r"als|vor|nach|nicht|kein\w*|statt|gegen|wegen|weil|aber|und|oder|"
    r"que|sans|contre|après|avant|et|ou|pas|"
    r"sin|contra|después|antes|pero|no)\b",
    re.IGNORECASE,
)


def parted_names(
    text: str,
    tables: Sequence[MarkdownTable],
    names: Names,
) -> Iterator[tuple[str, str]]:
    """Yields each sentence whose two names stand in no row together, with the reason."""
    small = [table for table in tables if len(table.rows) <= _ROWS]
    for start, stop in sentence_spans(text)[:_SENTENCES]:
        sentence = text[start:stop]
        if sentence.lstrip().startswith(("|", "#", ">")) or _OTHERWISE.search(sentence):
            continue
        reason = _wrong_pair(sentence, small) or _parted_in(sentence, small, names)
        if reason:
            yield sentence.strip(), reason


def _parted_in(sentence: str, tables: Sequence[MarkdownTable], names: Names) -> str:
    """Returns the rows in which the two names of a sentence stand apart; empty if they may not."""
    by_words = {mention.words: mention for mention in names.mentions(sentence)}
    if len(by_words) != 2:
        return ""
    first, second = by_words.values()
    if first.columns & second.columns:
        return ""
    return _parted(first, second, tables)


def _parted(first: Mention, second: Mention, tables: Sequence[MarkdownTable]) -> str:
    """Returns the rows in which two names of a table stand apart; empty if a row has both."""
    reason = ""
    for table in tables:
        rows = [(row, {*words_of(" ".join(row.cells))}) for row in table.rows]
        with_first = [row for row, words in rows if words.issuperset(first.words)]
        with_second = [row for row, words in rows if words.issuperset(second.words)]
        if not with_first or not with_second:
            continue
        if any(row in with_second for row in with_first):
            return ""
        if min(len(with_first), len(with_second)) == 1:
            reason = f"the row of {first.written} has {_other_cell(table, with_first[0], second)}"
    return reason


def _wrong_pair(sentence: str, tables: Sequence[MarkdownTable]) -> str:
    """Returns the difference of a sentence such as "Rank 1: Nation is Brazil" from each table.

    Empty where a table has a row like that, or none has its columns.
    """
    reason = ""
    for table in tables:
        found = (_pair(sentence, table, at) for at in range(len(table.columns)))
        pairs = [pair for pair in found if pair is not None]
        if not pairs:
            continue
        if any(_has_all(row, pairs) for row in table.rows):
            return ""
        foreign = _first_foreign(pairs)
        if foreign is not None:
            reason = f"{foreign.cell} is {foreign.column}, not {table.columns[foreign.at]}"
        elif len(pairs) > 1:
            told = ", ".join(f"{table.columns[pair.at]} {pair.cell}" for pair in pairs)
            reason = f"no row has {told}"
    return reason


class _Pair(NamedTuple):
    """A column with the cell that a sentence gives it, and the other `column` that has this cell.

    The latter is empty for a cell of the column itself.
    """

    at: int
    cell: str
    column: str


def _has_all(row: TableRow, pairs: Sequence[_Pair]) -> bool:
    # A row may have fewer cells than the head of its table.
    return all(row.cells[pair.at : pair.at + 1] == (pair.cell,) for pair in pairs)


def _first_foreign(pairs: Sequence[_Pair]) -> _Pair | None:
    """Returns the first pair whose cell is of another column.

    A number that another column has may have been computed, unless the row is named.
    """
    names_the_row = not all(pair.column for pair in pairs)
    for pair in pairs:
        if pair.column and (names_the_row or not _FIGURE.fullmatch(pair.cell)):
            return pair
    return None


def _pair(sentence: str, table: MarkdownTable, at: int) -> _Pair | None:
    """Returns a column with the cell that a sentence gives it; None if it gives it none."""
    head = table.columns[at]
    if not has_word(head):
        return None

    # "54 days: Packaging 10, ..." is a sum and its parts: behind a number the head is a unit.
    label = rf"(?<!\w)(?<!\d\s){written_head(head)}\*{{0,2}}(?P<is>:\*{{0,2}}|\s(?:is|was))?\s"
    found = re.search(label, sentence)
    if found is None:
        return None

    rest = sentence[found.end() :].lstrip("\"“*'")
    cell = _begun(rest, table, at)
    if cell:
        return _Pair(at, cell, "")
    if found["is"] is None:
        return None
    for other, column in enumerate(table.columns):
        cell = "" if other == at else _begun(rest, table, other)
        is_all = _ENDS.match(rest, len(cell)) is not None
        if cell and (has_word(cell) or is_all):
            return _Pair(at, cell, column)
    return None


def _begun(text: str, table: MarkdownTable, at: int) -> str:
    """Returns the longest cell of a column with which a text begins; empty for none."""
    cells = {row.cells[at] for row in table.rows if at < len(row.cells)}
    begun = [cell for cell in cells if cell and _begins(text, cell)]
    return max(begun, key=len, default="")


def _begins(text: str, cell: str) -> bool:
    """True if a text begins with a cell that does not go on as another word or number."""
    behind = text[len(cell) : len(cell) + 2]
    return text.startswith(cell) and _GOES_ON.match(behind) is None


def _other_cell(table: MarkdownTable, row: TableRow, mention: Mention) -> str:
    """Returns the cell of a row in the column of a name, and that it is not this name."""
    for column, cell in zip(table.columns, row.cells, strict=False):
        if column.lower() in mention.columns:
            return f"{cell}, not {mention.written}"
    return f"no {mention.written}"
