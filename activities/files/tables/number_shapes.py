"""One cell as written and the numbers that it may be, by its shape: its text with 9 for each digit.

A shape contains everything but the digits, so a column of a million numbers has few of them.
Nothing here decides between two readings: that needs the other cells of the column.
"""

import re
from collections import Counter
from typing import NamedTuple

SHAPE_CHARS = 64
"""Characters of a shape at most: a longer text is no number."""
TYPED = "\x02"
"""The mark before a number of a typed source, such as a cell of Excel: it has one reading."""

BLANKS = " \t\r\n\u00a0\u2007\u2009\u202f"
_APOSTROPHES = "'\u2019\u02bc"
MINUS = "-\u2212\u2010\u2011\u2013"
_FOOTNOTES = (
    "*\u2020\u2021\u00a7\u00b6#^\u00b9\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079"
)
_LETTERS = "abcdefpr"  # footnotes, and in statistics e(stimated), p(rovisional), r(evised)
_INTEGER_DIGITS = 18  # of a BIGINT, whatever the digits are
# "9.9e-9", "99E99"; not "9.9".
_SCIENTIFIC = re.compile(r"[+-]?(?:9+(?:\.9*)?|\.9+)[eE][+-]?9{1,3}")
# "99", "a", "note 9"; not "9999".
_BRACKETED = re.compile(r"9{1,3}|[A-Za-z]{1,3}|(?:note|nb|n) ?9{1,3}")

_SIGNS = {
    "€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₺": "TRY", "₴": "UAH", "₪": "ILS", "₩": "KRW",
    "₫": "VND", "฿": "THB", "₦": "NGN", "$": "$", "¥": "¥",
    "US$": "USD", "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "HK$": "HKD",
    "NZ$": "NZD", "S$": "SGD", "R$": "BRL",
    "Fr.": "CHF", "SFr.": "CHF", "Rs": "INR", "Rs.": "INR",
    "kr": "kr", "kr.": "kr", "zł": "PLN", "Kč": "CZK", "Ft": "HUF",
}  # fmt: skip
_CODES = (
    "EUR USD GBP CHF JPY CNY INR RUB BRL CAD AUD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY UAH ILS "
    "KRW THB VND IDR MYR PHP SGD HKD TWD MXN ARS CLP COP PEN ZAR NGN EGP KES SAR AED QAR KWD"
)
CURRENCIES = _SIGNS | {code: code for code in _CODES.split()}
"""The unit of each sign and code of a currency; a sign of several, such as $, is its own unit."""
SHARES = ("%", "‰")
_SCALES = {
    "k": "thousand", "K": "thousand", "thousand": "thousand",
    "tsd.": "thousand", "Tsd.": "thousand",
    "m": "million", "M": "million", "mn": "million", "million": "million",
    "Mio.": "million", "Mio": "million",
    "B": "billion", "bn": "billion", "billion": "billion", "Mrd.": "billion", "Mrd": "billion",
    "T": "trillion", "trillion": "trillion", "lakh": "lakh", "crore": "crore",
}  # fmt: skip

_DOTTED = [unit for unit in (*CURRENCIES, *_SCALES) if "." in unit]
DOTTED_UNITS = sorted(_DOTTED, key=len, reverse=True)
"""Units with a dot of their own, the longest first."""

_MISSING = frozenset((
    "", "-", "--", "---", "–", "—", "——", "−", "(–)", "(—)", "(-)",
    ".", "..", "...", "…", "*", "**", "***", "?", "/", "\u2020",
    "na", "n/a", "n.a.", "n.a", "#n/a", "null", "none", "nan", "k.a.", "k. a.", "nm", "n.m.", "n/m",
    "nd", "n/d", "n.d.", "s/d", "s.o.", "tba", "tbd", "#value!", "#ref!", "#div/0!",
    "not available", "not applicable",
))  # fmt: skip


class Digits(NamedTuple):
    """The digits of a shape under one decimal mark: before and after it, and the grouping mark."""

    whole: int
    fraction: int
    group: str = ""
    groups: int = 0


