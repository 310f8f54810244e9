"""The request of a query in SQL: the values by which it filtered its rows, and its tables.

It is read by its words, not parsed: a query that is not understood has no filters, and so proves
nothing against a claim.
"""

import json
import re
from dataclasses import dataclass, field
from itertools import chain, dropwhile, pairwise

# A token of SQL: a comment, a text, a name in quotes, a number, a word, an operator, a sign.
_TOKEN = re.compile(
    r"--[^\n]*|/\*(?:[^*]|\*(?!/)){0,200}\*/"
    r"|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`"
    r"|\d+(?:\.\d+)?|[^\W\d]\w*|<=|>=|<>|!=|==|[=<>(),.*]",
    re.DOTALL,
)
# The beginning of a query: "SELECT a", "-- a note\n with b as (...)"; not "selection".
_QUERY = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:select|with)\b", re.IGNORECASE)
# The query of arguments that were cut, and are no JSON any more: `{"sql": "SELECT a FR`.
_QUERY_IN_TEXT = re.compile(r"\"\s*((?:select|with)\b.*)", re.IGNORECASE | re.DOTALL)
_MOST = 5_000  # signs of a query
_VALUE_TOKENS = 199  # behind a comparison
_BEFORE_VALUES = ("date", "timestamp", "(", "lower", "upper")
# Comparisons with several values, and the words between these.
_BETWEEN_VALUES = {
    "in": (",",),
    "between": (",", "and", "date", "timestamp"),
}
_EQUAL = ("=", "==", "like", "ilike", "is")
_COMPARED = ("<", ">", "<=", ">=")
_AGGREGATE_WORDS = "count sum avg min max median mean stddev corr quantile"
_AGGREGATES = frozenset(_AGGREGATE_WORDS.split())
_SQL_WORDS = """
select from where and or not in between like ilike is null as on join left right inner outer full
cross group by order having limit offset union all distinct case when then else end asc desc with
cast timestamp extract lower upper trim strftime
"""
_WORDS = frozenset(_SQL_WORDS.split())


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
    for value in values:
        if isinstance(value, str) and _QUERY.match(value):
            return value
    return ""


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
    before = [tokens[number]] if number >= 0 else []
    if before == [")"]:
        while number >= 0 and tokens[number] != "(":
            number -= 1
        before = tokens[number + 1 : at - 1]
    names = [token for token in before if _is_name(token)]
    return plain_name(names[-1]) if names else ""


def _values_after(tokens: list[str], at: int) -> list[str]:
    """Returns the literals that a column is compared with."""
    word = tokens[at].lower()
    separators = _BETWEEN_VALUES.get(word, ())
    following = tokens[at + 1 : at + 1 + _VALUE_TOKENS]
    values: list[str] = []
    for token in dropwhile(_is_before_values, following):
        is_literal = token.startswith("'") or token[0].isdigit()
        if is_literal:
            values.append(token.strip("'").replace("''", "'").strip("% ").lower())
        elif token.lower() not in separators:
            break
        if not separators:
            break
    return values


def _is_before_values(token: str) -> bool:
    return token.lower() in _BEFORE_VALUES


def _order_after(tokens: list[str], at: int) -> tuple[str, bool]:
    """Returns the first column behind ORDER BY, "" for a calculation, and True for downwards."""
    key = tokens[at + 2 : at + 4]
    is_plain = len(key) < 2 or key[1].lower() in (",", "asc", "desc", "limit", ")", "nulls")
    name = plain_name(key[0]) if key and is_plain else ""
    return name, len(key) == 2 and key[1].lower() == "desc"


def _is_name(token: str) -> bool:
    if token.startswith(('"', "`")):
        return True
    return token[:1].isidentifier() and token.lower() not in _WORDS


def plain_name(written: str) -> str:
    """Returns the name of a table or column without its quotes, in small letters."""
    return written.strip('"`').replace('""', '"').lower()
