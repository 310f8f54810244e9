"""Questions for a real model, with what is true, and how an answer is judged.

The true values are those of the data, computed once by hand with DuckDB.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[2]
SHOP = ("--data", str(ROOT / "examples" / "shop" / "data"))
DEFAULT = ("--team", "almanac")

Verdict = Literal["right", "right, marked", "wrong, marked", "wrong", "no answer"]

_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:[,\s]\d{3})+|\d+)(?:\.\d+)?(?!\w)")
_SEPARATORS = re.compile(r"[,\s]")
_SAYS_NO = re.compile(
    r"\b(?:not? (?:have|contain|include|found|find|available|in the)|no (?:data|information|table|such)|do(?:es)? not"
    r"|cannot|can't|could not|unable|impossible)\b",
    re.IGNORECASE,
)
_DOUBTFUL = 0.5  # below this confidence a reader is warned


@dataclass(frozen=True)
class Question:
    """A question, the options of its run, and what a right answer says.

    That are all `figures`, as the data has them or rounded, and of each group of `words` one. A question that the data
    cannot answer is `absent`: right is to say so.
    """

    name: str
    text: str
    options: tuple[str, ...] = DEFAULT
    figures: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    absent: bool = False
    request: Mapping[str, Any] = field(default_factory=dict)

    @property
    def truth(self) -> str:
        """What is true, on one line."""
        return "not in the data" if self.absent else "; ".join([*self.figures, *self.words])

    def is_met_by(self, answer: str) -> bool:
        """True if an answer says what is true."""
        if self.absent:
            return bool(_SAYS_NO.search(answer))
        said = answer.casefold()
        has_words = all(any(word.casefold() in said for word in group.split("|")) for group in self.words)
        return has_words and all(_has_figure(answer, figure) for figure in self.figures)


def _has_figure(answer: str, figure: str) -> bool:
    """True if an answer has a figure, rounded to as many digits as it writes, at least three."""
    true = Decimal(figure)
    for written in _NUMBER.findall(answer):
        value = Decimal(_SEPARATORS.sub("", written))
        digits = len(value.as_tuple().digits)
        places = max(0, -int(value.as_tuple().exponent))
        if value == true or (digits >= 3 and round(true, places) == value):
            return True
    return False


def is_marked(result: Mapping[str, Any]) -> bool:
    """True if a reader sees that something is missing or in doubt."""
    confidence = result.get("confidence")
    doubtful = confidence is not None and confidence < _DOUBTFUL
    marks = result["status"] != "completed" or result["gaps"] or result["unsupported"] or result["contradictions"]
    recalled = any((item.get("finding") or {}).get("grounding") == "knowledge" for item in result["subtasks"])
    return bool(marks or doubtful or recalled)


def judged(question: Question, result: Mapping[str, Any] | None) -> Verdict:
    """Returns the verdict on a run's result; None is a run that failed."""
    if result is None:
        return "no answer"
    marked = is_marked(result)
    if question.is_met_by(result["answer"]):
        return "right, marked" if marked and not question.absent else "right"
    return "wrong, marked" if marked else "wrong"


QUESTIONS = [
    Question("d1", "What was the life expectancy in Rwanda in 1992?", figures=("23.599",)),
    Question("d2", "What was life expectancy in Botswana in 1987 and in 2002?", figures=("63.622", "46.634")),
    Question("d3", "Which source of electricity grew most in Iowa from 2001 to 2017?", words=("renewable",)),
    Question(
        "d4",
        "What was the highest share price of Apple, and in which month?",
        figures=("223.02",),
        words=("march|2010-03",),
    ),
    Question("d5", "How many people worked in construction in the United States in January 2010?", figures=("5580",)),
    Question("d6", "Why did life expectancy in Botswana fall in the 1990s?", words=("hiv|aids",)),
    Question(
        "d7",
        "Which country had the highest life expectancy in 2007, and how high was it?",
        figures=("82.603",),
        words=("japan",),
    ),
    Question("d8", "What was the unemployment rate in Greece in 2015?", absent=True),
    Question("d9", "What was GDP per person in Norway in 2007?", figures=("49357.19017",)),
    Question("d10", "How much electricity came from nuclear energy in Iowa in 2010?", figures=("4451",)),
    Question("d11", "What was the share price of IBM in January 2000?", figures=("100.52",)),
    Question(
        "d12",
        "How many employees did all nonfarm sectors of the United States have in December 2015?",
        figures=("143093",),
    ),
    Question("d13", "What was the lowest share price of Amazon?", figures=("5.97",)),
    Question("d14", "What was the population of Norway in 2007?", figures=("4627926",)),
    Question("s1", "What was the revenue in the South in the second half of 2025?", SHOP, figures=("20516.90",)),
    Question("s2", "Why do office chairs come back?", SHOP, words=("gas spring|lot 7",)),
    Question(
        "s3",
        "Which carrier took over deliveries to the South, and when?",
        SHOP,
        words=("alpen", "22 september|2025-09-22"),
    ),
    Question("s4", "Which region had the highest revenue in 2025?", SHOP, words=("north|nord",)),
    Question("s5", "What is the target of the South for the second half of 2025?", SHOP, figures=("32000",)),
    Question("s6", "What is the profit margin of desks?", SHOP, absent=True),
    Question(
        "s7", "Who was the carrier for the South before July 2025?", SHOP, words=("südfracht|suedfracht|sudfracht",)
    ),
]


def catering_contracts() -> Question:
    """Returns the question with a subtask for each of some contracts, by a plan of the caller's own."""
    return Question(
        "c1",
        "List the annual fee of each catering contract.",
        ("--data", str(ROOT / "examples" / "contracts" / "data")),
        figures=("7500", "72000"),
        request={
            "plan": {
                "subtasks": [
                    {
                        "id": "t1",
                        "role": "reader",
                        "description": "Give the annual fee of this catering contract in euros, with its place.",
                        "for_each": "files:*catering*",
                        "max_items": 4,
                    }
                ]
            }
        },
    )
