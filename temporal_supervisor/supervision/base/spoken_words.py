"""The words of texts, to compare two texts without a dictionary."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
# Scripts that put no blanks between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

STEM = 5  # letters by which two forms of a word are told to be one
_SMALL = """
a an the this that these those it its i i'm i'll i've me my we you your he she they them their there
here is are was were be been being am do does did has have had will would shall should can could may
might must and or but if then than as at by for from in into of off on onto out over to up with
without about after before not no nor only also already now next yet again still just so too very
all any each every both more most some what which who whose when where why how
"""
SMALL_WORDS = frozenset(_SMALL.split())
"""Words of every English text."""

_OF_WORK = """
answer answers answered asked ask calculate calculated calculation call calls called check checked
column columns complete completed correct corrected correctly data dataset document documents done
error errors expected figure figures file files find finding findings finish finished function give
given hand information list listed look looked message method name named names necessary need needed
needs note notes number numbers output outputs passage passages perform performed problem provide
provided query queries query_data question read ready relevant remaining report result results
return returned returns right row rows run search searched search_documents see show shown shows
source sources sql state statement step steps subtask table tables task tell text tool tools update
updated use used using value values whole work write written wrote
"""
WORDS_OF_WORK = frozenset(_OF_WORK.split())
"""Words of the work: what a finding is made of, not what it finds."""


def stems(words: Iterable[str]) -> frozenset[str]:
    """Returns the beginnings of words, so that `densities` matches `density`."""
    return frozenset(word[:STEM] for word in words)


def words_of(text: str) -> set[str]:
    """Returns the lower-case words and numbers of a text.

    In scripts without spaces each pair of adjacent characters counts as a word.
    """
    found = set[str]()
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            found |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        else:
            found.add(word.replace("’", "'"))
    return found
