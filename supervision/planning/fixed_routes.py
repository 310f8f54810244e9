"""A team's fixed routes: goals that go to one role before the planner is asked.

A pattern without `*` fits a goal that contains it, word for word; one with `*` fits a goal that it describes from
beginning to end, `*` standing for any text. Letter case and white space make no difference. Nothing of a pattern is a
regular expression, so its time is bounded by the lengths of the two.
"""

from collections.abc import Iterable

from supervision.contract.team import Route


def matching_route(routes: Iterable[Route], goal: str) -> Route | None:
    """Returns the first route whose pattern fits the goal, None if none does."""
    text = _plain(goal)
    return next((route for route in routes if fits(_plain(route.pattern), text)), None)


def fits(pattern: str, text: str) -> bool:
    """True if `text` fits `pattern`; both are lower-case with single spaces."""
    if "*" not in pattern:
        return bool(pattern) and f" {_words(pattern)} " in f" {_words(text)} "
    first, *middle, last = pattern.split("*")
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return text.endswith(last)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _words(text: str) -> str:
    """Returns the words of a text without the punctuation between them."""
    return " ".join("".join(char if char.isalnum() else " " for char in text).split())
