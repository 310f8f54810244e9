"""The shape of a query in SQL: what it computes, sorts, compares and names.

`shape_of` takes the text of a query and returns its `QueryShape`, whose properties the rules of
this room read. The query is read by its words, not parsed. What is not understood counts as there,
so that it raises no doubt.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

_NAMED = "named"  # in place of a name in quotes

# Patterns of a query as it was written.
# "-- up to the end of the line", "/* at most 500 characters */".
_COMMENT = re.compile(r"--[^\n]*|/\*(?:[^*]|\*(?!/)){0,500}\*/")
# A text 'Bob''s' or a name: "total wins", `wins`.
_PART = re.compile(r"'((?:[^']|'')*+)'|\"((?:[^\"]|\"\")*+)\"|`([^`]*+)`")

# Patterns of a bare query: in small letters, with '' for each text and `named` for each name.
_TEXT = re.compile("''")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FUNCTION = re.compile(r"\b([a-z_]\w*)\s*\(")  # "count(", and also "in ("
_SORTS = re.compile(r"\border\s+by\b|\bqualify\b")
_DOWN = re.compile(r"\bdesc\b")
_LIMIT = re.compile(r"\b(?:limit|top|fetch\s+first)\s+\(?\s?(\d+)")  # "limit 5", "top (5"
_COMPARES = re.compile(r"[<>]|\bbetween\b|\blike\b|\bilike\b|\bnot\b|!=|~|\bcase\b")
_CALCULATES = re.compile(r"[\w)]\s*[-+/]\s*[\w(]")  # "a - b", "sum(a)/2"; not "a * b"
_CHOOSES = re.compile(r"\b(?:where|having|limit|join|qualify|filter)\b")
# "select *", "t.*", "a, *"; not "count(*)", "a * b".
_STARS = re.compile(r"(?:\bselect\s+(?:distinct\s+)?|[,.]\s*)\*")
# What is between SELECT and FROM, or the next SELECT.
_SELECTED = re.compile(r"\bselect\b((?:(?!\bselect\b|\bfrom\b).){0,2000})", re.DOTALL)
# "select max(a)" as the beginning of the whole query.
_OUTER_EXTREME = re.compile(r"\s*select\s+(?:distinct\s+)?(max|min)\s*\(")
# "not", "a <> ''", "a = 0", "anti join", "is null".
_DENIES = re.compile(r"\bnot\b|<>|!=|\bexcept\b|\bnull\b|=\s*0\b|<\s*1\b|\bfalse\b|\banti\b")
# The end of what is before an excluded text: "a <> ", "a not like ", "a not in ('', ".
_OTHERS_LISTED = r"(?:\s{0,5}''\s{0,5},)*+"  # before a text in NOT IN
_EXCLUDES = re.compile(
    rf"""
    (?:!= | <> | \bnot\s{{1,5}}i?like | \bnot\s{{1,5}}in\s{{0,5}}\( {_OTHERS_LISTED})
    \s{{0,5}}\Z
    """,
    re.VERBOSE,
)
_BEFORE_CHARS = 400  # of a text: a list of NOT IN that is longer is read from its last part
# "2004 < 2009", "2004 as int) = cast(2009"; not "year < 2009".
_TWO_NUMBERS = re.compile(
    r"""
    (?<![\w.'"]) (?P<first>\d{1,15}) (?: \s{1,5} as \s{1,5} \w{1,20} \s{0,5} \) )?
    \s{0,5} [<>=]{1,2} \s{0,5} (?: cast \s{0,5} \( \s{0,5} )? (?P<second>\d{1,15}) (?![\w.])
    """,
    re.VERBOSE,
)
_FIRST = re.compile(r"=\s*1\b")  # "rank = 1"
# A column as it is: a cast or a function before it may make numbers of its texts.
_NAME = r"(?:[a-z_]\w*\s?\.\s{0,2})?\b([a-z_]\w*)\b"
# "order by year", "order by t.year"; not "order by cast(year as int)", "order by year::int + 1".
_SORTED_COLUMN = re.compile(rf"\border\s+by\s+{_NAME}(?!\s*[\w(.]*\(|\s*::|\s*[-+*/|])")
_EXTREME_COLUMN = re.compile(rf"\b(?:max|min)\s*\(\s*{_NAME}\s*\)")  # "max(year)"
# "day < ''", "day between ''"; not "day <> ''", "day::date < ''".
_COMPARED_COLUMN = re.compile(r"(?<!:)\b([a-z_]\w*)\s*(?:[<>]=?(?!>)|between)\s*''")

# Functions by what they may compute.
# fmt: off
_COUNTS = frozenset([
    "count", "count_if", "countif", "row_number", "rank", "dense_rank", "sum", "list", "histogram",
])
_OTHER_TOTALS = frozenset(["sum", "count", "fsum", "sum_no_overflow", "count_if"])
_MEANS = frozenset(["avg", "mean", "median", "mode", "quantile", "quantile_cont", "favg", "sum"])
_TOPS = frozenset(["max", "arg_max", "max_by", "argmax"])
_LOWS = frozenset(["min", "arg_min", "min_by", "argmin"])
_EXTREMES = _TOPS | _LOWS | {"first", "last", "mode", "any_value"}
_DIFFERENCES = frozenset([
    "abs", "date_diff", "datediff", "datesub", "date_sub", "age", "lag", "lead", "subtract",
])
_RANKS = frozenset([
    "rank", "dense_rank", "row_number", "lag", "lead", "nth_value", "first_value", "last_value",
])
# fmt: on
_NO = frozenset(["no", "none", "false"])


@dataclass(frozen=True)
class QueryShape:
    """A query, taken apart.

    `bare` are its words in small letters, without comments, and without the `texts` and the quoted
    `names` that it holds. `selected` are the parts behind SELECT, with the names.
    """

    bare: str
    texts: tuple[str, ...]
    names: tuple[str, ...]
    selected: str

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of functions that it calls."""
        return frozenset(_FUNCTION.findall(self.bare))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """All numbers in it, also those in texts and names, without leading zeros."""
        whole = _spaced(self.bare, *self.texts, *self.names)
        return frozenset(plain_number(each) for each in _NUMBER.findall(whole))

    @cached_property
    def words(self) -> frozenset[str]:
        """All its words, those of SQL among them."""
        return frozenset(words_of(_spaced(self.bare, *self.texts, *self.names)))

    @cached_property
    def excluded(self) -> list[str]:
        """The texts that no row of it may have, as behind `<>` and NOT IN."""
        return [text for text, is_excluded in self._compared_texts() if is_excluded]

    @cached_property
    def chosen(self) -> list[str]:
        """The texts that rows of it may have: all others."""
        return [text for text, is_excluded in self._compared_texts() if not is_excluded]

    def _compared_texts(self) -> Iterator[tuple[str, bool]]:
        """Yields each text, and whether it is excluded."""
        places = _TEXT.finditer(self.bare)
        # A comment that never ends may hide some.
        for text, place in zip(self.texts, places, strict=False):
            yield text, self._is_excluded(place.start())

    def _is_excluded(self, place: int) -> bool:
        """True if the text at a place of the bare query is behind a comparison that excludes it."""
        before = self.bare[max(0, place - _BEFORE_CHARS) : place]
        return _EXCLUDES.search(before) is not None

    @cached_property
    def columns(self) -> frozenset[str]:
        """The words of all names in it."""
        return frozenset(words_of(_spaced(self.bare, *self.names)))

    @cached_property
    def shown(self) -> frozenset[str]:
        """The words of the names behind its SELECTs."""
        return frozenset(words_of(_spaced(self.selected)))

    @property
    def counts_rows(self) -> bool:
        """True if it counts rows, whatever is in them."""
        close = self.bare.replace(" ", "")
        return "count(*)" in close or "count(1)" in close

    @property
    def denies(self) -> bool:
        """True if it leaves out rows that have something."""
        if _DENIES.search(self.bare):
            return True
        return any(text.lower() in _NO for text in self.texts)

    @property
    def outer_extreme(self) -> str:
        """The function, if it shows the highest or lowest of a column and nothing else."""
        found = _OUTER_EXTREME.match(self.bare)
        return found[1] if found and not _CALCULATES.search(self.bare) else ""

    @property
    def counts(self) -> bool:
        """True if it counts or adds up."""
        return bool(self.functions & _COUNTS)

    @property
    def averages(self) -> bool:
        """True if it computes a mean, or may do so by a division."""
        return bool(self.functions & _MEANS) or "/" in self.bare

    @property
    def totals(self) -> bool:
        """True if it adds up or counts."""
        return bool(self.functions & _OTHER_TOTALS) or "+" in self.bare

    @property
    def sorts(self) -> bool:
        """True if it sorts or takes an extreme, or compares with one."""
        return bool(_SORTS.search(self.bare) or self.functions & (_EXTREMES | _RANKS))

    @property
    def takes_first(self) -> bool:
        """True if it chooses rows by a rank, as in `rank = 1`."""
        if _FIRST.search(self.bare):
            return True
        # As in `place LIKE '1st%'` and `rank = '#1'`.
        texts = (text.strip("% #.").lower() for text in self.texts)
        return any(text in ("1", "1st", "first") for text in texts)

    @property
    def compares(self) -> bool:
        """True if it compares by more than equality."""
        return bool(_COMPARES.search(self.bare) or self.functions & _RANKS)

    @property
    def compared_numbers(self) -> tuple[str, str] | None:
        """The two numbers that it compares with each other, as in `CAST(2004 AS INT) < 2009`.

        The same number on both sides, as in `1 = 1`, is a condition that is always met on purpose.
        """
        for found in _TWO_NUMBERS.finditer(self.bare):
            if found["first"] != found["second"]:
                return found["first"], found["second"]
        return None

    @property
    def subtracts(self) -> bool:
        """True if it may compute a difference."""
        return bool(_CALCULATES.search(self.bare) or self.functions & _DIFFERENCES)

    @property
    def limit(self) -> int:
        """The number of rows that it takes at most; 0 for all."""
        found = _LIMIT.search(self.bare)
        return int(found[1]) if found else 0

    @property
    def chooses(self) -> bool:
        """True if it leaves out rows."""
        return bool(_CHOOSES.search(self.bare))

    @property
    def shows_all(self) -> bool:
        """True if it shows all columns of its rows."""
        return bool(_STARS.search(self.bare))

    @cached_property
    def ordered(self) -> list[str]:
        """The columns by whose order it takes rows, in small letters.

        It sorts by them, takes an extreme of them, or compares them by order with a text.
        """
        columns: list[str] = []
        for pattern in (_SORTED_COLUMN, _EXTREME_COLUMN, _COMPARED_COLUMN):
            for match in pattern.finditer(self.bare):
                columns.append(self._name_at(match.start(1), match[1]))
        return columns

    def _name_at(self, place: int, word: str) -> str:
        """Returns the name for a word of `bare`, where a name in quotes is the word `named`."""
        if word != _NAMED:
            return word
        number = self.bare[:place].split().count(_NAMED)
        return self.names[number] if number < len(self.names) else word

    @property
    def direction(self) -> int:
        """1 if it takes the highest of a column alone, -1 for the lowest, 0 where neither is clear.

        Examples: 1 for `max(wins)` and for `ORDER BY wins DESC LIMIT 1`.
        """
        takes_top = not self.functions.isdisjoint(_TOPS)
        takes_low = not self.functions.isdisjoint(_LOWS)
        sorts = [*_SORTS.finditer(self.bare)]
        if takes_top != takes_low and not sorts:
            return 1 if takes_top else -1
        takes_first_row = len(sorts) == 1 and self.limit == 1
        if takes_top or takes_low or not takes_first_row:
            return 0
        return 1 if _DOWN.search(self.bare, sorts[0].end()) else -1


def shape_of(sql: str) -> QueryShape:
    """Returns the shape of a query.

    Example: `SELECT "Wins" FROM t WHERE name = 'Bob'` has the bare words
    `select named from t where name = ''`, the text `Bob`, the name `wins`, and selects `wins`.
    """
    plain = _COMMENT.sub(" ", sql)
    texts: list[str] = []
    names: list[str] = []

    def blanked(part: re.Match[str]) -> str:
        if part[1] is not None:
            texts.append(part[1].replace("''", "'"))
            return " '' "
        names.append((part[2] or part[3] or "").replace('""', '"').lower())
        return f" {_NAMED} "

    def named(part: re.Match[str]) -> str:
        return " '' " if part[1] is not None else part[2] or part[3] or ""

    bare = _PART.sub(blanked, plain).lower()
    selected = " ".join(_SELECTED.findall(_PART.sub(named, plain).lower()))
    return QueryShape(bare, tuple(texts), tuple(names), selected)


def _spaced(*texts: str) -> str:
    """Returns texts in one, the parts of `wins_of_1994` as words of their own."""
    return " ".join(texts).replace("_", " ")


def plain_number(written: str) -> str:
    """Returns a number without leading zeros, and without those behind the point."""
    whole, point, rest = written.replace(",", "").partition(".")
    rest = rest.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + rest if rest else "")
