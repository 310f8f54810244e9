"""Names that a text joins and no row does: "the rider of Suzuki is Biaggi", who rode for another.

A sentence that names exactly two values of different columns says that they belong together, unless
it compares them, tells what came before or after, or gives a reason.
"""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.row_facts import Mention, Names, words_of

_IS_HEAD = re.compile(r"[^\W\d_]{3}")
_FIGURE = re.compile(r"[-−+$€£]{0,3}[\d.,\s]++%?")  # of these the rule for figures knows more
_ENDS = re.compile(r"[\"”*']{0,4}(?:[.,;)]|\s\[|\s{0,3}\Z)")
_GOES_ON = re.compile(r"\w|[.,]\d|[’'-]\w")
_ROWS = 500  # of a table: beyond, a sentence is not compared with each of them
_SENTENCES = 60  # of a text that are compared with rows
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
        if reason := _wrong_pair(sentence, small):
            yield sentence.strip(), reason
            continue
        mentions = list({mention.words: mention for mention in names.mentions(sentence)}.values())
        if len(mentions) != 2:
            continue
        first, second = mentions
        if first.columns & second.columns:
            continue
        if reason := _parted(first, second, small):
            yield sentence.strip(), reason


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
        found = [_pair(sentence, table, at) for at in range(len(table.columns))]
        pairs = [pair for pair in found if pair is not None]
        if not pairs:
            continue
        if any(all(row.cells[at] == cell for at, cell, _ in pairs) for row in table.rows):
            return ""
        keys = [pair for pair in pairs if not pair[2]]
        # A number that another column has may have been computed, unless the row is named.
        foreign = [pair for pair in pairs if pair[2] and (keys or not _FIGURE.fullmatch(pair[1]))]
        if foreign:
            reason = f"{foreign[0][1]} is {foreign[0][2]}, not {table.columns[foreign[0][0]]}"
        elif len(pairs) > 1:
            told = ", ".join(f"{table.columns[at]} {cell}" for at, cell, _ in pairs)
            reason = f"no row has {told}"
    return reason


def _pair(sentence: str, table: MarkdownTable, at: int) -> tuple[int, str, str] | None:
    """Returns a column with the cell that a sentence gives it, and the column that this is from.

    The latter is empty for a cell of the column itself. None if the sentence gives it no cell.
    """
    head = table.columns[at]
    if not _IS_HEAD.search(head):
        return None
    name = r"\s".join(map(re.escape, head.split()))
    # "54 days: Packaging 10, ..." is a sum and its parts: behind a number the head is a unit.
    label = rf"(?<!\w)(?<!\d\s){name}\*{{0,2}}(?P<is>:\*{{0,2}}|\s(?:is|was))?\s"
    found = re.search(label, sentence)
    if found is None:
        return None
    rest = sentence[found.end() :].lstrip("\"“*'")
    if cell := _begun(rest, table, at):
        return at, cell, ""
    if found["is"] is None:
        return None
    for other, column in enumerate(table.columns):
        cell = "" if other == at else _begun(rest, table, other)
        is_all = _ENDS.match(rest, len(cell)) is not None
        if cell and (_IS_HEAD.search(cell) or is_all):
            return at, cell, column
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
