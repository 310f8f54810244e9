"""Kinds of questions about texts, and the sentences that answer them.

The beginning of a question tells its kind: one for a number, a time, a place and so on.
"""

import re
from dataclasses import dataclass
from typing import Literal

from temporal_supervisor.standin.lookup.word_forms import same_word, stem

_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
_FIGURE_WORDS = """
no none nothing free half one two three four five six seven eight nine ten eleven twelve twenty
hundred thousand once twice every each daily weekly monthly yearly hourly annually always never both
dozen
"""
_TIME_WORDS = """
january february march april may june july august september october november december monday tuesday
wednesday thursday friday saturday sunday weekday weekend noon midnight morning evening night spring
summer autumn winter today tomorrow yesterday immediately within after before during until since
once when every daily weekly monthly yearly day week month
"""
_PLACE_WORDS = """
in at on to from near behind under above beside into opposite between here everywhere online
upstairs downstairs
"""
_FREQUENCY_WORDS = """
every each once twice times daily weekly monthly yearly hourly annually quarterly always never
seldom regularly
"""
_FREQUENCIES = frozenset(_FREQUENCY_WORDS.split())
_FIGURES = frozenset(_FIGURE_WORDS.split())
_COUNTS = _FIGURES - {"each", "every", "once", "twice", "always", "never"}
_TIMES = frozenset(_TIME_WORDS.split())
_PLACES = frozenset(_PLACE_WORDS.split())
_COUNTED_WITHIN = 3  # words between a number and the thing that it counts, at most
Name = Literal["count", "frequency", "figure", "time", "place", "person"]

_BEGINNINGS: tuple[tuple[Name, re.Pattern[str]], ...] = (
    ("count", re.compile(r"how many\s+(?P<thing>\w+)", re.IGNORECASE)),
    ("frequency", re.compile(r"how often\b", re.IGNORECASE)),
    (
        "figure",
        re.compile(r"how (?:much|high|long|far|old|large|big|heavy|fast|tall|wide)\b", re.I),
    ),
    ("time", re.compile(r"(?:since |until |by )?when\b", re.IGNORECASE)),
    ("place", re.compile(r"where\b", re.IGNORECASE)),
    ("person", re.compile(r"(?:to |by |with |from )?who(?:m|se)?\b", re.IGNORECASE)),
)


@dataclass(frozen=True)
class AnswerKind:
    """The kind of thing that answers a question; `thing` is what a question of how many counts."""

    name: Name
    thing: str = ""

    @classmethod
    def of(cls, question: str) -> "AnswerKind | None":
        """Returns the kind of answer to a question; None for what, which, why and the like."""
        first = _WORD.search(question)
        if first is None:
            return None
        for name, beginning in _BEGINNINGS:
            if match := beginning.match(question, first.start()):
                return cls(name, stem(match["thing"]) if name == "count" else "")
        return None

    def is_told_by(self, sentence: str) -> bool:
        """True if a sentence has a number, a time or a place where the question asks for one."""
        words = [word.lower() for word in _WORD.findall(sentence)]
        match self.name:
            case "count":
                return self._is_counted(words)
            case "frequency":
                return not _FREQUENCIES.isdisjoint(words)
            case "figure":
                return bool(_DIGIT.search(sentence)) or not _FIGURES.isdisjoint(words)
            case "time":
                return bool(_DIGIT.search(sentence)) or not _TIMES.isdisjoint(map(stem, words))
            case "place":
                return any(
                    _is_place(word, after)
                    for word, after in zip(words, [*words[1:], ""], strict=True)
                )
            case "person":
                return True

    def _is_counted(self, words: list[str]) -> bool:
        """True if a number stands shortly before the thing that is counted."""
        for at, word in enumerate(words):
            near = words[max(0, at - _COUNTED_WITHIN) : at]
            if same_word(stem(word), self.thing) and any(
                each.isdigit() or each in _COUNTS for each in near
            ):
                return True
        return False


def _is_place(word: str, after: str) -> bool:
    """True for a word that begins a place, not a time: `in Bern`, not `in March` or `at 8`."""
    return word in _PLACES and not after[:1].isdigit() and stem(after) not in _TIMES
