"""The words that belong to a figure: of its clause, of its row in a table, of the heading above it.

It is not always clear which words of a sentence belong to which of its figures: it is in
"63.6 in 1987 and 46.6 in 2002", but not in "46.6, 1987, 63.6". Words that surely belong to a figure
are evidence against another row of a table; the others are none, but they may explain why a figure
is there.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from temporal_supervisor.supervision.base.sentences import CLAUSE_END, HALF_END, sentence_spans

_MOST = 300  # signs on each side of a figure: what is farther away does not belong to it
# The text between figures that share their words: "63.6 and 46.6", "12 – 14", "4, $5 or $6".
_JOINER = re.compile(r"\s?(?:,|/|and|to|or|und|auf|bis|et|à|y|a|, and)?\s?(?:[-–—]\s?)?[$€£¥]?")
_REVERSED = re.compile(r"\b(?:to|auf|bis|à)\W*$", re.IGNORECASE)  # to 46.6 from 63.6
# Before the object of a comparison: "12 tonnes more than the pears", "12 tonnes, unlike the pears".
_OTHERS = re.compile(
    r"\b(?:than|ahead of|behind|compared (?:with|to)|versus|vs|unlike|except|excluding|without"
    r"|above|below"
    r"|als|gegenüber|verglichen mit|im vergleich zu|ohne|außer|vor dem|vor der|hinter"
    r"|que|sans|sauf)\b",
    re.IGNORECASE,
)
_A_WORD = re.compile(r"\w")
# A line above others that are about it: "## Prices", "**Prices**", "Prices of 2002:".
_HEADING = re.compile(r"[ \t]*(?:#{1,6}\s|\*\*)|.*:\**\s*\Z", re.DOTALL)
# A year behind its figure: "46.6 in 2002", "46.6 for FY 2002", "46.6 on March 3, 2002", but no part
# of a range, as in "46.6 in 2002-2004".
_YEAR_AFTER = re.compile(
    r"\s(?:in|at|for|during|on|as of|im|am|en|de)\s(?:fiscal |the year |year |FY ?)?"
    r"(?:[A-Z][a-z]{2,8}\.?\s(?:\d{1,2},?\s)?)?(?P<year>(?:19|20)\d\d)(?![.,]?\d|\s?[-–/]\s?\d)"
)
# A year before its figure: "2002: 46.6", "**2002:** $46.6".
_YEAR_BEFORE = re.compile(
    r"(?<![\d.,/-])(?P<year>(?:19|20)\d\d)\*{0,2}:\*{0,2}\s?[$€£]?[-−]?\Z",
)
# The line below the head of a table: "|---|:--|".
_RULE = re.compile(r"[ \t]*+\|[ \t:|-]++")


@dataclass(frozen=True)
class Near:
    """The words of a figure: its `own` for sure, `loose` ones perhaps, the `head` above its line.

    Several figures in a row, as in "63.6 and 46.6 in 1987 and 2002", share the words `before` and
    `after` all of them. If these have one name or year for each figure, they are given out in their
    order: 1987 to the figure at `place` 0 `among` the 2, and 2002 to the next one. `column` is the
    head of the figure's column, `year` the one that the text binds it to, as in "46.6 in 2002".
    """

    own: str = ""
    loose: str = ""
    head: str = ""
    before: str = ""
    after: str = ""
    place: int = 0
    among: int = 1
    column: str = ""
    year: int | None = None


class Extent(NamedTuple):
    """The start and the end of a figure in a text."""

    start: int
    end: int


def bound_year(text: str, figure: "Extent") -> int | None:
    """Returns the year directly beside a figure; None if there is none on one side alone."""
    after = _YEAR_AFTER.match(text, figure.end)
    before = _YEAR_BEFORE.search(text[max(0, figure.start - _MOST) : figure.start])
    if (after is None) == (before is None):
        return None
    found = after or before
    return int(found["year"]) if found else None


def surroundings(text: str, figures: Sequence[Extent]) -> Iterator[Near]:
    """Yields the words near each of the figures of a text, which are given in their order."""
    sentences = sentence_spans(text)
    starts = [start for start, _ in sentences]
    by_sentence: dict[int, list[Extent]] = {}
    for figure in figures:
        number = max(0, bisect_right(starts, figure.start) - 1)
        by_sentence.setdefault(number, []).append(figure)

    lines = _Lines(text, sentences)
    for number, inside in by_sentence.items():
        start, stop = sentences[number] if sentences else (0, len(text))
        head = lines.head(number)
        if text[start:stop].lstrip().startswith("|"):
            yield from _in_row(text, start, stop, inside, lines.columns(number), head)
        else:
            yield from _in_sentence(text, start, stop, inside, head)


class _Lines:
    """The headings above the lines of a text, and the heads of its tables."""

    def __init__(self, text: str, sentences: Sequence[tuple[int, int]]) -> None:
        self._heads: list[str] = []
        self._columns: list[list[str]] = []
        head = ""
        columns: list[str] = []
        row_before = ""
        for start, stop in sentences:
            line = text[start:stop]
            is_row = line.lstrip().startswith("|")
            self._heads.append(head)
            if is_row and _RULE.fullmatch(line):
                columns = [cell for _, cell in _cells(row_before, 0)]
            row_before = line if is_row else ""
            columns = columns if is_row else []
            self._columns.append(columns)
            if not is_row and _HEADING.match(line[:_MOST]):
                head = line[:_MOST]

    def head(self, number: int) -> str:
        """Returns the heading above a line; empty without one."""
        return self._heads[number] if number < len(self._heads) else ""

    def columns(self, number: int) -> list[str]:
        """Returns the heads of the columns of a row; none for any other line."""
        return self._columns[number] if number < len(self._columns) else []


def _cells(line: str, start: int) -> list[tuple[int, str]]:
    """Returns the cells of a row of a table, each with the place where it begins."""
    cells: list[tuple[int, str]] = []
    at = start + len(line) - len(line.lstrip()) + 1
    for cell in line.strip().strip("|").split("|"):
        cells.append((at, cell))
        at += len(cell) + 1
    return cells


def _in_row(
    text: str,
    start: int,
    stop: int,
    figures: Sequence[Extent],
    columns: Sequence[str],
    head: str,
) -> Iterator[Near]:
    """Yields the words near the figures of a row.

    They are the cells without figures, the rest of the figure's cell, and the head of its column.
    """
    cells = _cells(text[start:stop], start)
    begins = [at for at, _ in cells]
    column_of = [max(0, bisect_right(begins, figure.start) - 1) for figure in figures]
    labels = " | ".join(cell for number, (_, cell) in enumerate(cells) if number not in column_of)

    for figure, column in zip(figures, column_of, strict=True):
        at, cell = cells[column]
        rest = f"{cell[: figure.start - at]} {cell[figure.end - at :]}"
        top = columns[column] if column < len(columns) else ""
        yield Near(own=f"{labels} | {top} | {rest}"[: 2 * _MOST], head=head, column=top)


def _in_sentence(
    text: str,
    start: int,
    stop: int,
    figures: Sequence[Extent],
    head: str,
) -> Iterator[Near]:
    """Yields the words near the figures of a sentence."""
    edges = [start, *(figure.end for figure in figures)]
    between = [text[edge : figure.start] for edge, figure in zip(edges, figures, strict=False)]
    between.append(text[figures[-1].end : stop])

    for number, (first, last) in enumerate(_runs(between)):
        own_left, loose_left = _own_left(between, number)
        own_right, loose_right = _own_right(between, number)
        before = between[first][-_MOST:]
        after = between[last + 1][:_MOST]
        if _REVERSED.search(before):
            first = last = number
        yield Near(
            own=f"{own_left} ~ {own_right}",
            loose=f"{loose_left} ~ {loose_right}",
            head=head,
            before=before,
            after=after,
            place=number - first,
            among=last - first + 1,
        )


def _runs(between: Sequence[str]) -> list[tuple[int, int]]:
    """Returns for each figure the first and the last number of those that it is joined to.

    In "63.6 and 46.6 in 1987, 12 more" the first two figures are joined, 12 is alone: (0, 1),
    (0, 1), (2, 2). The texts `between` begin with the one before the first figure and end with the
    one after the last.
    """
    firsts = [0]
    for number in range(1, len(between) - 1):
        firsts.append(firsts[-1] if _JOINER.fullmatch(between[number]) else number)
    lasts = [len(firsts) - 1] * len(firsts)
    for number in reversed(range(len(firsts) - 1)):
        lasts[number] = lasts[number + 1] if firsts[number + 1] == firsts[number] else number
    return list(zip(firsts, lasts, strict=True))


def _split_between(words: str) -> tuple[str, str, str]:
    """Splits the words between two figures: those of the first, of either, of the second one.

    - " tonnes of apples in 1987, and pears ": the first has " tonnes of apples in 1987", either has
      ", and ", the second has "pears ".
    - " km, while the Rhine is ": halves of a sentence are surer than clauses. The first has " km",
      either has ",", the second has "the Rhine is ".
    - " and ": no word belongs to the first, none to the second.
    - " in ": without the end of a clause all words may belong to either.
    """
    ends = [match.span() for match in CLAUSE_END.finditer(words)]
    if not ends:
        return "", words, ""

    halves = [match.span() for match in HALF_END.finditer(words)]
    if halves:
        half_end, next_half = halves[-1]
        before = words[:half_end]
        first = CLAUSE_END.search(before)
        own = before[: first.start()] if first else before
        return own, before[len(own) :], words[next_half:]

    first_end, second_clause = ends[0]
    _, last_clause = ends[-1]
    first_piece = words[:first_end]
    if not _A_WORD.search(first_piece):
        return "", "", words[second_clause:]
    return first_piece, words[first_end:last_clause], words[last_clause:]


def _own_left(between: Sequence[str], number: int) -> tuple[str, str]:
    """Returns the words before a figure that are its own, and those that may be."""
    words = between[number][-_MOST:]
    if number == 0:
        return _split_off_comparison(words)
    _, either, mine = _split_between(words)
    own, loose = _split_off_comparison(mine)
    return own, f"{either} ~ {loose}"


def _own_right(between: Sequence[str], number: int) -> tuple[str, str]:
    """Returns the words behind a figure that are its own, and those that may be."""
    words = between[number + 1][:_MOST]
    if number == len(between) - 2:
        return _split_off_comparison(words)
    mine, either, _ = _split_between(words)
    own, loose = _split_off_comparison(mine)
    return own, f"{either} ~ {loose}"


def _split_off_comparison(words: str) -> tuple[str, str]:
    """Splits the words of a figure: its own, and those of the object of a comparison.

    " tonnes, more than the pears of 1987, in the north" are " tonnes,  more   in the north" and
    "than the pears of 1987,".
    """
    own: list[str] = []
    loose: list[str] = []
    at = 0
    for clause in [*CLAUSE_END.finditer(words), None]:
        stop = len(words) if clause is None else clause.end()
        part = words[at:stop]
        at = stop
        other = _OTHERS.search(part)
        own.append(part if other is None else part[: other.start()])
        loose.append("" if other is None else part[other.start() :])
    return " ".join(own), " ".join(loose)
