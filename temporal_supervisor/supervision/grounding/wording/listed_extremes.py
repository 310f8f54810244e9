"""Superlatives beside a figure that a sentence lists among others.

Example: "Ayla had 119.7 hours, Dörte 109.3 hours and Bruno 105.3 hours" and the claim "Bruno
worked the most hours, 105.3". A list is a sentence with at least three figures of one unit and
without a superlative of its own; a claim names one of its figures, or one of its names and no
figure.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.grounding.rows.superlatives import (
    Superlative,
    has_superlative,
    superlative_in,
)
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of
from temporal_supervisor.supervision.grounding.wording.time_words import is_year
from temporal_supervisor.supervision.grounding.written_figures import Figure, values

_LEAST_FIGURES = 3  # of a list: two are a change, or a comparison
_MOST_CHARS = 2_000  # of a sentence that is read as a list
_KEPT = 64  # texts whose lists are remembered
_NAME = re.compile(r"[A-ZÄÖÜ][\w'’-]+")
# "the most hours in total", "the total hours": they choose nothing.
_TOTALS = frozenset(["total", "totals", "sum", "sums"])


@dataclass(frozen=True)
class ListedFigures:
    """The figures of a sentence, all of one unit, and the names before each of them."""

    figures: tuple[Figure, ...]
    names: tuple[frozenset[str], ...]
    words: frozenset[str]

    def extreme(self, is_most: bool) -> Figure:
        """Returns the largest of its figures, or the smallest."""
        choose = max if is_most else min
        return choose(self.figures, key=_value)

    def of_digits(self, digits: str) -> Figure | None:
        """Returns the figure with some digits; None if it has none, or several."""
        found = [figure for figure in self.figures if figure.digits == digits]
        return found[0] if len(found) == 1 else None

    def of_name(self, words: frozenset[str]) -> Figure | None:
        """Returns the figure behind the only name that a text has; None for no or several names."""
        found: list[Figure] = []
        for figure, names in zip(self.figures, self.names, strict=True):
            if names and names <= words:
                found.append(figure)
        return found[0] if len(found) == 1 else None


def false_listed_extremes(text: str, sources: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the sentences that call a listed figure the most or the least, and what is.

    `sources` are texts without tables.
    """
    lists = [each for source in sources for each in _lists_in(source)]
    if not lists:
        return

    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        said = superlative_in(sentence)
        if said is None:
            continue
        reasons = [_reason(said, sentence, listed) for listed in lists]
        told = [reason for reason in reasons if reason is not None]
        if told and all(told):
            yield sentence.strip(), told[0]


def _reason(said: Superlative, sentence: str, listed: ListedFigures) -> str | None:
    """Returns the reason why a sentence is wrong by a list; empty if it is right by it.

    None if the list does not have what the sentence tells.
    """
    if not {*words_of(said.calculated)} - _TOTALS <= listed.words:
        return None
    # "In Africa the highest was ..." compares some of the list, and it does not tell which.
    names = _NAME.findall(sentence.lstrip(), 1)
    if not {*words_of(" ".join(names))} <= listed.words:
        return None

    figures = _figures_in(sentence)
    words = frozenset(words_of(sentence))
    if len(figures) > 1:
        return None
    own = listed.of_digits(figures[0].digits) if figures else listed.of_name(words)
    if own is None:
        return None

    best = listed.extreme(said.is_most)
    if _value(own) == _value(best):
        return ""
    return f"the finding that lists it has {best.text}"


@lru_cache(maxsize=_KEPT)
def _lists_in(text: str) -> tuple[ListedFigures, ...]:
    lists = [_list_in(text[start:stop]) for start, stop in sentence_spans(text)]
    return tuple(listed for listed in lists if listed is not None)


def _list_in(sentence: str) -> ListedFigures | None:
    """Returns the list that a sentence is; None if it is none."""
    is_row = sentence.lstrip().startswith("|")
    if is_row or len(sentence) > _MOST_CHARS or has_superlative(sentence):
        return None
    figures = _figures_in(sentence)
    units = {(figure.unit, figure.scale) for figure in figures}
    if len(figures) < _LEAST_FIGURES or len(units) != 1:
        return None
    return ListedFigures(
        figures=tuple(figures),
        names=tuple(_names_before(figures, sentence)),
        words=frozenset(words_of(sentence)),
    )


def _figures_in(sentence: str) -> list[Figure]:
    """Returns the figures of a sentence, without years."""
    return [figure for figure in values(sentence) if not is_year(figure.digits)]


def _names_before(figures: Sequence[Figure], sentence: str) -> Iterator[frozenset[str]]:
    """Yields the names between each figure and the one before it."""
    end = 0
    for figure in figures:
        between = sentence[end : figure.start]
        # A word that begins the sentence is a name only beside others.
        names = _NAME.findall(between, 1 if end == 0 else 0)
        yield frozenset(words_of(" ".join(names)))
        end = figure.end


def _value(figure: Figure) -> Decimal:
    return figure.readings[0].value
