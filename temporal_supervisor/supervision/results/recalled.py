"""The test for answers that come from the model's own knowledge, without any worker agent.

The rule: it does if it states a figure, an address or a name that the goal does not give, and if
the goal asks a question whose answer is not mostly made of the goal's own words. So greetings, and
texts of the goal that were reworked, are the model's work and not its knowledge. Where the rule
cannot tell, the answer counts as recalled: that costs a mark, and the other mistake would hide
where a fact comes from.
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
    """True if a direct answer to a goal states something that the goal does not say."""
    given = Support([Source(goal)])
    if not all(given.supports(claim) for claim in claims(without_quotes(answer))):
        return True

    own, said = words_of(answer), words_of(goal)
    if any(words_of(name).isdisjoint(said) for name in names_in(answer)):
        return True

    asks = any(mark in goal for mark in _QUESTION_MARKS)
    return asks and len(own & said) < _REWORKED * len(own)
