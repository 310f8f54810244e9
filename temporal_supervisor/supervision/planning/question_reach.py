"""Detection of questions that one query can answer, so that they are not divided.

A small model divides a short question into parts that are no questions, and loses words on the way.
"""

import re
from typing import Literal

from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, stems, words_of
from temporal_supervisor.supervision.planning.named_tables import only_table, table_lines

Reach = Literal["tables", "perhaps tables", "tables and documents", "elsewhere"]
"""Where a question finds its answer, as far as its words tell."""

_CHARS = 400  # of a question with the form of its answer; more is a task of several parts
_SURE = 2  # so many words of a question that tables have are no chance
_LISTED = "table tables row rows column columns data document documents file files more"
_OF_CATALOGUES = words_of(_LISTED)
_ASKS = re.compile(
    r"\b(?:how (?:many|much|often|large|long|high|old)|which|what|who|whose|when|where|total|sum"
    r"|average|mean|median|count|number of|most|least|highest|lowest"
    r"|wie ?viele?|wie oft|welche[rsnm]?|wer|wann|wo|summe|durchschnitt\w*|anzahl)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:why|how come|reasons?|because|causes?|explains?|describe|summar\w*|compare|write|report"
    r"|warum|wieso|weshalb|gr[uü]nde?|erkl[aä]r\w*|beschreib\w*|vergleich\w*|schreib\w*)\b",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"\b(?:and|und)\b[^?.]{0,40}\b(?:why|what|how|which|who|when|where|warum|was|wie|wer|wann|wo)\b"
    r"|;|\?[^?]+\?",
    re.IGNORECASE,
)


def reach_of(goal: str, catalogue: str) -> Reach:
    """Returns the part of a catalogue that can answer a goal, by their common words.

    A question within one part is answered by tables, a question for figures and their reasons by
    documents as well.
    """
    if only_table(catalogue) is not None:
        return "tables"
    tables = table_lines(catalogue)
    if not tables or len(goal) > _CHARS:
        return "elsewhere"
    if not _ASKS.search(goal):
        return "elsewhere"

    asked = _stems(goal)
    in_tables = asked & _stems("\n".join(tables.values()))
    documents = [line for line in catalogue.splitlines() if line.startswith("- document ")]
    if _TELLS.search(goal):
        return "tables and documents" if documents and len(in_tables) >= _SURE else "elsewhere"

    in_documents = asked & _stems("\n".join(documents))
    if _PARTS.search(goal) or not in_tables or in_documents - in_tables:
        return "elsewhere"
    return "tables" if len(in_tables) >= _SURE else "perhaps tables"


def _stems(text: str) -> frozenset[str]:
    words = words_of(text.replace("_", " ")) - SMALL_WORDS - _OF_CATALOGUES
    return stems(word for word in words if not word.isdigit())
