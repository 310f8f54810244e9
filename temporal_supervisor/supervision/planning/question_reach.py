"""Detection of questions that one query or one search can answer, so that no model plans them.

A small model divides a short question into parts that are no questions, and loses words on the way.
"""

import re
from typing import Literal

from temporal_supervisor.supervision.base.spoken_words import SMALL_WORDS, stems, words_of
from temporal_supervisor.supervision.planning.named_tables import only_table, table_lines

Reach = Literal["tables", "perhaps tables", "documents", "tables and documents", "elsewhere"]
"""Where a question finds its answer, as far as its words tell."""

_CHARS = 400  # of a question with the form of its answer; more is a task of several parts
_SURE = 2  # so many words of a question that tables have are no chance
_LISTED = "table tables row rows column columns data document documents file files more"
_OF_CATALOGUES = words_of(_LISTED)
_FIGURE_WORDS = (
    r"how (?:many|much|often|large|long|high|old)|total|sum|average|mean|median|count|number of"
    r"|most|least|highest|lowest|wie ?viele?|wie oft|summe|durchschnitt\w*|anzahl"
)
_FIGURES = re.compile(rf"\b(?:{_FIGURE_WORDS}|meisten?)\b", re.IGNORECASE)
_ASKS = re.compile(
    rf"\b(?:{_FIGURE_WORDS}|which|what|who|whose|when|where|welche[rsnm]?|wer|wann|wo)\b",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"\b(?:why|how come|reasons?|because|causes?|explains?|describe|summar\w*|compare|write|report"
    r"|warum|wieso|weshalb|gr[uü]nde?|erkl[aä]r\w*|beschreib\w*|vergleich\w*|schreib\w*)\b",
    re.IGNORECASE,
)
_WHY = re.compile(
    r"\b(?:why|how come|reasons? (?:for|of|why)|caused?|warum|wieso|weshalb|gr[uü]nde? f[uü]r)\b",
    re.IGNORECASE,
)
_PARTS = re.compile(
    r"\b(?:and|und)\b[^?.]{0,40}\b(?:why|what|how|which|who|when|where|warum|was|wie|wer|wann|wo)\b"
    r"|;|\?[^?]+\?",
    re.IGNORECASE,
)


def reach_of(goal: str, catalogue: str) -> Reach:
    """Returns the part of a catalogue that can answer a goal, by their common words.

    Tables answer a question whose words they have, documents one for reasons. A question for
    figures and their reasons is answered by both, and so is one of two parts that have words of
    each.
    """
    if only_table(catalogue) is not None:
        return "tables"
    tables = table_lines(catalogue)
    if not tables or len(goal) > _CHARS:
        return "elsewhere"
    asks = _ASKS.search(goal) is not None
    asks_why = _WHY.search(goal) is not None
    if not (asks or asks_why):
        return "elsewhere"

    asked = _stems(goal)
    in_tables = asked & _stems("\n".join(tables.values()))
    documents = [line for line in catalogue.splitlines() if line.startswith("- document ")]
    in_documents = asked & _stems("\n".join(documents))
    tables_are_sure = len(in_tables) >= _SURE

    if _TELLS.search(goal):
        if documents and tables_are_sure and asks:
            return "tables and documents"
        for_reasons = asks_why and not (asks and in_tables)
        return "documents" if documents and for_reasons else "elsewhere"
    has_other_words = bool(in_documents - in_tables)
    if _PARTS.search(goal):
        if has_other_words:
            return "tables and documents" if in_tables else "elsewhere"
        # What its query leaves out of such a question is seen in the answer.
        is_of_tables = tables_are_sure or (in_tables and _FIGURES.search(goal))
        return "tables" if is_of_tables else "elsewhere"
    # A question without a word of a table may be in another language than the tables.
    if not in_tables or has_other_words:
        return "elsewhere"
    return "tables" if tables_are_sure else "perhaps tables"


def _stems(text: str) -> frozenset[str]:
    words = words_of(text.replace("_", " ")) - SMALL_WORDS - _OF_CATALOGUES
    return stems(word for word in words if not word.isdigit())
