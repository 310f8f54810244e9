"""The words of SQL: names, literals, conditions."""

_KEYWORDS = """
all and any as asc by case desc from group in is join like limit not null on or order select table then to union user
using when where with
"""
_RESERVED = frozenset(_KEYWORDS.split())


def name(raw: str) -> str:
    """A table's or column's name, quoted where it has to be."""
    plain = raw.isidentifier() and raw == raw.lower() and raw not in _RESERVED
    return raw if plain else '"' + raw.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text literal."""
    return "'" + value.replace("'", "''") + "'"


def where(clauses: list[str]) -> str:
    """A WHERE clause, empty without conditions."""
    return f" WHERE {' AND '.join(clauses)}" if clauses else ""


def one_of(column: str, values: list[str]) -> str:
    """The condition that a text column has one of the values."""
    listed = ", ".join(text(value) for value in values)
    return f"{name(column)} = {listed}" if len(values) == 1 else f"{name(column)} IN ({listed})"


def begins(column: str, values: list[str]) -> str:
    """The condition that a text column begins with one of the values."""
    return "(" + " OR ".join(f"{name(column)} LIKE {text(value + '%')}" for value in values) + ")"