class NumberShape(NamedTuple):
    """A shape that is a number: its readings with a decimal dot and a decimal comma, or None."""

    dot: Digits | None
    comma: Digits | None
    currency: str = ""
    share: str = ""
    scale: str = ""
    bracketed: bool = False  # (44.1)
    trailing: bool = False  # 44.1-
    footnote: str = ""  # "mark", "bracket" or "letter"
    scientific: bool = False

    @property
    def proves(self) -> str:
        """The decimal mark that the shape proves: "." or ","; empty if it fits both."""
        if self.dot and self.comma:
            return ""
        return "." if self.dot else ","

    @property
    def is_open(self) -> bool:
        """True if the number differs under a dot and under a comma."""
        return bool(self.dot and self.comma and self.dot != self.comma)


def is_missing(text: str) -> bool:
    """True for an empty cell and for marks of a missing value, with or without a unit."""
    bare = text.strip(BLANKS)
    if bare.lower() in _MISSING:
        return True
    if len(bare) > 12:
        return False
    # $ — and — % are missing as well
    for unit in (*CURRENCIES, *SHARES):
        if bare.startswith(unit):
            bare = bare.removeprefix(unit).strip(BLANKS)
        elif bare.endswith(unit):
            bare = bare.removesuffix(unit).strip(BLANKS)
    return bare in ("-", "--", "–", "—", "−", "(–)", "(—)", "(-)")


def is_identifier(shape: str, *, zero: bool) -> bool:
    """True for digits only that begin with 0 (`zero`), or are too many for a number."""
    digits = shape.count("9")
    if digits != len(shape):
        return False
    return digits > _INTEGER_DIGITS or (zero and digits > 1)


def shape_of(text: str) -> tuple[str, bool]:
    """Returns a text's shape, `9,999` of `1,527`, and True if its first digit is 0."""
    bare = text.strip(BLANKS)
    shape = "".join("9" if char in "0123456789" else char for char in bare[:SHAPE_CHARS])
    first = shape.find("9")
    return shape, first >= 0 and bare[first] == "0"


def number_shape(shape: str, *, zero: bool) -> NumberShape | None:
    """Returns the number that a shape may be; None for words, codes, scores, dates.

    `zero` is True if it starts with 0.
    """
    if shape.startswith(TYPED):
        return _typed_shape(shape[1:])
    if len(shape) >= SHAPE_CHARS or "9" not in shape:
        return None
    if _SCIENTIFIC.fullmatch(shape):
        return NumberShape(Digits(1, 1), None if "." in shape else Digits(1, 1), scientific=True)

    text, footnote = _without_footnote(shape)
    start, end = _body(text)
    signs = _signs(text[:start], _text_behind(text, end))
    if signs is None:
        return None
    units = _units(signs.before, signs.after)
    if units is None:
        return None

    body = text[start:end]
    dot, comma = _reading(body, ".", ",", zero=zero), _reading(body, ",", ".", zero=zero)
    if dot is None and comma is None:
        return None
    if footnote == "letter" and not any(mark in body for mark in ".,"):
        return None  # 12a may be the number of a house
    if signs.plus and any(reading and reading.group == " " for reading in (dot, comma)):
        return None  # +44 123 456 is a telephone's
    return NumberShape(
        dot, comma, *units, bracketed=signs.bracketed, trailing=signs.trailing, footnote=footnote
    )  # fmt: skip


def _body(text: str) -> tuple[int, int]:
    """Returns the start and the end of the digits with their marks."""
    start, end = text.find("9"), text.rfind("9") + 1
    if start > 0 and text[start - 1] in ".,":
        start -= 1
    return start, end


def _text_behind(text: str, end: int) -> str:
    """Returns the text after the digits; a dot there, as in 1. or 3504., means nothing."""
    if text[end : end + 1] == "." and not text[end + 1 : end + 2].isalpha():
        return text[end + 1 :]
    return text[end:]


def _typed_shape(shape: str) -> NumberShape | None:
    digits, fraction = shape.count("9"), int("." in shape or "e" in shape)
    reading = Digits(digits, int(fraction or digits > _INTEGER_DIGITS + 1))
    return NumberShape(reading, reading)


