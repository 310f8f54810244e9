"""Superlatives beside a figure or a name of a table: "the highest was Japan, with 82.6 years".

The rule, in words: the row that is meant must be the first or the last of the rows that it can be
compared with, in a column that can be meant. It can be compared with all rows of its table, and
with those that share a value with it that the text names: a year, a continent. Rows that a query
took without an order, and not all of them, show no extreme. Superlatives of changes, of ranks and
counts, and the second highest, are not looked up.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import combinations

from temporal_supervisor.supervision.grounding.rows.column_kinds import cells_of
from temporal_supervisor.supervision.grounding.rows.markdown_tables import MarkdownTable, TableRow
from temporal_supervisor.supervision.grounding.rows.queries import Query
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import is_year

MOST_WORDS = (
    r"highest|largest|biggest|greatest|longest|tallest|deepest|heaviest|richest|most|maximum|"
    r"höchste[nrs]?|größte[nrs]?|längste[nrs]?|meisten|maximale[nrs]?"
)
LEAST_WORDS = (
    r"least|lowest|smallest|fewest|shortest|lightest|poorest|cheapest|minimum|"
    r"niedrigste[nrs]?|geringste[nrs]?|kleinste[nrs]?|kürzeste[nrs]?|wenigsten"
)
TOTAL_WORDS = r"totals?|totaal|totale|sub-?totals?|sums?|all|overall|gesamt|summe|insgesamt"
# "the highest tower", "am wenigsten"; not "most-read".
_SUPERLATIVE = re.compile(
    rf"(?<![\w-])(?:(?P<most>{MOST_WORDS})|(?P<least>{LEAST_WORDS}))(?![\w-])",
    re.IGNORECASE,
)
# The end of what is before a superlative: "one of the ", "the second ", "three "; not "the ".
_WEAKENED = re.compile(
    r"(?:\b(?:at the|at|am|zum|im|one of the|some of the|among the|amongst the|not the|nicht d\w\w"
    r"|near the|zu den|unter den"
    r"|(?:second|third|fourth|fifth|next|zweit|dritt|viert)(?:-|\s)?"
    r"|(?:two|three|four|five|six|ten|zwei|drei|vier|fünf|zehn)|\d+(?:st|nd|rd|th|\.)?)\s*)\Z",
    re.IGNORECASE,
)
# Behind "most": "of them", "likely", "recent", a full stop. "most wins" is none.
_OTHER_MOST = re.compile(
    r"""
    \s*+
    (?: (?: of | other | part | likely | probably | recent | recently | important | notable
          | notably | common | commonly | often | frequently | der | den | dem ) \b
      | \W | \Z )
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What no row has by itself: "grew the most", "the second highest", "der höchste Anteil".
_CALCULATED = re.compile(
    r"\b(?:gr[eo]w\w*|rose|ris\w+|rais\w+|fell|fall\w*|increas\w*|decreas\w*|declin\w*|drop\w*"
    r"|gain\w*|los[te]\w*|improv\w*|chang\w*|differen\w*|gaps?"
    r"|shares?|ratios?|percentages?|averages?|mean|medians?|totals?|sums?"
    r"|rank\w*|second|third|than|after|behind|except|but|without|since|never"
    r"|w[uä]chs\w*|st[ieg]+\w*|f[ai]e?l\w*|zun[ai]hm\w*|rückg\w+|anstieg\w*"
    r"|anteil\w*|durchschnitt\w*|als|nach|hinter)\b",
    re.IGNORECASE,
)
# Names of rows that are no rows among others: "World", "Total", "Average".
_TOTAL = re.compile(
    rf"\b(?:{TOTAL_WORDS}|average|mean|net|gross|world|other)\b",
    re.IGNORECASE,
)
# Heads of numbers that measure nothing: "Rank", "No.", "#", "column 3". Below the head of a year,
# as "2004", measures of other kinds follow each other, row by row.
_NO_MEASURE = re.compile(
    r".*(?:rank|position|rang\b|platz).*"
    r"|(?:place|pos|no|nr|number|id|season|week|round|grid|year|month|date|jahr|monat)\.?"
    r"|\W*|column ?\d+|.*(?:1[5-9]|20)\d\d.*",
    re.IGNORECASE,
)
# A head that is a superlative by itself: "max_wind", "highest price"; not "minutes".
_EXTREME_HEAD = re.compile(
    rf"(?<![^\W_])(?:{MOST_WORDS}|{LEAST_WORDS}|max|top|best|worst|peak|first|last)(?![^\W_])"
    r"|\Amin(?![^\W_])",
    re.IGNORECASE,
)
# The end of what is before a superlative: "New York had the ", "Oslo hat die ".
_NAME = r"(?:[^\W_][\w'’.&-]{0,30}+\s){1,4}"
_SUBJECT = re.compile(rf"({_NAME})(?:had|has|hatte|hat)\s(?:the|den|die|das)\s\Z")
# A whole cell: "-3", "$ 1,234.50", "12 %"; not "12 m".
_NUMBER = re.compile(r"[-−]?[$€£]?\s?(?P<digits>\d[\d,]*(?:\.\d+)?)\s?%?")
_NOT_UNIT_SIGN = re.compile(r"[^$€£%]")
_RANK = re.compile(r"rank|pos|place|rang|platz", re.IGNORECASE)
_PHRASE_WORDS = 6
_ROWS = 1_000  # a longer table is not compared
_TABLES = 16  # whose columns are remembered
_SHARED = 3  # values at once that the compared rows share with the row that is meant


