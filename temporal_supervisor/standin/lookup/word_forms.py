"""Words: their stems and forms, the words of a text's subject, and the sentences with these."""

import re
from os.path import commonprefix

_STOP_WORDS = """
a about across answer following after all also an and any are around as at be been before between by
can compare compared did do does during each explain figure figures find for from give had has have
how i if in into is it its list long many me more most much need of often on one or other our over
please question report same show since so some state such table tables tell than that the their them
then there these they this those through to two until up us use using very was we were what when
where which while who whom whose why will with within would should could must might may shall know
write you your change changed changes summarise summarize describe
data information short brief document documents results result part
happen happened happens explains explained come comes came go goes went please there
develop developed
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
# a source in brackets belongs to the sentence before it
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\bp\.)\s+(?!\[[^\[\]\n]{1,80}\](?:\s|$))(?=[\"'(\[]?[A-Z0-9])"
)
# "- item", "1. item"; not "item".
_ITEM = re.compile(r"^(?:[-*>]|\d{1,2}[.)])\s+")
# "Confidence: 0.9", "| a |", "---"; not "Note: a".
_LABELS = re.compile(r"^(confidence|limitations?|sources?)\s*:|^[#|_]|^---", re.IGNORECASE)
_FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*")
_ALIKE = 6  # letters that two forms of a word have in common
_LEAST_STEM = 3
_ENDING_LETTERS = "e s y d es ed er ers ing ings ion ions ies ied ly al ment ments"
_ENDINGS = frozenset(["", *_ENDING_LETTERS.split()])
_IRREGULAR_FORMS = """
fall fell fallen; rise rose risen; grow grew grown; begin began begun; leave left; lead led;
sell sold sale; buy bought; pay paid; break broke broken; take took taken; give gave given;
make made; hold held; lose lost; win won; write wrote written; build built; send sent; meet met;
say said; speak spoke spoken; run ran; stop stopped stopping; choose chose chosen; become became;
drop dropped dropping; cut; keep kept; shut; stand stood; spend spent; bring brought; get got
"""


def _first_forms(verbs: str) -> dict[str, str]:
    """Returns each form of some verbs with the first form of its verb."""
    found: dict[str, str] = {}
    for forms in verbs.split(";"):
        first, *others = forms.split()
        found |= dict.fromkeys([first, *others], first)
    return found


_IRREGULAR = _first_forms(_IRREGULAR_FORMS)
_SENTENCES = 6


def stem(word: str) -> str:
    """Returns `word` in lower case without its plural ending."""
    low = word.lower()
    if low.endswith("ies"):
        return f"{low[:-3]}y"
    if low.endswith("s") and len(low) > 3:
        return low[:-1]
    return low


def stems(text: str) -> list[str]:
    """Returns the stems of all words, stop words included: for matching phrases."""
    return [stem(word) for word in _WORD.findall(_POSSESSIVE.sub("", text))]


def key_words(text: str) -> list[str]:
    """Returns the words of a text's subject, as written: no stop words, no single letters."""
    words = _WORD.findall(_POSSESSIVE.sub("", text))
    telling = [word for word in words if len(word) > 1 or word.isdigit()]
    return [word for word in telling if word.lower() not in _STOP]


def key_stems(text: str) -> list[str]:
    """Returns the stems of the key words, each once."""
    return list(dict.fromkeys(map(stem, key_words(text))))


def shared_stems(wanted: list[str], text: str) -> set[str]:
    """Returns the stems in `wanted` that occur in `text`, as they are or with another ending."""
    present = key_stems(text)
    return {one for one in wanted if any(_alike(one, other) for other in present)}


def sentences(text: str) -> list[str]:
    """Returns the sentences of a Markdown text, without headings, tables, rules, closing labels."""
    lines = []
    for line in map(str.strip, text.splitlines()):
        # An empty line ends a paragraph; each item of a list is a paragraph.
        lines.append("" if _LABELS.match(line) else _ITEM.sub("\n", line))
    found: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        one_line = " ".join(paragraph.split())
        found += filter(None, _SENTENCE.split(one_line))
    return found


def key_lines(text: str, question: str, most: int = _SENTENCES) -> list[str]:
    """Returns the sentences that share most words with a question, in the text's order.

    Without any, those with figures.
    """
    wanted = key_stems(question)
    every = list(dict.fromkeys(sentences(text)))
    scores = {sentence: len(shared_stems(wanted, sentence)) for sentence in every}
    sharing = [sentence for sentence in every if scores[sentence]]
    if not sharing:
        return [sentence for sentence in every if figures_in(sentence)][:most]
    best = sorted(sharing, key=lambda sentence: -scores[sentence])[:most]
    return [sentence for sentence in every if sentence in best]


def figures_in(text: str) -> int:
    """Returns the number of figures in a text."""
    return len(_FIGURE.findall(text))


def clip(text: str, limit: int) -> str:
    """Returns `text` on one line in at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    whole_words = line[: limit - 2].rsplit(" ", 1)[0]
    return f"{whole_words.rstrip(',;:')} …"


def same_word(one: str, other: str) -> bool:
    """True for two forms of one word: equal but for an ending, or forms of an irregular verb."""
    if one == other or _IRREGULAR.get(one, one) == _IRREGULAR.get(other, other):
        return True
    common = len(commonprefix([one, other]))
    return common >= _LEAST_STEM and one[common:] in _ENDINGS and other[common:] in _ENDINGS


def _alike(one: str, other: str) -> bool:
    if one == other:
        return True
    common = len(commonprefix([one, other]))
    return common >= _ALIKE and common >= 0.6 * max(len(one), len(other))
