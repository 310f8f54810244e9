"""The reading of a column of numbers, with the decimal mark that is proven or given."""

from collections import Counter
from collections.abc import Iterable, Iterator

from activities.files.tables.column_reading import (
    MOSTLY,
    WRITTEN_CHARS,
    ColumnReading,
    stays_text,
)
from activities.files.tables.number_shapes import Digits, NumberShape, is_identifier
from activities.files.tables.profiles import Cells, Profile, most_frequent, number_sql, trimmed_sql
from activities.files.values import literal

_GROUPS = {
    ",": "commas group thousands",
    ".": "dots group thousands",
    " ": "blanks group thousands",
    "'": "apostrophes group thousands",
}
COMMAS = "decimal commas are read as numbers"
UNDECIDED = "nothing in the file decides it"


def own_reading(name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading of a column whose own values decide it; None if the file has to."""
    text = reason_for_text(name, profile)
    if text:
        return text
    dots, commas = _proving(profile, "."), _proving(profile, ",")
    if dots and commas:
        one, other = most_frequent(dots).written, most_frequent(commas).written
        why = f"{one!r} and {other!r} fit only different readings"
        return stays_text(name, why, other)
    if commas and _may_be_lists(commas, profile):
        return None
    if dots or commas:
        proof = most_frequent(dots or commas)
        mark = "." if dots else ","
        count = sum(cells.times for cells in dots or commas)
        fit = "fits" if count == 1 else "fit"
        why = f"{_values(count)} such as {proof.written!r} {fit} no other reading"
        return as_number(name, profile, mark, why, proof, own=True)
    if profile.open_cells:
        return None
    return as_number(name, profile, ".", "its values have one reading", None)


def _proving(profile: Profile, mark: str) -> list[Cells]:
    """Returns the numbers that prove a decimal mark."""
    return [cells for cells in profile.numbers if cells.number and cells.number.proves == mark]


def _may_be_lists(commas: list[Cells], profile: Profile) -> bool:
    """True if few values have a comma, with at most two digits after it.

    10,11 may be two numbers.
    """
    if sum(cells.times for cells in commas) * 2 >= profile.numeric_count:
        return False
    for cells in commas:
        if not cells.number or not cells.number.comma or cells.number.comma.fraction > 2:
            return False
    with_comma = [cells.number.comma for cells in profile.numbers if cells.number]
    return not any(reading and reading.group for reading in with_comma)


def reason_for_text(name: str, profile: Profile) -> ColumnReading | None:
    """Returns the reading as text of a column without numbers of one kind; else None."""
    if not profile.numeric_count:
        return words_reading(profile)
    for cells in profile.words:
        if is_identifier(cells.shape, zero=cells.zero):
            why = f"identifiers such as {cells.written!r} are no numbers"
            return ColumnReading(why=why, written=cells.written)
    if profile.words:
        few = sum(cells.times for cells in profile.words)
        one = most_frequent(profile.words)
        why = f"{few} of {profile.filled_count} values are no numbers"
        reading = stays_text(name, why, one.written)
        if profile.numeric_count < MOSTLY * profile.filled_count:
            reading = reading._replace(notes=())
        return reading._replace(why=f"{why}, such as {one.written[:WRITTEN_CHARS]!r}")

    problem, written = _mixed(profile)
    return stays_text(name, problem, written) if problem else None


def _mixed(profile: Profile) -> tuple[str, str]:
    """Returns the reason why numbers cannot be added up, and one as written; else empty texts."""
    numbers = [(cells, cells.number) for cells in profile.numbers if cells.number]
    currencies = _by_unit((cells, number.currency) for cells, number in numbers)
    shares = _by_unit((cells, number.share) for cells, number in numbers)
    scales = _by_unit((cells, number.scale or "none") for cells, number in numbers)
    kinds = (
        (currencies, "are of different currencies"),
        (shares, "have different units"),
        (scales, "have different units"),
    )
    for by_unit, differ in kinds:
        if len(by_unit) > 1:
            one, other, *_ = by_unit.values()
            return f"{one.written!r} and {other.written!r} {differ}", one.written

    letters = sum(cells.times for cells, number in numbers if number.footnote == "letter")
    if letters * 2 > profile.numeric_count:
        one = next(cells for cells, number in numbers if number.footnote == "letter")
        why = f"nobody can tell what the letters behind values such as {one.written!r} mean"
        return why, one.written
    if all(number.bracketed and _is_plain(number) for _, number in numbers):
        one = most_frequent([cells for cells, _ in numbers])
        why = f"numbers in brackets such as {one.written!r} alone may be negative or notes"
        return why, one.written
    return "", ""


def _is_plain(number: NumberShape) -> bool:
    """True for a whole number of up to three digits without a unit."""
    if number.currency or number.share:
        return False
    reading = number.dot or number.comma or Digits(0, 0)
    return not reading.fraction and not reading.group and reading.whole <= 3


def _by_unit(pairs: Iterable[tuple[Cells, str]]) -> dict[str, Cells]:
    """Returns cells of each unit in the pairs, one per unit."""
    found: dict[str, Cells] = {}
    for cells, unit in pairs:
        if unit:
            found.setdefault(unit, cells)
    return found


def as_number(
    name: str,
    profile: Profile,
    mark: str,
    why: str,
    proof: Cells | None,
    *,
    own: bool = False,
) -> ColumnReading:
    """Returns the reading of a column of numbers with a decimal mark that fits all of them."""
    pairs = [*_numbers_under(profile, mark)]
    is_whole = not any(digits.fraction or number.scientific for _, number, digits in pairs)
    has_decimals = any(_has_decimals(cells, number, digits) for cells, number, digits in pairs)
    groups = {digits.group for _, _, digits in pairs if digits.group}
    several = sum(cells.times for cells, _, digits in pairs if digits.groups > 1)
    kind = "BIGINT" if is_whole else "DOUBLE"
    sql = number_sql(trimmed_sql(name), profile, mark, kind)
    if sql is None:
        return stays_text(name, "numbers with exponents stand beside numbers with letters")

    told = [_GROUPS[group] for group in sorted(groups)]
    if has_decimals and mark == ",":
        told.insert(0, COMMAS)
    decided = [*told]
    if has_decimals and mark != ",":
        decided.append("dots are decimal marks")
    decision = ", ".join(decided) or ("whole numbers" if is_whole else "numbers")

    unit, notes = _unit(profile)
    if groups and why == UNDECIDED:
        told[-1] += f" ({why})"
    if several and own and mark == ".":
        have = "has" if several == 1 else "have"
        why = f"{_values(several)} {have} several groups"
    typical = proof or _telling(profile)
    return ColumnReading(
        kind=kind,
        sql=sql,
        decision=decision,
        why=why,
        unit=unit,
        written=typical.written,
        notes=tuple(f"{name}: {note}" for note in (*told, *notes)),
        mark=mark if own else "",
    )


def _has_decimals(cells: Cells, number: NumberShape, digits: Digits) -> bool:
    """True for a text with decimals; typed numbers and numbers with an exponent have none."""
    return bool(digits.fraction) and not number.scientific and not cells.is_typed


def _numbers_under(profile: Profile, mark: str) -> Iterator[tuple[Cells, NumberShape, Digits]]:
    """Yields the numbers that are readable with a decimal mark, each with its digits."""
    for cells in profile.numbers:
        number = cells.number
        if number is None:
            continue
        digits = number.dot if mark == "." else number.comma
        if digits:
            yield cells, number, digits


def _unit(profile: Profile) -> tuple[str, list[str]]:
    """Returns the unit of all values, and notes on units, footnotes and brackets."""
    units: Counter[str] = Counter()
    with_footnotes: list[Cells] = []
    brackets = 0
    for cells in profile.numbers:
        number = cells.number
        if number is None:
            continue
        amount = " ".join(filter(None, [number.currency, number.scale]))
        units[amount or number.share] += cells.times
        if number.footnote:
            with_footnotes.append(cells)
        if number.bracketed:
            brackets += cells.times

    notes: list[str] = []
    named = [unit for unit in units if unit]
    unit = named[0] if len(units) == 1 and named else ""
    if unit:
        notes.append(f"the numbers are written with {unit}, the values are as written")
    elif named:
        parts = " and ".join(f"{units[one]:,} with {one}" for one in named)
        whole = _values(profile.numeric_count)
        notes.append(f"of {whole} {parts}, the others without: no unit holds for all")
    if with_footnotes:
        one = most_frequent(with_footnotes).written
        count = sum(cells.times for cells in with_footnotes)
        notes.append(f"{_values(count)} such as {one!r} had a footnote's mark, which is left out")
    if brackets:
        notes.append(f"numbers in brackets are negative ({_values(brackets)})")
    return unit, notes


def words_reading(profile: Profile) -> ColumnReading:
    """Returns the reading of a column of words."""
    if not profile.filled_count:
        return ColumnReading(why="it has no values")
    one = most_frequent([*profile.words, *profile.numbers])
    why = "its values are words"
    if profile.numeric_count:
        others = profile.filled_count - profile.numeric_count
        why = f"{others} of {profile.filled_count} values are no numbers"
    return ColumnReading(why=why, written=one.written)


def given_numbers(name: str, profile: Profile, kind: str, mark: str) -> ColumnReading:
    """Returns the reading of a column that a person describes as numbers, or by a decimal mark."""
    if not mark:
        own = own_reading(name, Profile(profile.numbers, profile.missing, []))
        mark = own.mark if own and own.mark else "."
    fitting = [cells for cells, _, _ in _numbers_under(profile, mark)]
    kept = Profile(fitting, profile.missing, [])
    missed = profile.filled_count - kept.numeric_count
    if not kept.numeric_count or (missed and not kind):
        few = f"{missed} of {profile.filled_count} values are no numbers"
        return stays_text(name, f"{few} with the decimal mark {mark!r}")

    text = trimmed_sql(name)
    reading = as_number(name, kept, mark, "its description says so", None)
    if kind == "number" and reading.kind:
        sql = number_sql(text, kept, mark, "DOUBLE")
        reading = reading._replace(kind="DOUBLE", sql=sql or "")
    if missed:
        shape = f"translate({text}, '012345678', '999999999')"
        fits = f"{shape} IN ({', '.join(literal(cells.shape) for cells in fitting)})"
        reading = reading._replace(sql=f"CASE WHEN {fits} THEN {reading.sql} END", missed=missed)
    return reading


def _telling(profile: Profile) -> Cells:
    """Returns the cells that show most of a column's notation: those with the most signs."""

    def signs_and_times(cells: Cells) -> tuple[int, int]:
        return sum(char not in "9." for char in cells.shape), cells.times

    return max(profile.numbers, key=signs_and_times)


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count:,} values"
