"""The lookup of claims in a set of texts, and the calculations that a text itself writes out."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Protocol

from temporal_supervisor.supervision.grounding.calculations import calculated, is_constant
from temporal_supervisor.supervision.grounding.claims import Claim
from temporal_supervisor.supervision.grounding.wording.near_words import Near
from temporal_supervisor.supervision.grounding.written_figures import Figure, whole_values

CALCULATION = "calculation"  # the source of a result whose calculation the text has

Found = tuple[str, str, str]
"""The name of the source that has a claim, the line, and the reference of the source."""


class Finder(Protocol):
    """A set of texts in which claims are looked for."""

    def find(self, claim: Claim) -> Found | None:
        """Returns the place at which a claim was found; None if nowhere."""

    def mixed(self, calculation: str, near: Near) -> str:
        """Returns the reason not to calculate these figures with each other; empty without one."""


def looked_up(
    made: Iterable[Claim],
    text: str,
    finder: Finder,
) -> Iterator[tuple[Claim, Found | None]]:
    """Yields each claim once with the place of its support; None for a claim without any.

    The place is one of the finder's, or a calculation in the text whose result is claimed. A claim
    that is made several times, of several names or years, needs support each time.
    """
    results: dict[str, str] | None = None
    by_text: dict[str, dict[Claim, None]] = {}
    for claim in made:
        by_text.setdefault(claim.text, {})[claim] = None

    for alike in by_text.values():
        first: Found | None = None
        for claim in alike:
            found = finder.find(claim)
            if found is None and claim.figure is not None:
                if results is None:
                    results = calculated(text, partial(_holds, finder))
                found = _calculated(claim, results, finder)
            if found is None:
                yield claim, None
                break
            first = first or found
        else:
            yield next(iter(alike)), first


def _holds(finder: Finder, figure: Figure) -> bool:
    """True if a figure may be calculated with, as it is found by itself."""
    return finder.find(Claim("figure", figure.text, figure)) is not None


def _calculated(claim: Claim, results: dict[str, str], finder: Finder) -> Found | None:
    """Returns the calculation whose result is a claim; None if its figures are kept apart."""
    calculation = results.get(claim.text)
    if calculation is None or claim.figure is None:
        return None
    if claim.figure.unit is None and is_constant(claim.figure.readings[0].value):
        return CALCULATION, calculation, ""
    operands = {figure.digits for figure in whole_values(calculation)}
    # One that is calculated with and stands in a source stands there beside other words than here.
    if claim.figure.digits in operands and _holds(finder, claim.figure):
        return None
    if finder.mixed(calculation, claim.near or Near()):
        return None
    return CALCULATION, calculation, ""
