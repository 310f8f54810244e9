"""Words and sentences: crude measures of what a text is about."""

import re

_STOP_WORDS = """
a about across answer following after all also an and any are around as at be been before between by can
compare compared did do does during each explain figure figures find for from give had has have how i if in
into is it its list long many me more most much need of on one or other our over please question report
same show since so some state such table tables tell than that the their them then there these they this those
through to two until up us use using very was we were what when where which while who whom whose why will with
within would write you your change changed changes summarise summarize describe data information short brief
document documents results result part
"""
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'(\[]?[A-Z0-9])")
_ITEM = re.compile(r"(?:[-*>]|\d{1,2}[.)])\s+")
_LABELS = re.compile(r"^(confidence|limitations?|sources?)\s*:|^[#|_]|^---", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Returns the words of `text` in order, as written; possessives lose their ending."""
    return _WORD.findall(_POSSESSIVE.sub("", text))


def stem(word: str) -> str:
    """Returns `word` in lower case without its plural ending."""
    low = word.lower()
    if len(low) > 4 and low.endswith("ies"):
        return low[:-3] + "y"
    if len(low) > 4 and low.endswith(("xes", "ches", "shes", "sses")):
        return low[:-2]
    return low[:-1] if len(low) > 3 and low.endswith("s") and not low.endswith(("ss", "us", "is")) else low


def stems(text: str) -> list[str]:
    """Returns the stems of all words, stop words included: for matching phrases."""
    return [stem(word) for word in words(text)]


def key_words(text: str) -> list[str]:
    """Returns the words that say what `text` is about, as written, each once: no stop words, no single letters."""
    keys = [word for word in words(text) if word.lower() not in _STOP and (len(word) > 1 or word.isdigit())]
    return list({stem(word): word for word in reversed(keys)}.values())[::-1]


def key_stems(text: str) -> list[str]:
    """Returns the stems of the key words."""
    return list(dict.fromkeys(map(stem, key_words(text))))


def alike(one: str, other: str) -> bool:
    """True if two stems are the same word or close relatives (a long common beginning)."""
    longest = max(len(one), len(other))
    common = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one == other or (common >= 6 and common >= 0.6 * longest)


def shared(wanted: list[str], text: str) -> set[str]:
    """Returns the stems in `wanted` that occur in `text`."""
    present = set(key_stems(text))
    return {stem for stem in wanted if stem in present or any(alike(stem, other) for other in present)}


def sentences(text: str) -> list[str]:
    """Returns the sentences of a Markdown text; headings, tables, rules and closing labels are left out."""
    blocks: list[str] = []
    wrapped = False
    for line in map(str.strip, text.splitlines()):
        item = _ITEM.match(line)
        if not line or _LABELS.match(line):
            wrapped = False
        elif wrapped and not item:
            blocks[-1] += f" {line}"
        else:
            blocks.append(line[item.end() :] if item else line)
            wrapped = True
    return [part.strip() for block in blocks for part in _SENTENCE.split(block) if part.strip()]


def best_sentences(text: str, wanted: list[str], most: int) -> list[str]:
    """Returns the sentences that share the rarest stems with `wanted`, in the text's order; none if none shares any."""
    every = list(dict.fromkeys(sentences(text)))
    present = [shared(wanted, sentence) for sentence in every]
    common = {stem: sum(stem in some for some in present) for stem in wanted}
    scores = [sum(1 / common[stem] for stem in some) for some in present]
    best = sorted((at for at, score in enumerate(scores) if score), key=lambda at: (-scores[at], at))[:most]
    return [every[at] for at in sorted(best)]


def clip(text: str, limit: int) -> str:
    """Returns `text` on one line in at most `limit` characters, cut at a word."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 2].rsplit(" ", 1)[0].rstrip(",;:") + " …"
