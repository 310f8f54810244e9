"""Contradictions between a text and the row of its figure: another name, another year or unit.

Words of a text are evidence against a row only where the table or its query knows them as another value of a column: a
name that no column has proves nothing. Each function returns what speaks against the figure, in words for people, and
nothing where nothing does.
"""

import re
from collections.abc import Sequence

from temporal_supervisor.supervision.grounding.rows.row_facts import (
    Facts,
    Mention,
    Names,
    is_figure_column,
    is_text_column,
    units_of,
    words_of,
)
from temporal_supervisor.supervision.grounding.units import DIMENSIONS, exclude_each_other, multiples
from temporal_supervisor.supervision.grounding.wording.nearby import Near
from temporal_supervisor.supervision.grounding.wording.time_words import YEAR, Day, dates_in, may_be_one, years_in

_IS_HEAD = re.compile(r"[^\W\d_]{3}")
_EMPTY = ("", "NULL", "-", "–", "—", "N/A", "n/a")


def wrong_unit(unit: str | None, near: Near, facts: Facts) -> str:
    """Returns the reason why a figure in a unit cannot be one of this column; empty without one."""
    if unit is None:
        return _wrong_head(near.column, facts)
    if unit not in DIMENSIONS or not facts.units or unit in facts.units:
        return ""
    convertible = {other for other, _ in multiples(unit)}
    own = {DIMENSIONS[each] for each in facts.units}
    if convertible & facts.units or DIMENSIONS[unit] == "share" or "share" in own:  # compared elsewhere
        return ""
    return f"its column is {facts.column}, which is not in {unit}"


def _wrong_head(head: str, facts: Facts) -> str:
    """Returns the reason why a figure below a head cannot be one of this column; empty without one.

    The head names another unit, as `2001 (MWh)`.
    """
    named = units_of(head)
    wrong = bool(named) and all(exclude_each_other(unit, own) for unit in named for own in facts.units)
    return f"its column is {facts.column}, not {head.strip()}" if wrong and facts.units else ""


def contradiction(near: Near, facts: Facts, names: Names) -> str:
    """Returns the contradiction between the words near a figure and its row; empty without one."""
    when = _other_year(near, facts) or _other_date(near, facts)
    return when or _other_column(near, facts) or _other_name(near, facts, names)


def _other_column(near: Near, facts: Facts) -> str:
    """Returns the column of a figure that a text binds to another one; empty if it does not."""
    before, _, after = near.own.partition(" ~ ")
    for column in facts.table.columns:
        is_other = column != facts.column and _IS_HEAD.search(column)
        if not is_other or not is_figure_column(facts.table, column):
            continue
        head = r"\s".join(map(re.escape, column.split()))
        behind = rf"\s?(?:at|in|for|during)\s(?:the\s)?{head}(?!\w)"
        in_front = rf"(?<!\w){head}\*{{0,2}}(?::\*{{0,2}}|\sis|\swas)\s*\Z"
        is_bound = re.match(behind, after, re.IGNORECASE)
        if is_bound or re.search(in_front, before, re.IGNORECASE):
            return f"its column is {facts.column}, not {column}"
    return ""


def _other_year(near: Near, facts: Facts) -> str:
    if near.year is not None and facts.years and near.year not in facts.years:
        return f"the row has {', '.join(map(str, sorted(facts.years)))}, not {near.year}"
    said = _certain_years(near) - facts.amounts
    if not said:
        return ""
    loose = set[int]().union(*years_in(near.loose), years_in(near.own)[1])
    told = ", ".join(map(str, sorted(said)))
    if facts.undated and len(said) == 1 and not loose:
        if facts.years and not said & facts.years:
            return f"the query asked for {', '.join(map(str, sorted(facts.years)))}, not {told}"
        return "the query did not select the year"
    if facts.years and not (said | loose) & facts.years:
        return f"the row has {', '.join(map(str, sorted(facts.years)))}, not {told}"
    low, high = facts.year_range or (0, 9999)
    if not any(low <= year <= high for year in said | loose):
        return f"the query asked for {low} to {high}, not {told}" if low != high else f"the query is bounded by {low}"
    return ""


def _other_date(near: Near, facts: Facts) -> str:
    said = dates_in(near.own)
    allowed = said | dates_in(near.loose)
    if not said or not facts.dates or any(may_be_one(day, own) for day in allowed for own in facts.dates):
        return ""
    return f"the row has {_written(min(facts.dates))}, not {', '.join(map(_written, sorted(said)))}"


def _written(day: Day) -> str:
    year, month, number = day
    return "-".join(part for part in (str(year or ""), f"{month:02}", f"{number:02}" * bool(number)) if part)


def _certain_years(near: Near) -> set[int]:
    if near.among > 1:
        for text in (near.before, near.after):
            listed = [int(match["year"]) for match in YEAR.finditer(text)]
            if len(listed) == near.among:
                return {listed[near.place]}
    own, _ = years_in(near.own)
    if own or years_in(near.loose) != (set(), set()) or years_in(near.own)[1]:
        return own
    above = years_in(near.head)[0]
    return above if len(above) == 1 else set()


