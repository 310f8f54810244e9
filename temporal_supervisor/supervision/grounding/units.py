"""Units and scales of figures: how they are written, and which of them exclude each other.

Units are symbols and English words: a figure with another word is compared without its unit.
Percent, years and scales are known in further languages, because a figure with such a word is
another number.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import TypeVar

_Named = TypeVar("_Named", str, Decimal)

_UNITS: dict[str, dict[str, str]] = {
    "share": {
        "%": r"%|percent(?:age points?)?|per cent|prozent(?:punkte)?|pour cent|por ciento|pp",
    },
    "currency": {
        "USD": r"US\$|\$|USD|(?:us |u\.s\. |international )?dollars?|美元",
        "EUR": r"€|EUR|euros?|欧元",
        "GBP": r"£|GBP|pounds sterling",
        "JPY": r"¥|JPY|yen",
        "CHF": r"CHF|(?:swiss )?francs?",
        "CNY": r"CNY|RMB|yuan|人民币|(?<![欧美日])元",
        "INR": r"₹|INR|rupees?",
    },
    "length": {
        "km": r"km|kilomet(?:er|re)s?",
        "m": r"met(?:er|re)s?",
        "cm": r"cm|centimet(?:er|re)s?",
        "mm": r"mm|millimet(?:er|re)s?",
        "mi": r"miles?",
        "ft": r"ft|feet|foot",
    },
    "mass": {
        "g": r"grams?",
        "kg": r"kg|kilograms?",
        "t": r"tonnes?|tons?",
        "lb": r"lbs?|pounds",
    },
    "energy": {
        "kWh": r"kwh|kilowatt[- ]?hours?",
        "MWh": r"mwh|megawatt[- ]?hours?",
        "GWh": r"gwh|gigawatt[- ]?hours?",
        "TWh": r"twh|terawatt[- ]?hours?",
    },
    "power": {"kW": r"kw|kilowatts?", "MW": r"mw|megawatts?", "GW": r"gw|gigawatts?"},
    "temperature": {
        "C": r"°\s?C|degrees celsius|celsius",
        "F": r"°\s?F|degrees fahrenheit|fahrenheit",
    },
    "data": {"MB": r"mb|megabytes?", "GB": r"gb|gigabytes?", "TB": r"tb|terabytes?"},
    "time": {
        "seconds": r"seconds?|secs?",
        "minutes": r"minutes?|mins?",
        "hours": r"hours?|hrs?",
        "days": r"days?",
        "weeks": r"weeks?",
        "months": r"months?",
        "years": r"years?|jahren?|ans|années?|años",
    },
}
_SCALES: dict[Decimal, str] = {
    Decimal(10**12): r"trillions?|billionen|billones|tn|trn|万亿",
    Decimal(10**9): r"billions?|mil[jl]?i?ard\w{0,2}|mld|bilh(?:ões|ão)|mil mill?ones|bl?n|mrd\.?",
    Decimal(10**8): r"亿|億",
    Decimal(10**6): (
        r"millions?|millionen|mill?ones|milh(?:ões|ão)|miljoen|milion[ei]"  # as words
        r"|mio\.?|ml?n|百万"  # in short
    ),
    Decimal(10**4): r"万|萬",
    Decimal(10**3): r"thousands?|tausend|tsd\.?|milliers|miles(?= de\b)|mila?|duizend",
}
_ZEROS = {"k": 3, "m": 6, "b": 9, "md": 9, "t": 12}
_LETTER_SCALES = {letter: Decimal(10) ** zeros for letter, zeros in _ZEROS.items()}

# Units of one dimension that are multiples of each other: 1.2 TWh of a text are 1200 GWh of its
# source.
_MULTIPLES: tuple[dict[str, int], ...] = (
    {"kWh": 1, "MWh": 10**3, "GWh": 10**6, "TWh": 10**9},
    {"kW": 1, "MW": 10**3, "GW": 10**6},
    {"mm": 1, "cm": 10, "m": 10**3, "km": 10**6},
    {"g": 1, "kg": 10**3, "t": 10**6},
    {"MB": 1, "GB": 10**3, "TB": 10**6},
    {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800},
)

DIMENSIONS = {unit: dimension for dimension, units in _UNITS.items() for unit in units}
_UNIT_WORDS = {unit: words for units in _UNITS.values() for unit, words in units.items()}

# Part of a word, in scripts that set words apart: others write 320万欧元 and 2026年3月 without
# blanks. Without `-i` compiling a pattern that ignores case goes through these 40,000 signs one by
# one: 0.2 s for all, in each process.
LETTER = r"(?-i:[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
UNIT = rf"(?:{'|'.join(_UNIT_WORDS.values())})(?!{LETTER})"
CURRENCY = rf"(?:{'|'.join(_UNITS['currency'].values())})"
SCALE = rf"(?:{'|'.join(_SCALES.values())})(?!{LETTER})"
LETTER_SCALE = rf"[kKMmBbT](?!{LETTER})"
OF_MONEY = rf"(?:[kMT]|Md)(?=[\s\u00a0]?{CURRENCY})"  # 12 M€, 12 TEUR


# Units that are known as the ends of names of fields: "mean_wind_ms".
_FIELD_UNITS = {
    "ms": r"ms|m/s|met(?:er|re)s per second",
    "kmh": r"kmh|km/h|kilomet(?:er|re)s per hour",
}
# The unit at the end of a name: "depth_m", "weight_t"; not "form".
_ENDING = re.compile(r"(?<=[^\W_]_)[mgt]\b")
# The scale of a head: "€m", "$ bn", "TEUR"; not "$ per month".
_MONEY_HEAD = re.compile(
    rf"(?<!{LETTER})(?:{CURRENCY}\s?(?P<after>[km]|bn)(?!{LETTER})|(?P<before>{OF_MONEY}))",
    re.IGNORECASE,
)
# "12%", "growth rate", "Anteil", "percent"; not "12 m".
_SHARES = re.compile(
    r"%|(?<![^\W_])(?:per\s?cents?|pct|pp|percentages?|rates?|shares?|ratios?|proportions?|"
    r"margins?|yields?|returns?|growth|weight\w*|interest|coupon|quota|quote|anteile?|"
    r"prozent\w*|rendite|"
    r"taux|parts?|pourcentages?|tasas?|porcentajes?|por ciento)(?![^\W_])|率|占比|比例",
    re.IGNORECASE,
)
# What is measured: beside such a word a unit may be meant that nothing names.
_MEASURED = {
    "length": r"lengths?|long|distances?|heights?|tall|high|widths?|wide|depths?|deep|"
    r"elevations?|altitudes?|radius|diameters?|thickness|far|länge|lang|höhe|hoch|breite|tiefe|"
    r"entfernung|strecke|"
    r"longueur|hauteur|largeur|altitude|longitud|altura|distancia",
    "mass": r"mass|weigh\w*|heavy|heavie\w*|loads?|cargo|tonnage|gewicht\w*|masse|poids|peso",
    "energy": r"energ\w*|electric\w*|power|consum\w*|generat\w*|strom\w*|verbrauch\w*|énergie|"
    r"electricidad",
    "power": r"power|capacit\w*|electric\w*|output|leistung\w*|puissance|potencia",
    "temperature": r"temperatur\w*|temps?|heat|warm\w*|cold\w*|degrees?|grad|température",
    "data": r"sizes?|storage|memory|disks?|download\w*|traffic|bandwidth|files?|größe|speicher\w*|"
    r"taille|tamaño",
}
# All amounts are so: "in thousands of euros", "USD millions"; not "two millions".
_DECLARED = re.compile(
    r"\bin\s(?:[^\W\d]{1,12}\.?[$€£]?\s){0,3}"
    r"(?P<word>thousands|millions|billions|tausend|millionen|tsd|mio|mrd)\b"
    r"|\b(?:[$€£]|usd|eur)\s?(?:in\s)?(?P<bare>thousands|millions|billions)\b",
    re.IGNORECASE,
)
# "($000)", "$'000s", "€000"; not "$5,000".
_THOUSANDS_IN_DIGITS = re.compile(
    r"[$€£]\s?['’]?000['’]?s?(?![\d,.])|\(['’]?000['’]?s?\)",
)


def _word(pattern: str) -> re.Pattern[str]:
    """Returns a pattern for whole words, such as `km` in "distance_km", and not in "kms"."""
    return re.compile(rf"(?<!(?!_){LETTER})(?:{pattern})(?!(?!_){LETTER})", re.IGNORECASE)


@cache  # compiled when first used: each command imports this, and it takes 0.07 s
def _units_by_word() -> list[tuple[re.Pattern[str], str]]:
    return [(_word(words), unit) for unit, words in _UNIT_WORDS.items()]


@cache
def _scales_by_word() -> list[tuple[re.Pattern[str], Decimal]]:
    return [(_word(words), scale) for scale, words in _SCALES.items()]


@cache
def _measures_by_word() -> list[tuple[re.Pattern[str], str]]:
    return [(_word(words), dimension) for dimension, words in _MEASURED.items()]


@cache
def _beginning_of_unit() -> re.Pattern[str]:
    return _beginning_of_any(_UNIT_WORDS.values())


@cache
def _beginning_of_scale() -> re.Pattern[str]:
    return _beginning_of_any(_SCALES.values())


def _beginning_of_any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Returns the pattern of each place at which a word of any pattern begins."""
    words = _word("|".join(patterns)).pattern
    return re.compile(f"(?={words})", re.IGNORECASE)


