"""The names in a text, recognised by their capital letters.

Inside a sentence a word with a capital is a name. At the beginning of a sentence, where any word
has a capital, it is one if it is no common word, is the subject of a verb, has something or labels
a figure, and is nowhere else in the text written without a capital.
"""

import re
from collections.abc import Callable, Collection, Iterator

from temporal_supervisor.supervision.base.common_words import COMMON
from temporal_supervisor.supervision.base.sentences import sentence_spans

LIST_MARK = re.compile(r"[\s>*+•-]*(?:\(?\d{1,3}[.)]\s+)?[\s*_\"'“„(]*")
WORD = re.compile(r"[^\W\d_](?:[\w’'&-]*[^\W_])?")
_BEFORE_FIGURE = re.compile(r"[*]{0,2},?\s?(?:\([^()\n]{0,40}\)\s?)?[:–—]?[*]{0,2}\s?[-+$€£~(]?\d")
# fmt: off
_VERBS = frozenset([
    "is", "was", "has", "had", "are", "were", "have", "grew", "rose", "fell", "led", "leads",
    "took", "takes", "won", "wins", "reached", "recorded", "lost", "gained", "came", "showed",
    "shows", "saw", "remains", "remained", "became", "stands", "stood", "ranks", "ranked",
    "reports", "reported", "made", "makes", "produced", "produces", "generated", "generates",
    "employs", "employed", "sold", "sells", "delivers", "delivered", "accounted", "accounts",
    "topped", "tops", "overtook",
])
NO_NAME_ENDINGS = (
    "ly", "ing", "tion", "sion", "ment", "ness", "ity", "ance", "ence", "age", "ism", "ship", "ure",
    "ues", "ings", "ths",
)
# fmt: on

_I = re.compile(r"I(?:['’]\w+)?")


def _never(word: str) -> bool:
    return False


def names_in(text: str) -> list[str]:
    """Returns the names in a text, word by word, each once, in order.

    In languages such as German common nouns are among them.
    """
    found = dict[str, None]()
    ordinary = ordinary_words(text)
    for start, stop in sentence_spans(text):
        sentence = text[start:stop]
        begin = LIST_MARK.match(sentence)
        for name, at in capitalised(sentence):
            words = [word for word in name.split() if not _I.fullmatch(word)]
            if is_inside(sentence, begin.end() if begin else 0, at):
                found |= dict.fromkeys(words)
            else:
                inside = [word for word in words if word != name.split()[0]]
                first = first_name(name.split(), sentence[at + len(name) :], ordinary)
                found |= dict.fromkeys(
                    [*inside, *(word for each in first for word in each.split())]
                )
    return [*found]


def ordinary_words(text: str) -> frozenset[str]:
    """Returns the words that a text writes without a capital."""
    return frozenset(word for word in WORD.findall(text) if word[0].islower())


def first_name(words: list[str], rest: str, ordinary: Collection[str] = ()) -> Iterator[str]:
    """Yields the name, if any, at the beginning of a sentence, where any word has a capital."""
    if len(words) > 1:
        yield " ".join(words[1:] if words[0].lower() in COMMON else words)
    elif words[0].lower() not in {*COMMON, *ordinary} and _is_subject(words[0], rest):
        yield words[0]


def capitalised(
    sentence: str, is_unit: Callable[[str], bool] = _never
) -> Iterator[tuple[str, int]]:
    """Yields groups of adjacent words with capitals, each with the place where it begins."""
    run, start, end = list[str](), 0, -2
    for match in WORD.finditer(sentence):
        is_name = match[0][0].isupper() and not is_unit(match[0])
        joined = match.start() == end + 1 and sentence[end : match.start()] == " "
        if run and not (is_name and joined):
            yield " ".join(run), start
            run = []
        if is_name:
            start = start if run else match.start()
            run.append(match[0].removesuffix("'s").removesuffix("’s"))
            end = match.end()
    if run:
        yield " ".join(run), start


def is_inside(sentence: str, at: int, start: int) -> bool:
    """True if a word is inside a sentence, where a capital marks a name."""
    before = sentence[:start].rstrip(" *_(\"'“„")
    return start > at and bool(before) and not before.endswith((":", "–", "—", "•", "→", "=", "|"))


def _is_subject(word: str, rest: str) -> bool:
    """True if the first word of a sentence is a name: an actor, an owner or a figure's label."""
    if word.lower().endswith(NO_NAME_ENDINGS):
        return False
    if rest.startswith(("'s ", "’s ")):
        return True
    following = re.match(r"\s+([^\W\d_]+)", rest)
    if following:
        verb = following[1].lower()
        return (verb in _VERBS or verb.endswith("ed")) and verb not in ("are", "were", "have")
    return bool(_BEFORE_FIGURE.match(rest))
