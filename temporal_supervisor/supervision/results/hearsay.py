"""Checks of a reviewer's or a judge's statements, before they are used.

A sentence is kept only if each figure, quotation, URL and name in it appears in a known text: the
goal, a subtask, a finding, an output of a tool. If all claims of a finding were found, its
rejection must name something that code can check: a figure, a word of the subtask that neither the
finding nor its calls contain, or a word of the finding that appears nowhere else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from temporal_supervisor.supervision.base.sentences import SENTENCE_END
from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, WORDS_OF_WORK, words_of
from temporal_supervisor.supervision.contract.finding import FindingRecord
from temporal_supervisor.supervision.grounding.claims import claims
from temporal_supervisor.supervision.grounding.naming.names import KnownWords, unknown_names
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support

# Of texts in which names are looked up: beyond it, support reads no figures either.
_KNOWN_CHARS = 400_000
_PARTS = re.compile(r"[_\W]+")
_LEAST_CHARS = 3  # of a word that can be missing: shorter ones join others


@dataclass(frozen=True)
class KnownFinding:
    """A finding with its whole text and its record."""

    subtask_id: str
    text: str
    record: FindingRecord

    @property
    def calls(self) -> str:
        """The arguments of the tool calls behind it."""
        return "\n".join(item.arguments for item in self.record.evidence)

    @property
    def is_all_found(self) -> bool:
        """True if it has claims, and all of them were found."""
        return self.record.supported > 0 and not self.record.unsupported


class KnownTexts:
    """Known texts in which statements are looked up; each is read once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._support = Support([Source(text) for text in texts])
        read, room = list[str](), _KNOWN_CHARS
        for text in texts:
            read.append(text[: max(0, room)])
            room -= len(text)
        self._words = KnownWords(read)

    @classmethod
    def of_run(
        cls, given: Sequence[str], findings: Sequence[KnownFinding], outputs: Sequence[str]
    ) -> Self:
        """Returns the known texts of a run: those `given`, its findings, and their outputs."""
        calls = [finding.calls for finding in findings]
        return cls([*given, *(finding.text for finding in findings), *calls, *outputs])

    def known_sentences(self, said: str) -> str:
        """Returns the sentences that contain nothing unknown, as they were written."""
        sentences = (sentence.strip() for sentence in SENTENCE_END.split(said))
        return " ".join(sentence for sentence in sentences if sentence and self._is_known(sentence))

    def _is_known(self, sentence: str) -> bool:
        if unknown_names(sentence, self._words):
            return False
        return all(self._support.supports(claim) for claim in claims(sentence))


def names_a_fault(
    said: str, asked: str, finding: str, calls: str, outputs: Sequence[str] = ()
) -> bool:
    """True if a rejection names a fault that code can check.

    That is a figure; a word of the subtask that is missing in both the finding and its `calls`; or
    a word of the finding that is in neither the subtask nor an output, such as "fell" if the table
    shows no fall. A year or a place that restricted the query is not missing from its result.
    """
    stated = Support([Source(asked)])
    if any(claim.figure is not None and not stated.supports(claim) for claim in claims(said)):
        return True

    named = _parts(said) - SMALL_WORDS - WORDS_OF_WORK
    missing = (named & _parts(asked)) - _parts(finding) - _parts(calls)
    added = (named & _parts(finding)) - _parts(asked) - _parts(calls)
    for output in outputs:
        added -= _parts(output)
    return any(len(word) >= _LEAST_CHARS for word in missing | added)


def _parts(text: str) -> set[str]:
    """Returns the words of a text, also those within names such as life_expectancy."""
    return words_of(text) | {part for part in _PARTS.split(text.casefold()) if part}
