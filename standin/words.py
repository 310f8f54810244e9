"""Words: crude measures of what a text is about."""

import re

_STOP = """
a about across answer following after all also an and any are around as at be been before between by can
compare compared did do does during each explain figure figures find for from give had has have how i if in
into is it its list long many me more most much need of on one or other our over please question report same
show since so some state such table tables tell than that the their them then there these they this those
through to two until up us use using very was we were what when where which while who whom whose why will with
within would write you your change changed changes summarise summarize describe data information short brief
document documents results result part
"""
STOP = frozenset(_STOP.split())
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_ENDINGS = ("n", "an", "ian", "ese", "i", "ish")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[]?[A-Z0-9])")
_ITEM = re.compile(r"(?:[-*>]|\d{1,2}[.)])\s+")
_LABELS = re.compile(r"^(confidence|limitations?|sources?)\s*:", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of `text` in order, as written; `U.S.` is one word, possessives lose their ending."""
    joined = _INITIALS.sub(lambda match: match.group().replace(".", ""), text)
    return _WORD.findall(_POSSESSIVE.sub("", joined))


def stem(word: str) -> str:
    """`word` in lower case without its plural ending."""
    low = word.lower()
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if len(low) > 4 and low.endswith(("xes", "ches", "shes", "sses")):
        return low[:-2]
    if len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return low[:-1]
    return low


def stems(text: str) -> list[str]:
    """The stems of all words, stop words included: for matching phrases."""
    return [stem(word) for word in words(text)]


def key_stems(text: str) -> list[str]:
    """The stems that say what `text` is about, each once, in order."""
    return list(dict.fromkeys(stem(word) for word in words(text) if is_key(word)))


def key_words(text: str) -> list[str]:
    """The words that say what `text` is about, as written, each once, without numbers."""
    found = {stem(word): word for word in reversed(words(text)) if is_key(word) and not word.isdigit()}
    return list(reversed(found.values()))


def is_key(word: str) -> bool:
    """Whether a word carries meaning: no stop word and, unless a number or in capitals, no single letter."""
    return word.lower() not in STOP and (len(word) > 1 or word.isdigit())


def alike(one: str, other: str) -> bool:
    """Whether two stems are the same word or close relatives (a long common beginning)."""
    if one == other:
        return True
    longest = max(len(one), len(other))
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return common >= 6 and common >= 0.6 * longest


def derived(word: str, base: str) -> bool:
    """Whether `word` is `base` or an adjective made of it, such as the inhabitant of a place."""
    return word == base or (len(base) >= 4 and word.startswith(base) and word[len(base) :] in _ENDINGS)


def overlap(wanted: list[str], text: str) -> int:
    """How many of the stems in `wanted` occur in `text`."""
    return len(shared(wanted, text))


def shared(wanted: list[str], text: str) -> set[str]:
    """The stems in `wanted` that occur in `text`."""
    present = set(key_stems(text))
    return {one for one in wanted if one in present or any(alike(one, other) for other in present)}


def sentences(text: str) -> list[str]:
    """The sentences of a Markdown text; headings, tables, rules and closing labels are left out."""
    return [part.strip() for block in _blocks(text) for part in _SENTENCE.split(block) if part.strip()]


def best_sentences(text: str, wanted: list[str], most: int) -> list[str]:
    """The sentences that share the rarest stems with `wanted`, in the text's order; none when nothing is shared."""
    found = list(dict.fromkeys(sentences(text)))
    present = [shared(wanted, sentence) for sentence in found]
    common = {one: sum(one in some for some in present) for one in wanted}
    scores = [sum(1 / common[one] for one in some) for some in present]
    best = sorted((at for at, score in enumerate(scores) if score), key=lambda at: (-scores[at], at))[:most]
    return [found[at] for at in sorted(best)]


def _blocks(text: str) -> list[str]:
    """Paragraphs and list items, each on one line: documents may be wrapped."""
    blocks: list[str] = []
    going_on = False
    for line in text.splitlines():
        plain = line.strip()
        item = _ITEM.match(plain)
        if not plain or plain.startswith(("#", "|", "---", "_Written by")) or _LABELS.match(plain):
            going_on = False
        elif going_on and not item:
            blocks[-1] += f" {plain}"
        else:
            blocks.append(plain[item.end() :] if item else plain)
            going_on = True
    return blocks


def clip(text: str, limit: int) -> str:
    """`text` on one line in at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[:limit].rsplit(" ", 1)[0].rstrip(",;:") + " …"
