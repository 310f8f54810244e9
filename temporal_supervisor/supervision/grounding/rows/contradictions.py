"""Contradictions between a text and the row of its figure: another name, another year or unit.

Words of a text are evidence against a row only where the table or its query knows them as another
value of a column: a name that no column has proves nothing. Each function returns the evidence
against the figure in words for people, and an empty text without any.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, product

from temporal_supervisor.supervision.grounding.rows.column_kinds import (
    has_word,
    is_figure_column,
    is_text_column,
    units_of,
    written_head,
)
from temporal_supervisor.supervision.grounding.rows.row_facts import Facts, Mention, Names
from temporal_supervisor.supervision.grounding.units import (
    DIMENSIONS,
    exclude_each_other,
    multiples,
)
from temporal_supervisor.supervision.grounding.wording.near_words import Near
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import (
    YEAR,
    Day,
    dates_in,
    may_be_one,
    years_in,
)

_EMPTY = ("", "NULL", "-", "–", "—", "N/A", "n/a")


def wrong_unit(unit: str | None, near: Near, facts: Facts) -> str:
    """Returns the reason why a figure in a unit cannot be one of this column; empty without one."""
    if unit is None:
        return _wrong_head(near.column, facts)
    if unit not in DIMENSIONS or not facts.units or unit in facts.units:
        return ""
    convertible = {other for other, _ in multiples(unit)}
    dimensions = {DIMENSIONS[each] for each in (unit, *facts.units)}
    if "share" in dimensions or not convertible.isdisjoint(facts.units):
        return ""  # compared elsewhere
    return f"its column is {facts.column}, which is not in {unit}"


def _wrong_head(head: str, facts: Facts) -> str:
    """Returns the reason why a figure below a head cannot be one of this column; empty without one.

    The reason is another unit in the head, as in `2001 (MWh)`.
    """
    pairs = [*product(units_of(head), facts.units)]
    if pairs and all(exclude_each_other(unit, own) for unit, own in pairs):
        return f"its column is {facts.column}, not {head.strip()}"
    return ""


def contradiction(near: Near, facts: Facts, names: Names) -> str:
    """Returns the contradiction between the words near a figure and its row; empty without one."""
    when = _other_year(near, facts) or _other_date(near, facts)
    return when or _other_column(near, facts) or _other_name(near, facts, names)


def _other_column(near: Near, facts: Facts) -> str:
    """Returns the column of a figure that a text binds to another one; empty if it does not."""
    before, _, after = near.own.partition(" ~ ")
    for column in facts.table.columns:
        is_other = column != facts.column and has_word(column)
        if not is_other or not is_figure_column(facts.table, column):
            continue
        head = written_head(column)
        behind = rf"\s?(?:at|in|for|during)\s(?:the\s)?{head}(?!\w)"
        in_front = rf"(?<!\w){head}\*{{0,2}}(?::\*{{0,2}}|\sis|\swas)\s*\Z"
        is_bound = re.match(behind, after, re.IGNORECASE)
        if is_bound or re.search(in_front, before, re.IGNORECASE):
            return f"its column is {facts.column}, not {column}"
    return ""


def _other_year(near: Near, facts: Facts) -> str:
    """Returns the years of a row, or of its query, where a text has another; empty without one."""
    if near.year is not None and facts.years and near.year not in facts.years:
        return f"the row has {_listed(facts.years)}, not {near.year}"
    said = _certain_years(near) - facts.amounts
    if not said:
        return ""

    loose = _loose_years(near)
    told = _listed(said)
    if facts.undated and len(said) == 1 and not loose:
        if facts.years and said.isdisjoint(facts.years):
            return f"the query asked for {_listed(facts.years)}, not {told}"
        return "the query did not select the year"
    allowed = said | loose
    if facts.years and allowed.isdisjoint(facts.years):
        return f"the row has {_listed(facts.years)}, not {told}"
    low, high = facts.year_range or (0, 9999)
    if any(low <= year <= high for year in allowed):
        return ""
    if low == high:
        return f"the query is bounded by {low}"
    return f"the query asked for {low} to {high}, not {told}"


def _listed(years: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(years)))


def _loose_years(near: Near) -> set[int]:
    """Returns the years near a figure that need not be its own, and the bounds of ranges."""
    single, bounds = years_in(near.loose)
    _, own_bounds = years_in(near.own)
    return single | bounds | own_bounds


def _other_date(near: Near, facts: Facts) -> str:
    """Returns the date of a row where a text has another one; empty if it has none or that one."""
    said = dates_in(near.own)
    if not said or not facts.dates:
        return ""
    allowed = said | dates_in(near.loose)
    if any(may_be_one(*pair) for pair in product(allowed, facts.dates)):
        return ""
    return f"the row has {_written(min(facts.dates))}, not {', '.join(map(_written, sorted(said)))}"


def _written(day: Day) -> str:
    """Returns a date as 2010-03-01, without the year or the day if it has none."""
    year, month, number = day
    parts = [str(year)] if year else []
    parts.append(f"{month:02}")
    if number:
        parts.append(f"{number:02}")
    return "-".join(parts)


def _certain_years(near: Near) -> set[int]:
    """Returns the years that a text binds to a figure beyond doubt."""
    if near.among > 1:
        for text in (near.before, near.after):
            listed = [int(match["year"]) for match in YEAR.finditer(text)]
            if len(listed) == near.among:
                return {listed[near.place]}
    own, _ = years_in(near.own)
    if own or _loose_years(near):
        return own
    above, _ = years_in(near.head)
    return above if len(above) == 1 else set()


def _other_name(near: Near, facts: Facts, names: Names) -> str:
    """Returns the name of a row where a text has another one of its column; empty if not."""
    own = names.mentions(near.own)
    loose = names.mentions(near.loose)
    above = [] if own or loose else names.mentions(near.head)
    for column in _columns_of(own, above):
        said = _of_column(near, column, own, names) or _of_column(near, column, above, names)
        if not said:
            continue
        allowed = [*said, *_in_column(loose, column)]
        if any(facts.words.issuperset(mention.words) for mention in allowed):
            continue

        told = said[0].written
        if column in facts.columns:
            value = _value(facts, column)
            if value in _EMPTY:
                continue
            return f"the row has {value}, not {told}"
        is_known = any(column in names.columns_of.get(table, ()) for table in facts.tables)
        if facts.unnamed and is_known:
            return f"the query did not select {column}"
    return ""


def _columns_of(*mentions: Sequence[Mention]) -> list[str]:
    """Returns the columns of the names that a text mentions."""
    columns: set[str] = set()
    for mention in chain.from_iterable(mentions):
        columns |= mention.columns
    return sorted(columns)


def _in_column(mentions: Iterable[Mention], column: str) -> list[Mention]:
    return [mention for mention in mentions if column in mention.columns]


def _written_in(mentions: Iterable[Mention], column: str) -> dict[tuple[str, ...], str]:
    """Returns the names of a column by their words, as they were written last."""
    return {mention.words: mention.written for mention in _in_column(mentions, column)}


def _of_column(near: Near, column: str, said: Sequence[Mention], names: Names) -> list[Mention]:
    """Returns the names of a column for a figure: of as many as figures the one in its place."""
    if near.among > 1:
        for text in (near.before, near.after):
            listed = _in_column(names.mentions(text), column)
            if len(listed) == near.among:
                return [listed[near.place]]
    return _in_column(said, column)


def _value(facts: Facts, column: str) -> str:
    """Returns the value of a row in a column, or the one by which its query chose it."""
    for head, cell in zip(facts.table.columns, facts.row.cells, strict=False):
        if head.lower() == column:
            return cell
    if column in facts.filters:
        return ", ".join(facts.filters[column].values)
    return "another value"


def are_bound(near: Near, names: Names) -> bool:
    """True if the words near a figure bind it to a name of a table or to a year.

    Without them no words beside it in a source are other ones.
    """
    return near.year is not None or bool(_certain_years(near)) or bool(names.mentions(near.own))


def other_words(near: Near, there: Near, names: Names) -> str:
    """Returns the mismatch of the years or names beside a figure in a text and in a source.

    Empty if they do not differ.
    """
    own_here = names.mentions(near.own)
    own_there = names.mentions(there.own)
    loose_there = names.mentions(f"{there.loose} {there.head}")
    loose = {mention.words for mention in (*names.mentions(near.loose), *loose_there)}
    for column in _columns_of(own_here):
        here_written = _written_in(own_here, column)
        there_written = _written_in(own_there, column)
        is_same = not (here_written.keys() | loose).isdisjoint(there_written.keys() | loose)
        if here_written and there_written and not is_same:
            told = next(iter(here_written.values()))
            known = next(iter(there_written.values()))
            return f"it stands beside {known}, not {told}"
    return _other_years(near, there)


def _other_years(near: Near, there: Near) -> str:
    """Returns the years beside a figure in a source where a text has others; empty if not."""
    if near.year is not None and there.year is not None and near.year != there.year:
        return f"it stands beside {there.year}, not {near.year}"
    told = _certain_years(near)
    known = _certain_years(there)
    if not told or not known:
        return ""
    loose = _loose_years(near) | _loose_years(there)
    if told & known or (told | known) & loose:
        return ""
    return f"it stands beside {_listed(known)}, not {_listed(told)}"


def computed_of_others(
    near: Near,
    operands: Sequence[Sequence[Facts]],
    unit: str | None,
    names: Names,
) -> str:
    """Returns the evidence that a figure was computed from rows of another name, year or unit.

    Empty without such evidence.
    """
    if not operands or not all(operands):
        return ""
    doubts: list[str] = []
    for facts in chain.from_iterable(operands):
        doubts.append(wrong_unit(unit, near, facts) or contradiction(near, facts, names))
    return f"it is computed from figures of which {doubts[0]}" if all(doubts) else ""


def mixed_rows(near: Near, operands: Sequence[Sequence[Facts]], names: Names) -> str:
    """Returns the reason why two figures of a difference don't belong together; empty without one.

    They do not if a query leaves open which rows they are of, or if their rows have other names
    than the text.
    """
    for facts in operands:
        alike = min(fact.alike for fact in facts)
        if alike > 1:
            shown = facts[0].written
            return f"the query does not tell {alike} rows apart, one of which has {shown}"

    said = names.mentions(f"{near.own} {near.loose} {near.before} {near.after} {near.head}")
    first, second = operands
    pairs = [*product(first, second)]
    for column in _columns_of(said):
        with_it = [(one, other) for one, other in pairs if column in one.columns & other.columns]
        told = _in_column(said, column)
        if with_it and not any(_belong(one, other, column, told) for one, other in with_it):
            one, other = with_it[0]
            return f"it mixes the rows of {_value(one, column)} and {_value(other, column)}"
    apart = [_unlike(one, other, said) for one, other in pairs]
    return f"it mixes the rows of {apart[0]}" if all(apart) else ""


def _unlike(one: Facts, other: Facts, said: Sequence[Mention]) -> str:
    """Returns the names of two rows of other years, if a text does not name both.

    Empty if the rows may be compared.
    """
    if one.table is not other.table:
        return ""
    if not one.years or not other.years or one.years & other.years:
        return ""
    cells = zip(one.table.columns, one.row.cells, other.row.cells, strict=False)
    for column, cell, another in cells:
        if cell == another:
            continue
        are_mentioned = _is_mentioned(cell, said) and _is_mentioned(another, said)
        if not are_mentioned and is_text_column(one.table, column):
            return f"{cell} and {another}"
    return ""


def _is_mentioned(cell: str, said: Sequence[Mention]) -> bool:
    words = {*words_of(cell)}
    return any(words.issuperset(mention.words) for mention in said)


def _belong(one: Facts, other: Facts, column: str, told: Sequence[Mention]) -> bool:
    """True if a text names the value that two rows have in a column, or both of their values."""
    of_one = {mention for mention in told if one.words.issuperset(mention.words)}
    of_other = {mention for mention in told if other.words.issuperset(mention.words)}
    if not of_one or not of_other:
        return False
    return _value(one, column) == _value(other, column) or len(of_one | of_other) > 1