def _without_footnote(shape: str) -> tuple[str, str]:
    """Returns a shape without the footnote's mark at its end, and the kind of mark."""
    text, kind = shape.rstrip(BLANKS), ""
    while text:
        if text[-1] in _FOOTNOTES:
            text, kind = text[:-1].rstrip(BLANKS), kind or "mark"
            continue
        at = text.rfind("[")
        if text[-1] == "]" and at > 0 and _BRACKETED.fullmatch(text[at + 1 : -1]):
            text, kind = text[:at].rstrip(BLANKS), "bracket"
            continue
        break
    bare = text[:-1].rstrip(BLANKS)
    if not kind and text[-1:] in _LETTERS and bare[-1:] == "9":
        return bare, "letter"
    return text, kind


class _Signs(NamedTuple):
    """The signs and brackets around the digits, and the other texts, which may be units."""

    before: str
    after: str
    plus: bool
    bracketed: bool
    trailing: bool


def _signs(before: str, after: str) -> _Signs | None:
    """Returns the signs around the digits; None if they cannot belong to one number."""
    counts = Counter("-" if char in MINUS else char for char in before + after)
    bracketed = counts["("] == 1
    if counts["("] != counts[")"] or max(counts["("], counts["-"] + counts["+"] + bracketed) > 1:
        return None
    if bracketed and ("(" in after or ")" in before):
        return None
    left, right = before.lstrip(f"{BLANKS}*"), after.strip(BLANKS)
    trailing = right[-1:] in tuple(MINUS)
    if "+" in right or (not trailing and any(char in MINUS for char in right)):
        return None
    return _Signs(
        before=_without_signs(left),
        after=_without_signs(right),
        plus=counts["+"] == 1,
        bracketed=bracketed,
        trailing=trailing,
    )


def _without_signs(text: str) -> str:
    return "".join(char for char in text if char not in f"{MINUS}+()").strip(BLANKS)


def _units(before: str, after: str) -> tuple[str, str, str] | None:
    """Returns currency, share and scale of the words around the digits; None for other words."""
    currency = share = scale = ""
    if before:
        if before not in CURRENCIES:
            return None
        currency = CURRENCIES[before]
    for word in _unit_words(after):
        if word in SHARES and not share:
            share = word
        elif word in CURRENCIES and not currency:
            currency = CURRENCIES[word]
        elif word in _SCALES and not scale:
            scale = _SCALES[word]
        elif word[:-1] in _SCALES and word[-1] in CURRENCIES and not scale and not currency:
            scale, currency = _SCALES[word[:-1]], CURRENCIES[word[-1]]
        else:
            return None
    if share and (currency or scale):
        return None
    if len(after.strip()) == 1 and scale and not currency:
        return None  # 5 m are metres
    return currency, share, scale


def _unit_words(after: str) -> list[str]:
    """Returns the words behind the digits: of `% EUR` and of `%EUR` the sign and the currency."""
    if len(after) <= 1:
        return list(after)  # a single sign, which may be a blank
    return after.replace("%", " % ").replace("‰", " ‰ ").split()


def _reading(body: str, decimal: str, other: str, *, zero: bool) -> Digits | None:
    """Returns the digits of a body with this decimal mark; None if it is not readable so."""
    whole, mark, fraction = body.partition(decimal)
    if mark and (fraction.count("9") != len(fraction)):
        return None
    if mark and not fraction and decimal == ",":
        return None
    if mark and not whole and decimal == ",":
        return None
    digits = whole.count("9")
    if digits == len(whole):
        if digits > _INTEGER_DIGITS or (zero and digits > 1):
            return None
        return Digits(digits, len(fraction) if mark else 0)
    if zero:
        return None  # no number begins with a group of 0
    return _grouped(whole, other, digits, len(fraction) if mark else 0)


def _grouped(whole: str, other: str, digits: int, fraction: int) -> Digits | None:
    marks = {char for char in whole if char != "9"}
    if len(marks) != 1 or digits > _INTEGER_DIGITS:
        return None
    mark = marks.pop()
    runs = [len(run) for run in whole.split(mark)]
    first, *middle, last = runs
    if last != 3:
        return None
    thousands = 1 <= first <= 3 and all(run == 3 for run in middle)
    indian = mark == "," and 1 <= first <= 2 and middle != [] and all(run == 2 for run in middle)
    if not (thousands or indian):
        return None
    if mark in BLANKS:
        mark = " "
    elif mark in _APOSTROPHES:
        mark = "'"
    elif mark != other:
        return None
    return Digits(digits, fraction, mark, len(runs) - 1)
