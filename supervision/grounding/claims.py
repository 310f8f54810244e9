"""What a text claims that can be looked up: its figures, quotations and addresses."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from supervision.grounding.written_figures import Figure, figures

ClaimKind = Literal["figure", "quotation", "address"]

# „So" with a straight closing mark is how many write German on a keyboard of another language.
_QUOTED = re.compile(
    r"“([^“”]{1,2000})”|„([^„“”\"\n]{1,2000})(?<!\s)\"|„([^„“”]{1,2000})[“”]|«([^«»]{1,2000})»|»([^«»]{1,2000})«"
    r"|\"([^\"\n]{1,2000})\"",
    re.DOTALL,
)
_BLOCK_QUOTE = re.compile(r"(?:^[ \t]{0,3}>[^\n]*\n?)+", re.MULTILINE)
_QUOTE_WORDS = 4  # fewer are a name or a term
_TLD = r"(?:com|org|net|gov|edu|mil|int|io|ai|info|eu|de|at|ch|fr|it|es|nl|uk|jp|cn|us|ca|au)"
_ADDRESS = re.compile(
    r"\bhttps?://[^\s<>\"'`|\\^{}]{3,2000}|\bwww\.[^\s<>\"'`|\\^{}]{3,2000}"
    r"|\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}"
    r"|\b10\.\d{4,9}/[^\s<>\"'`|\\^{}]{2,300}"
    rf"|(?<![\w@.])(?:[a-z0-9-]{{1,63}}\.){{1,5}}{_TLD}(?![\w-])(?:/[^\s<>\"'`|\\^{{}}]{{0,2000}})?",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?)]}*_'\"’”"
_FENCED = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`[^`\n]++`")
_LETTER = re.compile(r"[^\W\d_]")  # a figure alone stays a figure
_MARK = re.compile(r"\[[\w.,;: /-]{1,80}\](?!\()")  # [t2], [12], [a-document]
_ELLIPSIS = re.compile(r"\[?(?:\.{3}|…)\]?|\[[^\]]{0,40}\]")
_QUOTE_MARKS = str.maketrans("‘’‚‛′“”„«»‐‑‒–—−", "'''''\"\"\"\"\"------")


@dataclass(frozen=True)
class Claim:
    """`text` is as written; a figure has what was read in it."""

    kind: ClaimKind
    text: str
    figure: Figure | None = None


def claims(text: str) -> Iterator[Claim]:
    """Yields what a text claims that can be looked up; code and marks of citations claim nothing."""
    rest = _blank(_FENCED, text)
    yield from (Claim("address", match[0].rstrip(_TRAILING)) for match in _ADDRESS.finditer(rest))
    rest = _blank(_ADDRESS, rest)
    for pattern in (_BLOCK_QUOTE, _QUOTED):
        quotes = {match[0]: quote for match in pattern.finditer(rest) if (quote := _quote(match[0]))}
        yield from (Claim("quotation", quote) for quote in quotes.values())
        rest = _blank(pattern, rest, quotes.get)
    rest = _blank(_INLINE_CODE, rest, _LETTER.search)
    for figure in figures(_blank(_MARK, rest)):
        yield Claim("figure", figure.text, figure)


def without_quotes(text: str) -> str:
    """Returns a text that quotes nothing: marks around what was written or reworked for a person are left out."""
    return re.sub(r"[“”„«»\"]|^[ \t]{0,3}>", " ", text, flags=re.MULTILINE)


def _quote(written: str) -> str:
    """Returns what is quoted, without its marks; empty for a name or a term."""
    quote = re.sub(r"^[ \t]{0,3}>", "", written, flags=re.MULTILINE).strip().strip('“”„«»"').strip()
    return quote if len(quote.split()) >= _QUOTE_WORDS else ""


def pieces(quotation: str) -> list[str]:
    """Returns the parts of a quotation between its omissions and insertions, as `plain_text` has them."""
    parts = [plain_text(part).strip(" .,;:!?\"'") for part in _ELLIPSIS.split(quotation)]
    return [part for part in parts if part]


def plain_text(text: str) -> str:
    """Returns a text without what makes equal quotations differ: case, white space, kinds of quotes, emphasis."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTE_MARKS)
    return re.sub(r"\s+", " ", re.sub(r"[*_`]+", "", folded))


def plain_address(text: str) -> str:
    """Returns an address or a text of addresses without what makes equal ones differ."""
    return re.sub(r"https?://(?:www\.)?|(?<![\w.])www\.", "", text.lower())


def _blank(pattern: re.Pattern[str], text: str, where: Callable[[str], object] = bool) -> str:
    """Returns a text with spaces in place of what the pattern finds; everything else stays where it is."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]) if where(match[0]) else match[0], text)