@dataclass(frozen=True)
class Superlative:
    """A claim that something is the most or the least of its kind, as written.

    `phrase` are the words behind it, which may name a column, `calculated` those of the text that
    speak of a change or a sum: a column must be called so, or it holds nothing of the kind.
    `subject` is who "had the" most: it is compared with others, not with itself.
    """

    written: str
    is_most: bool
    phrase: str
    calculated: str
    subject: str


def superlative_in(words: str) -> Superlative | None:
    """Returns the only superlative of a text that can be looked up; None if there is none."""
    found = [*_SUPERLATIVE.finditer(words)]
    if len(found) != 1:
        return None

    match = found[0]
    rest = words[match.end() :]
    if _WEAKENED.search(words[: match.start()]):
        return None
    if match[0].lower() in ("most", "meisten") and _OTHER_MOST.match(rest):
        return None

    subject = _SUBJECT.search(words, 0, match.start())
    return Superlative(
        written=match[0],
        is_most=match["most"] is not None,
        phrase=" ".join(re.split(r"\W+", rest.strip())[:_PHRASE_WORDS]),
        calculated=" ".join(each[0] for each in _CALCULATED.finditer(words)),
        subject=subject[1] if subject else "",
    )


def has_superlative(text: str) -> bool:
    """True if a text calls anything the most or the least."""
    return _SUPERLATIVE.search(text) is not None


def not_the_extreme(
    claim: Superlative,
    words: str,
    table: MarkdownTable,
    row: TableRow,
    query: Query | None,
    is_cut: bool,
) -> str:
    """Returns the reason why a row is not the extreme that a text calls it; empty if it may be.

    `words` are those near the row's figure.
    """
    meant = _meant(claim, words, table)
    if not meant or _TOTAL.search(" ".join(row.cells)):
        return ""
    if any(_figure(row, number) is None for number in meant):
        return ""
    unordered = _unordered(query, table, is_cut, claim, meant)
    if unordered:
        return unordered

    first: list[TableRow] = []
    for rows in _comparable(table, row, words, claim.subject):
        if len(rows) < 2:
            continue
        if any(_is_extreme(row, rows, number, claim) for number in meant):
            return ""
        first = first or rows
    if not first:
        return ""

    number = meant[0]
    best = _best(first, number, claim)
    names = [cell for cell in best.cells if cell and _value(cell) is None]
    shown = " of ".join([best.cells[number], *names[:1]])
    return f"the {claim.written} {table.columns[number]} of the rows is {shown}"


def names_a_measure(claim: Superlative, words: str, table: MarkdownTable) -> bool:
    """True if it is clear which column a superlative is about.

    Its words name one, or there is only one.
    """
    meant = _meant(claim, words, table)
    named = _named(meant, claim.phrase, table) or _named(meant, words, table)
    return bool(named) or len(_figure_columns(table)) == len(meant) == 1


def _meant(claim: Superlative, words: str, table: MarkdownTable) -> list[int]:
    """Returns the columns that a superlative may be about, by its words.

    There are none if they are about something else, or the table is too long to be compared.
    """
    if len(table.rows) > _ROWS:
        return []
    heads = [column.replace("_", " ") for column in table.columns]
    if any(map(_EXTREME_HEAD.search, heads)):
        return []
    if not {*words_of(claim.calculated)} <= {*words_of(" ".join(heads))}:
        return []

    columns = _figure_columns(table)
    named = _named(columns, claim.phrase, table) or _named(columns, words, table) or columns
    return [number for number in named if _is_measure(table, number)]


@lru_cache(maxsize=_TABLES)
def _figure_columns(table: MarkdownTable) -> tuple[int, ...]:
    """Returns the numbers of the columns with figures in more than half of their filled cells."""
    columns: list[int] = []
    for number in range(len(table.columns)):
        filled = [*filter(None, cells_of(table, number))]
        if 2 * len(_figures(table, number)) > len(filled):
            columns.append(number)
    return tuple(columns)


