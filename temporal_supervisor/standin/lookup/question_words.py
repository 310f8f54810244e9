"""The words of a question while it is read against a table.

Each word is explained by the table, or stays open. A question with an open word is not understood,
so it is not answered.
"""

import re
from dataclasses import dataclass, field

from temporal_supervisor.standin.lookup.word_forms import same_word, stem

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*%?|[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s?\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_FILLER_WORDS = """
a an the of in for on at from to with and or there is are was were do does did be been has have had
their its our we my please me give show tell us us value values figure figures how much many what
which who that this these those recorded table column columns data file files it they you i can
could between each any all as by into within during over only also then so he she his her listed
contained according know would like exactly currently altogether across about whole given
"""
_FILLERS = frozenset(_FILLER_WORDS.split())


@dataclass
class QuestionWords:
    """The words of one question; `open` marks the words without an explanation."""

    question: str
    texts: list[str] = field(init=False)
    stems: list[str] = field(init=False)
    open: list[bool] = field(init=False)
    explained: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Splits the question into words."""
        self.texts = _TOKEN.findall(_POSSESSIVE.sub("", self.question))
        self.stems = [stem(text) for text in self.texts]
        self.open = [True] * len(self.texts)

    def places(self, wanted: list[str]) -> list[int]:
        """Returns the positions at which these stems follow each other, all open."""
        size = len(wanted)
        if not size:
            return []
        starts = range(len(self.stems) - size + 1)
        return [
            at for at in starts if self._is_open(at, size) and self.stems[at : at + size] == wanted
        ]

    def places_of_form(self, word: str) -> list[int]:
        """Returns the positions of open words that are a form of a word."""
        return [at for at, own in enumerate(self.stems) if self.open[at] and same_word(own, word)]

    def explain(self, at: int, size: int = 1, *, of_table: bool = False) -> None:
        """Marks words as explained; with `of_table` only this table explains them."""
        for place in range(at, at + size):
            self.open[place] = False
        self.explained += size * of_table

    def explain_any(self, *phrases: str) -> int | None:
        """Explains the first of these phrases in the question.

        Returns its position; None without one.
        """
        for phrase in phrases:
            if places := self.places([stem(word) for word in phrase.split()]):
                self.explain(places[0], len(phrase.split()))
                return places[0]
        return None

    def number_at(self, at: int) -> str:
        """Returns the number at a position as SQL; empty without one."""
        if not 0 <= at < len(self.texts) or not _NUMBER.fullmatch(self.texts[at]):
            return ""
        return self.texts[at].replace(",", "")

    def word_before(self, at: int) -> str:
        """Returns the word before a position, beyond an article; empty at the beginning."""
        at -= 1
        while at >= 0 and self.stems[at] in (
            "the",
            "a",
            "an",
            "of",
            "different",
            "distinct",
            "total",
            "average",
        ):
            at -= 1
        return self.texts[at].lower() if at >= 0 else ""

    def unexplained(self) -> list[str]:
        """Returns the words without an explanation, except fillers."""
        shown = zip(self.texts, self.open, strict=True)
        return [text for text, is_open in shown if is_open and text.lower() not in _FILLERS]

    def unexplained_names(self) -> list[tuple[int, int]]:
        """Returns the spans of names without an explanation.

        Names are numbers, and words with capitals that are not at the beginning.
        """
        spans: list[tuple[int, int]] = []
        for at, text in enumerate(self.texts):
            if not self.open[at] or at == 0 or not (text[0].isupper() or text.isdigit()):
                continue
            if spans and sum(spans[-1]) == at:
                spans[-1] = (spans[-1][0], spans[-1][1] + 1)
                continue
            spans.append((at, 1))
        return spans

    def _is_open(self, at: int, size: int) -> bool:
        return all(self.open[at : at + size])
