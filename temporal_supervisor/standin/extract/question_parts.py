"""The parts of a question, and the way to answer each: a query, a calculation, or sentences."""

import re
from dataclasses import dataclass

from temporal_supervisor.standin.lookup.passages import asks_for_reasons, takes_judgement
from temporal_supervisor.standin.lookup.table_columns import read_tables
from temporal_supervisor.standin.lookup.table_questions import TableAnswer, table_answer
from temporal_supervisor.standin.lookup.tables import example_query, parse_examples, parse_tables
from temporal_supervisor.standin.lookup.word_forms import key_words

# "12 * (3 + 4)", "0.5/2"; not "12 apples".
_ARITHMETIC = re.compile(r"(?<![\d.])\.?+\d[\d.]*+(?:\s*+[-+*/]\s*+\(?+\d[\d.]*+\)?+)++")

_QUESTION_WORD = r"(?:what|why|how|which|who|when|where)\b"
# Between parts: "How many? Where", "... and which", ", how"; not "salt and pepper".
_NEXT_PART = re.compile(
    rf"(?<=[?;])\s++|,?(?<!\s)\s++and\s++(?={_QUESTION_WORD})|,\s++(?={_QUESTION_WORD})",
    re.IGNORECASE,
)
# "Please write a short report on it.", "Be brief."; not "What was written?".
_WRITES = re.compile(
    r"^(?:please\s+)?(?:write|draft|compose|format|prepare|make)\b.*\b(?:report|memo|note|document|letter|summary|"
    r"file|brief|page|text)\b.*$|^be brief\.?$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# "2004-05-02", "2004-2009", "1/2/2004"; not "4-2".
_DATE_OR_RANGE = re.compile(r"\d{4}-\d{1,4}(?:-\d+)?|\d+(?:-\d+){2,}|\d+(?:/\d+){2,}")
_OWN_WORDS = 2  # a part with fewer borrows those of the part before it


@dataclass(frozen=True)
class Part:
    """One part of a question; it may refer to `context`, the part before it."""

    text: str
    context: str = ""

    @property
    def whole(self) -> str:
        """Its text, with that of its context if it is too short by itself."""
        words = [word for word in key_words(self.text) if not word.isdigit()]
        return (
            f"{self.text} {self.context}" if len(words) < _OWN_WORDS and self.context else self.text
        )


@dataclass(frozen=True)
class PartQuery:
    """The query for a part; without `answer` it was adapted from an example of the team."""

    sql: str
    answer: TableAnswer | None = None


def parts_of(question: str) -> list[Part]:
    """Returns the parts of a question, without instructions to the author unless that is all."""
    said = [sentence.strip() for sentence in _SENTENCE.split(question.strip())]
    asked = [sentence for sentence in said if sentence and not _WRITES.match(sentence)] or [
        question.strip()
    ]
    texts = [text.strip(" ?;") for sentence in asked for text in _NEXT_PART.split(sentence)]
    made: list[Part] = []
    for text in filter(None, texts):
        made.append(Part(text, made[0].text if made else ""))
    return made


def expressions_in(question: str) -> list[str]:
    """Returns the arithmetic expressions in a question, without dates and ranges of years."""
    return [
        written
        for written in _ARITHMETIC.findall(question)
        if not _DATE_OR_RANGE.fullmatch(written.strip())
    ]


def wants_document(question: str) -> bool:
    """True if a question asks for a document: a report, a memo."""
    return any(_WRITES.match(sentence.strip()) for sentence in _SENTENCE.split(question.strip()))


def query_of(part: Part, shown: str, also: str = "") -> PartQuery | None:
    """Returns the query for a part, by the `shown` tables and examples; None without one.

    `also` is another subject of the query: the item of a subtask.
    """
    text = f"{part.text} {also}".strip()
    if asks_for_reasons(text) or takes_judgement(text):
        return None
    if adapted := example_query(parse_tables(shown), parse_examples(shown), text):
        return PartQuery(adapted)
    answer = table_answer(read_tables(shown), text)
    return PartQuery(answer.sql, answer) if answer else None