def _figures(table: MarkdownTable, number: int) -> list[str]:
    return [row.cells[number] for row in table.rows if _figure(row, number) is not None]


@lru_cache(maxsize=_TABLES * 16)
def _is_measure(table: MarkdownTable, number: int) -> bool:
    """True for a column with figures of one unit, which are no years or ranks."""
    figures = _figures(table, number)
    units = {_NOT_UNIT_SIGN.sub("", cell) for cell in figures}
    if len(units) != 1 or all(map(is_year, figures)):
        return False
    head = table.columns[number].replace("_", " ")
    return _NO_MEASURE.fullmatch(head) is None


def _named(columns: Sequence[int], words: str, table: MarkdownTable) -> Sequence[int]:
    """Returns the columns whose heads have a word of a text."""
    near = {word for word in words_of(words) if len(word) > 2}
    heads = {number: table.columns[number].replace("_", " ") for number in columns}
    return [number for number, head in heads.items() if not near.isdisjoint(words_of(head))]


def _unordered(
    query: Query | None,
    table: MarkdownTable,
    is_cut: bool,
    claim: Superlative,
    meant: Sequence[int],
) -> str:
    """Returns that the rows are not those among which the extreme is; empty if they may be."""
    if query is None or query.aggregates:
        return ""
    cut = is_cut or (0 < query.limit <= len(table.rows))
    if query.order is None:
        if len(table.rows) == 1 and not any(map(_RANK.search, query.filters)):
            return "the query took this row alone"
        return "the query took some rows without an order" if cut else ""

    name, downwards = query.order
    heads = [table.columns[number].lower() for number in meant]
    numbers = [str(number + 1) for number in meant]
    if cut and name in (*heads, *numbers) and downwards != claim.is_most:
        return "the query took the rows at the other end"
    return ""


@lru_cache(maxsize=_TABLES)
def _without_totals(table: MarkdownTable) -> list[TableRow]:
    return [each for each in table.rows if not _TOTAL.search(" ".join(each.cells))]


@lru_cache(maxsize=_TABLES)
def words_of_rows(table: MarkdownTable) -> list[frozenset[str]]:
    """Returns the words of each row of a table; none of a table that is too long to be compared."""
    if len(table.rows) > _ROWS:
        return []
    return [frozenset(words_of(" ".join(row.cells))) for row in table.rows]


def _comparable(
    table: MarkdownTable,
    row: TableRow,
    words: str,
    subject: str,
) -> Iterator[list[TableRow]]:
    """Yields the rows that a row can be compared with.

    All, and those with the same value of columns that are named.
    """
    rows = _without_totals(table)
    yield rows

    near = {*words_of(words)} - {*words_of(subject)}
    figures = _figure_columns(table)
    shared: list[int] = []
    for number, cell in enumerate(row.cells):
        is_name = number not in figures or is_year(cell)
        own = {*words_of(cell)}
        if is_name and own and own <= near:
            shared.append(number)
    for size in range(1, min(_SHARED, len(shared)) + 1):
        for numbers in combinations(shared, size):
            yield [each for each in rows if _is_same(each, row, numbers)]


def _is_same(one: TableRow, other: TableRow, numbers: Sequence[int]) -> bool:
    """True if two rows have the same values in some columns."""
    # A row may have fewer cells than the other one.
    return all(one.cells[at : at + 1] == (other.cells[at],) for at in numbers)


def _is_extreme(row: TableRow, rows: Sequence[TableRow], number: int, claim: Superlative) -> bool:
    return _figure(row, number) == _figure(_best(rows, number, claim), number)


def _best(rows: Sequence[TableRow], number: int, claim: Superlative) -> TableRow:
    """Returns the first row with the largest figure of a column, or the smallest."""
    filled: list[tuple[Decimal, TableRow]] = []
    for row in rows:
        figure = _figure(row, number)
        if figure is not None:
            filled.append((figure, row))
    choose = max if claim.is_most else min
    _, best = choose(filled, key=lambda item: item[0])
    return best


def _figure(row: TableRow, number: int) -> Decimal | None:
    return _value(row.cells[number]) if number < len(row.cells) else None


@lru_cache(maxsize=_TABLES * 1_000)
def _value(cell: str) -> Decimal | None:
    match = _NUMBER.fullmatch(cell.strip())
    if match is None:
        return None
    size = Decimal(match["digits"].replace(",", ""))
    return -size if match[0][0] in "-−" else size