def unit_of(written: str) -> str | None:
    """Returns the unit of a sign or word; None if it is none."""
    word = written.strip()
    units = (unit for pattern, unit in _units_by_word() if pattern.fullmatch(word))
    return next(units, None)


def is_time(unit: str | None) -> bool:
    """True for a unit of time."""
    return unit in _UNITS["time"]


def unit_words(written: str) -> re.Pattern[str] | None:
    """Returns the pattern of all words for a unit in the name of a field; None for no unit."""
    words = _FIELD_UNITS.get(written)
    if words is not None:
        return _word(words)
    patterns = (pattern for pattern, _ in _units_by_word() if pattern.fullmatch(written))
    return next(patterns, None)


def scale_of(written: str, of_money: bool = False) -> Decimal:
    """Returns the factor for a figure before this word or letter; 1 if that is no scale."""
    word = written.strip()
    letter = word.lower()
    if of_money and letter == "t":  # TEUR, T€
        return Decimal(1000)
    if letter in _LETTER_SCALES:
        return _LETTER_SCALES[letter]
    scales = (scale for pattern, scale in _scales_by_word() if pattern.fullmatch(word))
    return next(scales, Decimal(1))


def mentioned_units(text: str) -> frozenset[str]:
    """Returns the units that a text names anywhere, as also at the end of `distance_m`."""
    words = _named_in(text, _beginning_of_unit(), _units_by_word())
    endings = set(_ENDING.findall(text))
    return frozenset(words | endings)


