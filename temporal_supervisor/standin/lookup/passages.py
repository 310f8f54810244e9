"""Passages: the sentences of a text that hold the words of a question, or none.

A sentence counts if it has nearly all words that the question is about; a title above it counts
with it. What a question is about in other words is not found: that takes a model.
"""

import re
from dataclasses import dataclass

from temporal_supervisor.standin.lookup.answer_kinds import AnswerKind
from temporal_supervisor.standin.lookup.word_forms import (
    key_stems,
    key_words,
    same_word,
    sentences,
    stem,
)

_HEADING = re.compile(r"^#{1,6}\s+(.+)$")
_MOST = 5
_PARAGRAPH_REST = 2  # sentences after the one that was found, where a reason is asked for
_A_WORD_MISSING = 3  # one word in so many may be said otherwise
_NAME = re.compile(
    r"(?<=[\w,;)] )[A-Z][\w-]+|(?<=\()[A-Z][\w-]+"
)  # capitals that begin no sentence
# "twenty-one"; not "twenty one".
_COMPOUND = re.compile(r"(?<!\w)\w++(?:-\w++)+")
_BREAKS = re.compile(r"[-\s]")
# "Why", "what caused it"; not "what".
_REASON = re.compile(
    r"\b(why|what (?:made|explains?|caused|led)|reasons?|causes?)\b", re.IGNORECASE
)
_GIVES_REASON = re.compile(
    r"\b(because|since|due|owing|so that|therefore|caused?|causes|reasons?|led to|leads to|"
    r"thanks to|as a result|after|explains?|why)\b|:",
    re.IGNORECASE,
)
# What no sentence answers by its words: work on a text, a judgement, a forecast.
_NOT_BY_WORDS = re.compile(
    r"\b(summari[sz]e|summary|sum up|translate|rewrite|rephrase|compare|"
    r"recommend|suggest|advise|advice|should|opinion|think|predict|forecast|expect(?:ed)? next|"
    r"plot|chart|draw|imagine|invent|evaluate|assess|improve|"
    r"rate (?:the|our|my|this|these|each|how)|"
    r"best way|how (?:can|could|would)|what if|pros and cons)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Paragraph:
    """The sentences of a paragraph, and the words of the headings above it."""

    sentences: list[str]
    headings: list[str]


def asks_for_reasons(question: str) -> bool:
    """True if a question asks why."""
    return bool(_REASON.search(question))


def takes_judgement(question: str) -> bool:
    """True if a question asks for work on a text, for a judgement or a forecast."""
    return bool(_NOT_BY_WORDS.search(question))


def answering_sentences(text: str, question: str, known: str = "") -> list[str]:
    """Returns the sentences that hold the words of a question, in the text's order.

    `known` are words of the text's title.
    """
    wanted = key_stems(question)
    if not wanted or takes_judgement(question):
        return []
    names = [stem(name) for name in _NAME.findall(question)]
    gives_reasons = asks_for_reasons(question)
    kind = AnswerKind.of(question)
    title = key_stems(known)
    found: list[tuple[int, list[str]]] = []
    for paragraph in _paragraphs(text):
        # who, when, how many: the words of a heading may be about another sentence of its section
        above = [] if kind else [*title, *paragraph.headings]
        for at, sentence in enumerate(paragraph.sentences):
            if not _has_nearly_all(sentence, wanted, above):
                continue
            if not _names_one(names, [*key_stems(sentence), *above]):
                continue
            if not _has_compounds(sentence, question) or (kind and not kind.is_told_by(sentence)):
                continue
            rest = (
                paragraph.sentences[at : at + 1 + _PARAGRAPH_REST] if gives_reasons else [sentence]
            )
            if gives_reasons and len(rest) == 1 and not _GIVES_REASON.search(sentence):
                continue  # the fact alone, which the question knows
            found.append((_score(sentence, wanted), rest))
    best = sorted(found, key=lambda one: -one[0])[:_MOST]
    return list(dict.fromkeys(sentence for one in found if one in best for sentence in one[1]))


def _has_nearly_all(sentence: str, wanted: list[str], above: list[str]) -> bool:
    """True if a sentence, with the headings above it, has nearly all wanted words."""
    own = key_stems(sentence)
    here = [word for word in wanted if _has_word(own, word)]
    missing = [word for word in wanted if word not in here and not _has_word(above, word)]
    may_miss = len(wanted) // _A_WORD_MISSING if len(wanted) > _A_WORD_MISSING else 0
    return bool(here) and len(missing) <= may_miss


def _names_one(names: list[str], words: list[str]) -> bool:
    """True if one of the question's names is among the words, or if it has none."""
    return not names or any(_has_word(words, name) for name in names)


def _has_compounds(sentence: str, question: str) -> bool:
    """True if a sentence has each hyphenated word of a question, `e-bike` also as `ebike`."""
    together = _BREAKS.sub("", sentence.lower())
    return all(stem(_BREAKS.sub("", word)) in together for word in _COMPOUND.findall(question))


def _score(sentence: str, wanted: list[str]) -> int:
    own = key_stems(sentence)
    return sum(_has_word(own, word) for word in wanted)


def _has_word(words: list[str], wanted: str) -> bool:
    return any(same_word(wanted, word) for word in words)


def _paragraphs(text: str) -> list[_Paragraph]:
    """Returns the paragraphs of a Markdown text; items of lists are paragraphs of their own."""
    made: list[_Paragraph] = []
    title: list[str] = []
    section: list[str] = []
    lines: list[str] = []

    def close() -> None:
        if said := sentences("\n".join(lines)):
            made.append(_Paragraph(said, [*title, *section]))
        lines.clear()

    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading is None and line.strip():
            lines.append(line)
            continue
        close()
        if heading is None:
            continue
        words = [word.lower() for word in key_words(heading[1])]
        section = words if title else []
        title = title or words
    close()
    return made
