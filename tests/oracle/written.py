"""Numbers as an author writes them, and as one misreads them."""

import re
from decimal import Decimal

from activities.files.values import value_text


def number_of(cell: object) -> float | None:
    """Returns the number in a cell, be it a text; None without one."""
    if isinstance(cell, str):
        return _in_text(cell)
    if isinstance(cell, bool) or cell is None or not isinstance(cell, int | float):
        return None
    return float(cell)


def _in_text(cell: str) -> float | None:
    bare = re.sub(r"[$,%\s]", "", cell)
    negative = re.fullmatch(r"\((.+)\)", bare)
    bare = negative[1] if negative else bare
    if not re.fullmatch(r"-?\d+(?:\.\d+)?", bare):
        return None
    return -float(bare) if negative else float(bare)


def written(value: float) -> str:
    """Returns a number with groups of thousands and a typographic minus."""
    text = f"{Decimal(value_text(abs(value))):,f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 else text


def with_unit(text: str, unit: str) -> str:
    """Returns a number with the word or sign of its unit."""
    return f"{text} {unit}".strip()


def misread(text: str) -> str:
    """Returns a text with two other digits, neither of which becomes 0."""
    left = 2
    signs = list[str]()
    for sign in text:
        if sign.isdigit() and left:
            left -= 1
            signs.append(str((int(sign) + 3) % 9 + 1))
        else:
            signs.append(sign)
    return "".join(signs)


def misread_number(value: float) -> float:
    """Returns a number with two other digits."""
    return float(misread(value_text(value)))