def _other_name(near: Near, facts: Facts, names: Names) -> str:
    own, loose = names.mentions(near.own), names.mentions(near.loose)
    above = [] if own or loose else names.mentions(near.head)
    for column in sorted({column for mention in (*own, *above) for column in mention.columns}):
        said = _of_column(near, column, own, names) or (_of_column(near, column, above, names))
        if not said or (said is above and len(said) > 1):
            continue
        allowed = [*said, *(mention for mention in loose if column in mention.columns)]
        if any(facts.words.issuperset(mention.words) for mention in allowed):
            continue
        told = said[0].written
        if column in facts.columns:
            value = _value(facts, column)
            if value in _EMPTY:
                continue
            return f"the row has {value}, not {told}"
        if facts.unnamed and any(column in names.columns_of.get(table, ()) for table in facts.tables):
            return f"the query did not select {column}"
    return ""


def _of_column(near: Near, column: str, said: Sequence[Mention], names: Names) -> list[Mention]:
    if near.among > 1:
        for text in (near.before, near.after):
            listed = [mention for mention in names.mentions(text) if column in mention.columns]
            if len(listed) == near.among:
                return [listed[near.place]]
    return [mention for mention in said if column in mention.columns]


def _value(facts: Facts, column: str) -> str:
    for head, cell in zip(facts.table.columns, facts.row.cells, strict=False):
        if head.lower() == column:
            return cell
    return ", ".join(facts.filters[column].values) if column in facts.filters else "another value"


def other_words(near: Near, there: Near, names: Names) -> str:
    """Returns the mismatch of the years or names beside a figure in a text and in a source.

    Empty if they do not differ.
    """
    own, loose = names.mentions(near.own), names.mentions(near.loose)
    stands, around = names.mentions(there.own), names.mentions(f"{there.loose} {there.head}")
    for column in sorted({column for mention in own for column in mention.columns}):
        said = {mention.words: mention.written for mention in own if column in mention.columns}
        known = {mention.words: mention.written for mention in stands if column in mention.columns}
        others = {mention.words for mention in (*loose, *around)}
        if said and known and not (said.keys() | others) & (known.keys() | others):
            return f"it stands beside {next(iter(known.values()))}, not {next(iter(said.values()))}"
    return _other_years(near, there)


def _other_years(near: Near, there: Near) -> str:
    if near.year is not None and there.year is not None and near.year != there.year:
        return f"it stands beside {there.year}, not {near.year}"
    said, stands = _certain_years(near), _certain_years(there)
    if not said or not stands:
        return ""
    loose = set[int]().union(
        *years_in(near.loose), *years_in(there.loose), years_in(near.own)[1], years_in(there.own)[1]
    )
    if said & stands or (said | stands) & loose:
        return ""
    return f"it stands beside {', '.join(map(str, sorted(stands)))}, not {', '.join(map(str, sorted(said)))}"


def computed_of_others(near: Near, operands: Sequence[Sequence[Facts]], unit: str | None, names: Names) -> str:
    """Returns the evidence that a figure was computed from rows of another name, year or unit.

    Empty without such evidence.
    """
    known = [facts for facts in operands if facts]
    if not known or len(known) < len(operands):
        return ""
    doubts = [[wrong_unit(unit, near, each) or contradiction(near, each, names) for each in facts] for facts in known]
    if all(all(each) for each in doubts):
        return f"it is computed from figures of which {doubts[0][0]}"
    return ""


def mixed_rows(near: Near, operands: Sequence[Sequence[Facts]], names: Names) -> str:
    """Returns the reason why two figures of a difference don't belong together; empty without one.

    They do not if a query leaves open which rows they are of, or if their rows have other names than the text.
    """
    for facts in operands:
        alike = [fact.alike for fact in facts]
        if min(alike) > 1:
            return f"the query does not tell {min(alike)} rows apart, one of which has {facts[0].written}"
    said = names.mentions(f"{near.own} {near.loose} {near.before} {near.after} {near.head}")
    first, second = operands
    for column in sorted({column for mention in said for column in mention.columns}):
        pairs = [(one, other) for one in first for other in second if {column} <= one.columns & other.columns]
        told = [mention for mention in said if column in mention.columns]
        if pairs and not any(_belong(one, other, column, told) for one, other in pairs):
            one, other = pairs[0]
            return f"it mixes the rows of {_value(one, column)} and {_value(other, column)}"
    apart = [_unlike(one, other, said) for one in first for other in second]
    return f"it mixes the rows of {apart[0]}" if all(apart) else ""


def _unlike(one: Facts, other: Facts, said: Sequence[Mention]) -> str:
    """Returns the names of two rows of other years that a text does not both name; empty if they may be compared."""
    if one.table is not other.table or not one.years or not other.years or one.years & other.years:
        return ""
    for column, cell, another in zip(one.table.columns, one.row.cells, other.row.cells, strict=False):
        names = [{*words_of(each)} for each in (cell, another)]
        is_named = all(any(name.issuperset(mention.words) for mention in said) for name in names)
        if cell != another and not is_named and is_text_column(one.table, column):
            return f"{cell} and {another}"
    return ""


def _belong(one: Facts, other: Facts, column: str, told: Sequence[Mention]) -> bool:
    """True if two rows have the same value of a column, one that a text names, or a text names both values."""
    named = [{mention for mention in told if facts.words.issuperset(mention.words)} for facts in (one, other)]
    same = _value(one, column) == _value(other, column)
    return all(named) and (same or len(named[0] | named[1]) > 1)
