"""Tables of known values, written as people of many places write them. Knows nothing of how they are read."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

MISSING = ("", "-", "–", "—", "n/a", "..", "NA", "k.A.")
_THIN, _HARD = "\u202f", "\u00a0"


@dataclass(frozen=True)
class Convention:
    """How numbers are written in one place: marks, grouping, signs, and the delimiter of files."""

    name: str
    decimal: str
    group: str
    delimiters: str
    indian: bool = False
    accounting: bool = False
    minus: tuple[str, ...] = ("-",)
    currencies: tuple[str, ...] = ("{}",)
    percent: tuple[str, ...] = ("{}%",)


CONVENTIONS = (
    Convention("en", ".", ",", ",\t|", currencies=("${}", "£{}", "{} USD", "{}")),
    Convention("de", ",", ".", ";,\t", currencies=("{} €", "EUR {}", "{}"), percent=("{} %", "{}%")),
    Convention("fr", ",", _THIN, ";,\t", minus=("-", "\u2212"), currencies=(f"{{}}{_HARD}€", "{}")),
    Convention("se", ",", _HARD, ";\t", minus=("\u2212",), currencies=("{} kr", "{} SEK", "{}")),
    Convention("ch", ".", "'", ",;\t", currencies=("CHF {}", "Fr. {}", "{}")),
    Convention("ch2", ".", "\u2019", ",\t", currencies=("{} CHF", "{}")),
    Convention("in", ".", ",", ",\t", indian=True, currencies=("₹{}", "Rs. {}", "{} INR", "{}")),
    Convention("es", ",", ".", ";,", currencies=("{} €", "{}€"), percent=("{} %",)),
    Convention("accounting", ".", ",", ",\t", accounting=True, currencies=("${}", "$ {}", "{}")),
    Convention("si", ".", " ", ",;\t", minus=("\u2212", "-")),
    Convention("pl", ",", " ", ";,\t", currencies=("{} zł", "{} PLN")),
    Convention("bare", ".", "", ",\t", minus=("-",)),
)  # fmt: skip


@dataclass
class Column:
    """A column: its name, the cells as written, and its values; None as the values of a column of texts.

    `decides`: its own cells show how it is written. `in_doubt`: they show that nobody can tell, as 1.527 beside 640.
    """

    name: str
    cells: list[str]
    values: list[Decimal | None] | None = None
    decides: bool = False
    in_doubt: bool = False
    header: list[str] = field(default_factory=list)


@dataclass
class MadeTable:
    """A file, and what a careful person reads in it."""

    convention: str
    content: str
    columns: list[Column]
    rows: int
    notes: list[str]
    above: list[str]


def made_table(random: Random) -> MadeTable:
    """Returns a table of random values in a random convention, with the traps of real files."""
    convention = random.choice(CONVENTIONS)
    delimiter = random.choice(convention.delimiters)
    rows = random.randint(3, 12)
    columns = [Column("Region", [f"place {at}" for at in range(rows)])]
    columns += [_numbers(random, convention, rows) for _ in range(random.randint(1, 5))]
    if not _file_decides(convention, delimiter, columns):
        columns.append(_decimals(random, convention, rows))
    columns += [_texts(random, rows) for _ in range(random.randint(0, 2))]
    columns[1:] = random.sample(columns[1:], len(columns) - 1)
    stacked = _name(random, columns)
    total = random.random() < 0.4
    if total:
        _add_total(convention, columns)
    return _written(random, convention, delimiter, columns, stacked)


def _file_decides(convention: Convention, delimiter: str, columns: list[Column]) -> bool:
    """True if nothing can be taken for numbers of another convention than the file's."""
    if convention.decimal == ".":
        return True
    if all(column.decides or column.in_doubt or column.values is None for column in columns):
        return True
    return delimiter == ";" or any(column.decides and _has_decimals(column) for column in columns)


def _has_decimals(column: Column) -> bool:
    return any(value is not None and value != value.to_integral_value() for value in column.values or [])


