"""Names that a text joins and no row does: "the rider of team Suzuki is Biaggi", who rode for another one.

A sentence that names exactly two values of different columns says that they belong together, unless it compares them,
tells what came before or after, or gives a reason.
"""

import re
from collections.abc import Iterator, Sequence

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.row_facts import Mention, Names, words_of

_ROWS = 500  # of a table: beyond, a sentence is not compared with each of them
_SENTENCES = 60  # of a text that are compared with rows
_OTHERWISE = re.compile(
    r"\b(?:than|ahead|behind|before|after|next|previous\w*|follow\w*|preced\w*|except|besides|beside|without|unlike|"
    r"not|no|never|neither|nor|other|others|another|compared|versus|vs|against|beat|defeat\w*|instead|rather|"
    r"because|due|since|caus\w*|reason\w*|if|though|but|while|whereas|and|or|between|from|"
    r"als|vor|nach|nicht|kein\w*|statt|gegen|wegen|weil|aber|und|oder|que|sans|contre|après|avant|et|ou|pas|"
    r"sin|contra|después|antes|pero|no)\b",
    re.IGNORECASE,
)


def parted_names(text: str, tables: Sequence[MarkdownTable], names: Names) -> Iterator[tuple[str, str]]:
    """Yields each sentence whose two names stand in no row together, with the reason."""
    small = [table for table in tables if len(table.rows) <= _ROWS]
    for start, stop in sentence_spans(text)[:_SENTENCES]:
        sentence = text[start:stop]
        if sentence.lstrip().startswith(("|", "#", ">")) or _OTHERWISE.search(sentence):
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
    """Returns that two names of one table stand in different rows; empty if a row has both, or no table has."""
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


def _other_cell(table: MarkdownTable, row: TableRow, mention: Mention) -> str:
    """Returns what a row has in the column of a name, and that it is not this one."""
    for column, cell in zip(table.columns, row.cells, strict=False):
        if column.lower() in mention.columns:
            return f"{cell}, not {mention.written}"
    return f"no {mention.written}"
