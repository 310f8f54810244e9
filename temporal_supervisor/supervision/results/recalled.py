"""The test for direct answers that come from the model's own knowledge.

An answer is recalled if it contains a figure, a URL or a name that the goal does not give. It also
is if the goal asks a question, and the answer does not mostly repeat the goal's words. So greetings
and reworked texts of the goal do not count as knowledge. In doubt an answer counts as recalled:
that costs a mark, while the opposite mistake would hide the origin of a fact.
"""

from temporal_supervisor.supervision.base.capitals import names_in
from temporal_supervisor.supervision.base.spoken_words import words_of
from temporal_supervisor.supervision.grounding.claims import claims, without_quotes
from temporal_supervisor.supervision.grounding.sources import Source
from temporal_supervisor.supervision.grounding.support import Support

_QUESTION_MARKS = ("?", "？", "؟")
# Of the answer's words: a shortened or sorted text keeps nearly all, a fact brings new ones.
_REWORKED = 0.6


def is_recalled(answer: str, goal: str) -> bool:
    """True if a direct answer contains something that its goal does not."""
    given = Support([Source(goal)])
    if not all(given.supports(claim) for claim in claims(without_quotes(answer))):
        return True

    own, said = words_of(answer), words_of(goal)
    if any(words_of(name).isdisjoint(said) for name in names_in(answer)):
        return True

    asks = any(mark in goal for mark in _QUESTION_MARKS)
    return asks and len(own & said) < _REWORKED * len(own)