def _numbers(random: Random, convention: Convention, rows: int) -> Column:
    digits = random.choice((0, 0, 0, 1, 2, 2, 3, 4))
    most = random.choice((99, 9_999, 999_999, 99_999_999))
    return _column(random, convention, rows, digits, most)


def _decimals(random: Random, convention: Convention, rows: int) -> Column:
    return _column(random, convention, rows, 2, 999)


def _column(random: Random, convention: Convention, rows: int, digits: int, most: int) -> Column:
    negative = random.random() < 0.4
    dressed = _dress(random, convention)
    footnotes = random.random() < 0.2
    blanks = random.choice(MISSING) if random.random() < 0.4 else None
    cells, values = list[str](), list[Decimal | None]()
    written = list[str]()  # the numbers without signs and units
    for _ in range(rows):
        if blanks is not None and random.random() < 0.25 and (values or rows > 3):
            cells.append(blanks)
            values.append(None)
            continue
        value = Decimal(random.randint(0, most * 10**digits)).scaleb(-digits)
        if negative and random.random() < 0.5:
            value = -value
        bare = plain(abs(value), digits, convention)
        written.append(bare)
        text = _signed(random, value, bare, convention, dressed)
        if footnotes and random.random() < 0.3:
            text += random.choice(("*", "†", "[3]", "[b]", " *"))
        cells.append(text)
        values.append(value)
    if all(value is None for value in values):
        cells[0], values[0] = plain(Decimal(7), digits, convention), Decimal(7)
        written.append(cells[0])
    if convention.accounting and _brackets_alone(cells):
        cells.append(plain(Decimal(7), digits, convention))
        cells, values[0] = [cells[-1], *cells[1:-1]], Decimal(7)
    return Column("", cells, values, _decide(written), _leave_in_doubt(written))


def _brackets_alone(cells: list[str]) -> bool:
    return all("(" in cell or not any(char.isdigit() for char in cell) for cell in cells)


def _dress(random: Random, convention: Convention) -> str:
    kind = random.random()
    if kind < 0.25:
        return random.choice(convention.currencies)
    return random.choice(convention.percent) if kind < 0.4 else "{}"


def plain(value: Decimal, digits: int, convention: Convention) -> str:
    """Returns a value that is not negative, without signs and units."""
    whole, _, fraction = f"{value:.{digits}f}".partition(".")
    if convention.group:
        whole = convention.group.join(_groups(whole, indian=convention.indian))
    return whole + (convention.decimal + fraction if fraction else "")


def _groups(whole: str, *, indian: bool) -> list[str]:
    if len(whole) <= 3:
        return [whole]
    rest, groups, size = whole[:-3], [whole[-3:]], 2 if indian else 3
    while rest:
        groups.insert(0, rest[-size:])
        rest = rest[:-size]
    return groups


def _signed(random: Random, value: Decimal, bare: str, convention: Convention, dressed: str) -> str:
    if value >= 0:
        return dressed.format(bare)
    if convention.accounting:
        return random.choice((f"({dressed.format(bare)})", dressed.format(f"({bare})")))
    minus = random.choice(convention.minus)
    if dressed[0] == "{":
        return minus + dressed.format(bare)
    return random.choice((minus + dressed.format(bare), dressed.format(minus + bare)))


def _decide(written: list[str]) -> bool:
    """True if the numbers of a column have one reading, whatever the file says."""
    marked = [bare for bare in written if "." in bare or "," in bare]
    return any(map(_is_decided, marked)) or all(map(_is_decided, written))


def _leave_in_doubt(written: list[str]) -> bool:
    """True for 1.527 beside 640: the dot may group thousands, or stand before three digits by chance."""
    has_dots = any("." in bare for bare in written)
    return has_dots and not _decide(written) and any(bare.isdecimal() for bare in written)


def _is_decided(bare: str) -> bool:
    """True if a number has one reading, whatever the file says: 1.234 and 1,234 have two."""
    marks = [char for char in bare if char in ".,"]
    if len(marks) != 1 or any(not char.isdigit() and char not in ".," for char in bare):
        return True
    whole, fraction = bare.replace(",", ".").split(".")
    return len(fraction) != 3 or len(whole) > 3 or whole == "0"


