"""The request of a query in SQL: the values by which it filtered its rows, and its tables.

It is read by its words, not parsed: a query that is not understood has no filters, and so proves nothing against a
claim.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import chain, pairwise

# A token of SQL: a comment, a text, a name in quotes, a number, a word, an operator, a sign.
_TOKEN = re.compile(
    r"--[^\n]*|/\*(?:[^*]|\*(?!/)){0,200}\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\d+(?:\.\d+)?|[^\W\d]\w*|<=|>=|<>|!=|==|[=<>(),.*]",
    re.DOTALL,
)
# The beginning of a query: "SELECT a", "-- a note\n with b as (...)"; not "selection".
_QUERY = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|with)\b", re.IGNORECASE)
_QUERY_IN_TEXT = re.compile(r"\"\s*((?:select|with)\b.*)", re.IGNORECASE | re.DOTALL)
_MOST = 5_000  # signs of a query
_VALUE_TOKENS = 199  # behind a comparison
_BEFORE_VALUES = ("date", "timestamp", "(", "lower", "upper")
_EQUAL = ("=", "==", "like", "ilike", "is")
_COMPARED = ("<", ">", "<=", ">=")
_AGGREGATES = frozenset(["count", "sum", "avg", "min", "max", "median", "mean", "stddev", "corr", "quantile"])
# fmt: off
_WORDS = frozenset([
    "select", "from", "where", "and", "or", "not", "in", "between", "like", "ilike", "is", "null", "as", "on", "join",
    "left", "right", "inner", "outer", "full", "cross", "group", "by", "order", "having", "limit", "offset", "union",
    "all", "distinct", "case", "when", "then", "else", "end", "asc", "desc", "with", "cast", "timestamp", "extract",
    "lower", "upper", "trim", "strftime",
])
# fmt: on


@dataclass
class Filter:
    """The values that a column was compared with, in lower case; `ranged` if they bound a range."""

    values: list[str] = field(default_factory=list)
    ranged: bool = False


@dataclass
class Query:
    """The filters of a query by the names of their columns, its tables, and its aggregates.

    `order` is the column, by name or number, that it sorts by first, and True for downwards.
    `limit` is the largest number of rows that it asks for, 0 for all.
    """

    filters: dict[str, Filter] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    aggregates: bool = False
    order: tuple[str, bool] | None = None
    limit: int = 0

    @property
    def words(self) -> str:
        """All values that its rows were chosen by, and the names of its tables."""
        values = chain.from_iterable(compared.values for compared in self.filters.values())
        return " ".join([*values, *self.tables])


def read_query(arguments: str) -> Query | None:
    """Returns the query among the arguments of a tool call, which are JSON and may be cut.

    None if they have none.
    """
    sql = sql_in(arguments)
    if not sql:
        return None
    found = _TOKEN.findall(sql[:_MOST])
    tokens = [token for token in found if not token.startswith(("--", "/*"))]
    query = Query(aggregates=any(_opens(pair, _AGGREGATES) for pair in pairwise(tokens)))
    for at, token in enumerate(tokens):
        word = token.lower()
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if word in ("from", "join"):
            if following not in ("", "("):
                query.tables.append(plain_name(following))
        elif word in (*_EQUAL, *_COMPARED, "in", "between"):
            _read_filter(query, tokens, at)
        elif word == "order":
            query.order = _order_after(tokens, at)
        elif word == "limit" and following.isdigit():
            query.limit = int(following)
    return query


def sql_in(arguments: str) -> str:
    """Returns the query among the arguments of a tool call; empty without one."""
    try:
        read = json.loads(arguments)
    except ValueError:
        found = _QUERY_IN_TEXT.search(arguments)
        return found[1].replace("\\n", " ").replace('\\"', '"') if found else ""
    values = read.values() if isinstance(read, dict) else [read]
    return next((value for value in values if isinstance(value, str) and _QUERY.match(value)), "")


def _opens(pair: tuple[str, str], names: frozenset[str]) -> bool:
    return pair[1] == "(" and pair[0].lower() in names


def _read_filter(query: Query, tokens: list[str], at: int) -> None:
    """Notes the comparison at a token, unless it is a negation or one of two columns."""
    word = tokens[at].lower()
    if at and tokens[at - 1].lower() == "not":
        return
    name = _column_before(tokens, at)
    values = _values_after(tokens, at)
    if not name or not values:
        return
    found = query.filters.setdefault(name, Filter())
    found.values += values
    found.ranged = found.ranged or word in (*_COMPARED, "between")


def _column_before(tokens: list[str], at: int) -> str:
    """Returns the name of the column before a comparison, also as the argument of a function."""
    number = at - 1
    if number >= 0 and tokens[number] == ")":
        while number >= 0 and tokens[number] != "(":
            number -= 1
        inside = [token for token in tokens[number + 1 : at - 1] if _is_name(token)]
        return plain_name(inside[-1]) if inside else ""
    if number < 0 or not _is_name(tokens[number]):
        return ""
    return plain_name(tokens[number])


def _values_after(tokens: list[str], at: int) -> list[str]:
    """Returns the literals that a column is compared with."""
    word = tokens[at].lower()
    between: tuple[str, ...] = (",",)
    if word == "between":
        between = (",", "and", "date", "timestamp")
    following = tokens[at + 1 : at + 1 + _VALUE_TOKENS]
    begin = 0
    while begin < len(following) and following[begin].lower() in _BEFORE_VALUES:
        begin += 1
    values: list[str] = []
    for token in following[begin:]:
        is_literal = token.startswith("'") or token[0].isdigit()
        if is_literal:
            values.append(token.strip("'").replace("''", "'").strip("% ").lower())
        elif token.lower() not in between:
            break
        if word not in ("in", "between"):
            break
    return values


def _order_after(tokens: list[str], at: int) -> tuple[str, bool]:
    """Returns the first column behind ORDER BY, "" for a calculation, and True for downwards."""
    key = tokens[at + 2 : at + 4]
    is_plain = len(key) < 2 or key[1].lower() in (",", "asc", "desc", "limit", ")", "nulls")
    name = plain_name(key[0]) if key and is_plain else ""
    return name, len(key) == 2 and key[1].lower() == "desc"


def _is_name(token: str) -> bool:
    return token.startswith(('"', "`")) or (token[:1].isidentifier() and token.lower() not in _WORDS)


def plain_name(written: str) -> str:
    """Returns the name of a table or column without its quotes, in small letters."""
    return written.strip('"`').replace('""', '"').lower()
