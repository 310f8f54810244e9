"""Looking for the claims of a text in what it rests on.

The rule, in words: a figure is supported by a figure of a source that rounds to it, in its unit if both have one; a
share by the ratio it is, and the other way round; a change in percent by a computed ratio. A quotation is supported
by the same words in one source, an address by the same address. What a tool computed counts only if the figures it
was given are supported, so that no figure becomes true by being multiplied by one.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Literal

from supervision.base import limits
from supervision.base.text import cut
from supervision.grounding.claims import Claim, claims, pieces, plain_address, plain_text
from supervision.grounding.units import exclude_each_other, mentioned_scales, mentioned_units
from supervision.grounding.written_figures import SMALL, Figure, Reading, values

UNSUPPORTED_BYTES = 200  # one of them: a long quotation is known by its beginning
GROUNDING_SOURCES_CHARS = 800_000  # of all texts that they are looked up in: at most 8 s of CPU, off the event loop

SourceKind = Literal["data", "computed"]

_HUNDRED = Decimal(100)
_YEARS_READ = 300  # that many make all spans there are
_CONSTANTS = {Decimal(n) for n in (*range(SMALL), 24, 30, 52, 60, 100, 360, 365, 366, 1000, 3600, 1024)}


@dataclass(frozen=True)
class Source:
    """A text that claims may rest on. A `computed` one has the `arguments` that its tool was given."""

    text: str
    kind: SourceKind = "data"
    arguments: str = ""


def unsupported(text: str, sources: Sequence[Source]) -> list[Claim]:
    """Returns the claims of a text that no source supports, each once and in its order; of very many the first ones."""
    made = list(claims(text[: limits.GROUNDED_CHARS]))
    support = Support(sources if made else [])
    found: dict[str, Claim] = {}
    for claim in made:
        if claim.text not in found and not support.supports(claim):
            found[claim.text] = claim
            if len(found) == limits.UNSUPPORTED_LISTED:
                break
    return list(found.values())


def unsupported_texts(text: str, sources: Sequence[Source], doubtful: Iterable[str] = ()) -> list[str]:
    """Returns the claims of a text that no source supports as they are shown and kept: shortened, and not too many.

    What is `doubtful` already counts wherever the text has it, whatever the sources say.
    """
    texts = [claim.text for claim in unsupported(text, sources)] + [item for item in doubtful if item in text]
    return [cut(item, UNSUPPORTED_BYTES) for item in dict.fromkeys(texts)][: limits.UNSUPPORTED_SHOWN]


class Support:
    """Sources, read once. Of a source only the beginning is read, of all sources as much as the limits allow."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._accepted = [_Read(source) for source in _within_limits(sources) if source.kind == "data"]
        computed = [_Read(source) for source in _within_limits(sources) if source.kind == "computed"]
        while holding := [read for read in computed if self._operands_hold(read.source)]:
            self._accepted += holding
            computed = [read for read in computed if read not in holding]

    def supports(self, claim: Claim) -> bool:
        """True if a source has what is claimed."""
        if claim.figure is not None:
            return self._has_figure(claim.figure)
        if claim.kind == "address":
            address = plain_address(claim.text).rstrip("/")
            return any(address in read.addresses for read in self._accepted)
        return any(all(piece in read.plain for piece in pieces(claim.text)) for read in self._accepted)

    def _has_figure(self, figure: Figure) -> bool:
        if any(read.has(figure) for read in self._accepted):
            return True
        return " " in figure.digits and all(map(self._has_figure, _parted(figure)))

    def _operands_hold(self, source: Source) -> bool:
        operands = list(_operands(source.arguments))
        return all(operand in _CONSTANTS or self._has_figure(_exact(operand)) for operand in operands)