def _texts(random: Random, rows: int) -> Column:
    made: Callable[[], str] = random.choice((
        lambda: f"0{random.randint(10, 9999)}",
        lambda: f"{random.randint(0, 9)}–{random.randint(0, 9)}",
        lambda: f"{random.randint(0, 9)}-{random.randint(0, 9)}",
        lambda: f"+49 {random.randint(30, 999)} {random.randint(100, 999)} {random.randint(100, 999)}",
        lambda: f"{random.randint(1, 50)}-{random.randint(51, 99)}",
        lambda: f"A{random.randint(1, 999)}",
        lambda: random.choice(("yes", "no", "Müller, Ann", 'said "so"')),
        lambda: f"{random.randint(1, 23)}:{random.randint(10, 59)}",
        lambda: f"{random.randint(1, 12)}a",
    ))  # fmt: skip
    return Column("", [made() for _ in range(rows)])


def _name(random: Random, columns: list[Column]) -> bool:
    """Names the columns; returns True if the names stand in two rows."""
    stacked = len(columns) > 2 and random.random() < 0.3
    for at, column in enumerate(columns):
        if at == 0:
            column.header = ["", "Region"] if stacked else ["Region"]
        elif stacked:
            column.header = [random.choice(("Sales", "Costs")), f"{2010 + at}"]
        else:
            column.header = [random.choice((f"Item {at}", f"Net worth {at}", f"{2010 + at}"))]
        column.name = " ".join(filter(None, column.header))
    if stacked and any(column.values is None for column in columns[1:]):
        for column in columns:
            column.header = [column.name]
        return False
    return stacked


def _add_total(convention: Convention, columns: list[Column]) -> None:
    for column in columns:
        if column.values is None:
            column.cells.append("Total" if column is columns[0] else "x")
            continue
        total = sum((value for value in column.values if value is not None), Decimal(0))
        digits = max(-int(value.as_tuple().exponent) for value in column.values if value is not None)
        minus = "-" if total < 0 else ""
        column.cells.append(minus + plain(abs(total), digits, convention))
        column.values = [*column.values, total]


def _written(random: Random, convention: Convention, delimiter: str, columns: list[Column], stacked: bool) -> MadeTable:
    width, above, notes = len(columns), list[str](), list[str]()
    target = io.StringIO(newline="")
    writer = csv.writer(target, delimiter=delimiter, lineterminator=random.choice(("\n", "\r\n")))
    if random.random() < 0.4:
        above.append(random.choice(("Yearly figures", "Table 3: figures of all places", "in thousands")))
        writer.writerow([above[0], *[""] * (width - 1)])
        if random.random() < 0.5:
            writer.writerow([""] * width)
    for at in range(2 if stacked else 1):
        writer.writerow(_merged([column.header[at] for column in columns]) if stacked and at == 0 else [
            column.header[at] for column in columns
        ])  # fmt: skip
    rows = len(columns[0].cells)
    repeated = random.randint(1, rows - 1) if random.random() < 0.1 and width > 2 else None
    for row in range(rows):
        if row == repeated:
            writer.writerow([column.header[-1] for column in columns])
        writer.writerow([column.cells[row] for column in columns])
    if random.random() < 0.3:
        notes = random.sample(("* estimated", "Source: office of statistics, 2024", "Note: figures are rounded."), 2)
        if random.random() < 0.5:
            writer.writerow([""] * width)
        for note in notes:
            writer.writerow([note, *[""] * (width - 1)])
    return MadeTable(convention.name, target.getvalue(), columns, rows, notes, above)


def _merged(cells: list[str]) -> list[str]:
    """Returns the cells as a merged one leaves them: the first of equal ones, the others empty."""
    return [cell if at == 0 or cell != cells[at - 1] else "" for at, cell in enumerate(cells)]
