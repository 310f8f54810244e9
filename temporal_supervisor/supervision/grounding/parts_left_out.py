"""Questions, and parts of them, that an answer leaves out.

Example: "What was the revenue in the South, and which carrier took over there?" and the answer "The
revenue in the South was 24,591.60 EUR." A "which" is answered by a word that the question does not
have, or by a number of its own, as a year; a "how many" by a number. "The most expensive order was
[t1]" answers nothing at all. An answer that denies something may be about the missing part, so it
is left in peace.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, WORDS_OF_WORK, stems

_NAMING = "which|who|whom|whose|where|welche[nrs]?|wer|wen|wem|wo"
_MEASURING = r"how\s(?:many|much|often)|wie\s?(?:viele?|oft)"
_ASKING = rf"(?P<measuring>{_MEASURING})|(?P<naming>{_NAMING})|(?P<any>what|when|how|wann|wie)"
_PREPOSITION = "(?:in|to|for|from|by|with|at|on)"

# The beginning of a sentence that asks: "Which ...", "In which ...", "To whom ...".
_BEGINNING = re.compile(rf"\s*(?:{_PREPOSITION}\s)?(?:{_ASKING})\b", re.IGNORECASE)
# A further question in a sentence: ", and how many", " and by whom", " und wer".
_FURTHER = re.compile(
    rf"(?:,\s?)?\b(?:and|und)\s(?:{_PREPOSITION}\s)?(?:{_ASKING})\b",
    re.IGNORECASE,
)
_WITHOUT_AND = re.compile(r"\A,?\s?(?:and|und)\s", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[?.!])\s+|\n+")
# "Were there more in North or South": the name is one of the question's.
_CHOICE = re.compile(r"\b(?:or|oder|between|zwischen|than|als)\b", re.IGNORECASE)

_MARK = re.compile(r"\[[^\]]{0,200}\]")  # "[t1]", "[notes/carriers.md]"
_NUMBER = re.compile(r"(?<!\w)\d[\d.,]*(?!\w)")  # not that of "R0083"
_WORD = re.compile(r"[^\W\d_]\w+")  # also "R0083"
_NUMBER_WORDS = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    twenty thirty forty fifty hundred dozen once twice both each half all
    null ein eine einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf einmal zweimal
    beide je alle
    """.split()  # noqa: SIM905
)
# Whoever writes one of them may tell that a part is missing.
_DENIALS = frozenset(
    """
    no not none nobody nothing never neither cannot unknown missing unable without unclear
    kein keine keiner keinen nicht nichts niemand nie weder unbekannt fehlt fehlen ohne
    """.split()  # noqa: SIM905
)
_SHORT_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
# Words around a figure: none of them answers "which" or "who".
_AROUND_FIGURES = frozenset(
    """
    total sum overall amount amounts amounted average mean price cost costs worth exactly about
    around approximately according based respectively eur euro euros usd dollar dollars gbp pounds
    percent
    in im am an auf aus bei bis das dem den der des die ein eine einem einer es für gab hat hatte
    insgesamt ist laut mit nach sind summe und von vom war waren wert wurde wurden zu zum zur betrug
    gesamt
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class _Question:
    """One of the questions in a text: its words, and whether it asks for a name or a number."""

    words: str
    naming: bool
    measuring: bool


def parts_left_out(question: str, answer: str) -> list[str]:
    """Returns a sentence for the parts of a question that an answer leaves out."""
    parts = [*_parts_of(question)]
    if not parts or not answer.strip():
        return []

    written = _MARK.sub(" ", answer)
    words = [word.lower() for word in _WORD.findall(written)]
    if not _DENIALS.isdisjoint(words) or _SHORT_NOT.search(written):
        return []

    new_numbers = _numbers_in(written) - _numbers_in(question)
    measured = [part for part in parts if part.measuring]
    named = [part for part in parts if part.naming and not _CHOICE.search(question)]
    left_out: list[_Question] = []
    has_number = bool(new_numbers) or not _NUMBER_WORDS.isdisjoint(words)
    if measured and not has_number:
        left_out.append(measured[-1])
    # Of fewer numbers than questions one may answer another part.
    has_name = _has_new_word(question, words) or len(new_numbers) >= len(parts)
    if named and not has_name:
        left_out.append(named[-1])
    return [f"the answer has nothing for: {part.words}" for part in left_out]


def _parts_of(question: str) -> Iterator[_Question]:
    for sentence in _SENTENCE.split(question):
        begun = _BEGINNING.match(sentence)
        if begun is None:
            continue
        found = [begun, *_FURTHER.finditer(sentence, begun.end())]
        ends = [match.start() for match in found[1:]] + [len(sentence)]
        for match, end in zip(found, ends, strict=True):
            words = _WITHOUT_AND.sub("", sentence[match.start() : end]).strip(" ,?.!")
            yield _Question(words, bool(match["naming"]), bool(match["measuring"]))


def _numbers_in(text: str) -> set[str]:
    return {number.strip(".,") for number in _NUMBER.findall(text)}


def _has_new_word(question: str, words: list[str]) -> bool:
    """True if an answer has a word that may be a name, and that the question does not have."""
    asked = stems(word.lower() for word in _WORD.findall(question))
    common = SMALL_WORDS | WORDS_OF_WORK | _AROUND_FIGURES | _NUMBER_WORDS
    return any(word not in common and stems([word]).isdisjoint(asked) for word in words)