def _named_in(
    text: str,
    beginning: re.Pattern[str],
    by_word: Sequence[tuple[re.Pattern[str], _Named]],
) -> set[_Named]:
    """Returns the units or scales of which a text has a word.

    Only where one begins each is tried: most texts have few, and a pattern for each takes long.
    """
    named = set[_Named]()
    for place in beginning.finditer(text):
        for pattern, value in by_word:
            if value not in named and pattern.match(text, place.start()):
                named.add(value)
    return named


def measures_implied(text: str) -> frozenset[str]:
    """Returns the dimensions of units that words of a text imply, such as weight."""
    known = _measures_by_word()
    return frozenset(dimension for pattern, dimension in known if pattern.search(text))


def multiples(unit: str) -> Iterator[tuple[str, Decimal]]:
    """Yields the other units of a dimension, each with how many of it one `unit` is."""
    for group in _MULTIPLES:
        if unit not in group:
            continue
        for other, size in group.items():
            if other != unit:
                yield other, Decimal(group[unit]) / size


def mentioned_scales(text: str) -> frozenset[Decimal]:
    """Returns the scales that a text names anywhere, as also in €m or TEUR, and 1."""
    scales = _named_in(text, _beginning_of_scale(), _scales_by_word())
    for head in _MONEY_HEAD.finditer(text):
        scales.add(scale_of(head["after"] or head["before"], of_money=bool(head["before"])))
    return frozenset({Decimal(1), *scales})


def declared_scales(text: str) -> frozenset[Decimal]:
    """Returns the scales in which a text declares its amounts, as in "(in millions)"."""
    scales = {scale_of(match["word"] or match["bare"]) for match in _DECLARED.finditer(text)}
    if _THOUSANDS_IN_DIGITS.search(text):
        scales.add(Decimal(1000))
    return frozenset(scales - {Decimal(1)})


def speaks_of_shares(text: str) -> bool:
    """True if a text names a share, a rate or another measure that is given in percent."""
    return _SHARES.search(text) is not None


def exclude_each_other(unit: str, other: str) -> bool:
    """True if a figure in one unit is another in the other: of one dimension, or a share.

    Examples: 85 km are not 85 miles, and 85 % are not 85 km.
    """
    dimensions = {DIMENSIONS[unit], DIMENSIONS[other]}
    if unit == other or dimensions == {"share"}:
        return False
    return len(dimensions) == 1 or "share" in dimensions


def are_apart(unit: str, other: str) -> bool:
    """True if a figure that is written in one unit is not one in the other.

    85 dollars are not 85 km, but pounds may be either money or a mass.
    """
    if exclude_each_other(unit, other):
        return True
    dimensions = {DIMENSIONS[unit], DIMENSIONS[other]}
    may_be_alike = dimensions == {"mass", "currency"} or "time" in dimensions
    return len(dimensions) > 1 and not may_be_alike