class _Read:
    """The figures of one source, sorted, and its text in the forms that are searched."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.plain = plain_text(source.text)
        self.addresses = plain_address(source.text)
        self._scales = mentioned_scales(source.text)
        read = [(reading.value, each.scale, each.unit) for each in values(source.text) for reading in each.readings]
        read.sort(key=lambda item: item[0])
        self._values = [value for value, _, _ in read]
        years = sorted({value for value in self._values if 1000 <= value < 3000 and value % 1 == 0})[:_YEARS_READ]
        self._spans = {later - year for year in years for later in years if later > year}
        self._marks = [(scale, unit) for _, scale, unit in read]

    @cached_property
    def _units(self) -> frozenset[str]:
        return mentioned_units(self.source.text)

    def has(self, figure: Figure) -> bool:
        """True if a figure of this source is the one given, as exactly as that is written."""
        return any(self._has_reading(figure, reading) for reading in figure.readings)

    def _has_reading(self, figure: Figure, reading: Reading) -> bool:
        value, tolerance = reading.value * figure.scale, reading.tolerance * figure.scale
        for scale in self._scales | {figure.scale}:
            if self._near(value / scale, tolerance / scale, figure, scale, figure.unit):
                return True
        if figure.unit == "years" and reading.value in self._spans:
            return True
        shares = self._shares(figure, value, tolerance)
        return any(self._near(share, width, figure, Decimal(1), unit) for share, width, unit in shares)

    def _shares(self, figure: Figure, value: Decimal, tolerance: Decimal) -> Iterator[tuple[Decimal, Decimal, str]]:
        """Yields the figure as the ratio, the percentage or the growth factor that it also is."""
        if figure.unit == "%":
            yield value / _HUNDRED, tolerance / _HUNDRED, "ratio"
            yield value * _HUNDRED, tolerance * _HUNDRED, "bps"
            if self.source.kind == "computed":
                yield 1 + value / _HUNDRED, tolerance / _HUNDRED, "ratio"
                yield 1 - value / _HUNDRED, tolerance / _HUNDRED, "ratio"
        elif figure.unit == "bps":
            yield value / _HUNDRED, tolerance / _HUNDRED, "%"
        elif figure.unit is None:
            yield value * _HUNDRED, tolerance * _HUNDRED, "%"

    def _near(self, value: Decimal, tolerance: Decimal, figure: Figure, scale: Decimal, unit: str | None) -> bool:
        """True if a figure of the source lies within the tolerance, in this scale and in no other unit."""
        value = abs(value)
        index = bisect_left(self._values, value - tolerance)
        while index < len(self._values) and self._values[index] <= value + tolerance:
            own_scale, own_unit = self._marks[index]
            bare = figure.scale == 1 and scale == 1  # 12.3 of "from 12.3 to 14.5 million"
            unscaled = own_scale == 1 and scale in self._scales
            if (own_scale == scale or unscaled or bare) and self._agree(unit, own_unit):
                return True
            index += 1
        return False

    def _agree(self, unit: str | None, own: str | None) -> bool:
        if unit == "ratio":
            return own is None
        if unit is None:
            return True
        if own is not None:
            return not exclude_each_other(unit, own)
        others = {mentioned for mentioned in self._units if exclude_each_other(unit, mentioned)}
        return not others or unit in self._units


def _within_limits(sources: Sequence[Source]) -> Iterator[Source]:
    room = GROUNDING_SOURCES_CHARS
    for source in sources:
        text = source.text[: min(room, limits.GROUNDED_CHARS)]
        room -= len(text)
        if text:
            yield Source(text, source.kind, source.arguments[: limits.GROUNDED_CHARS])


def _operands(arguments: str) -> Iterator[Decimal]:
    seen: dict[int, Decimal] = {}
    for figure in values(arguments):
        for reading in figure.readings[-1:]:
            seen.setdefault(figure.start, reading.value)
    yield from seen.values()


def _exact(value: Decimal) -> Figure:
    decimals = len(f"{value:f}".partition(".")[2])
    tolerance = Decimal(10) ** -decimals / 2
    return Figure(str(value), (Reading(value, tolerance),), Decimal(1), None, 0, str(value))


def _parted(figure: Figure) -> Iterator[Figure]:
    for part in figure.digits.split(" "):
        yield _exact(Decimal(part.replace(",", "")))
