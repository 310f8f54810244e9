"""The names, places and causes that a text gives and no source has.

A name is recognised by its capitals, a thing by its place in the sentence: "the coal industry",
"because of a strike". It is known if its words occur in a source, in any form: inflected, in a
compound, in capitals, as an abbreviation. Where the text is in another language than the sources,
its words prove nothing, and only names that no language translates are looked up. German nouns have
capitals, so that a German name needs a better sign.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from temporal_supervisor.supervision.base.capitals import (
    LIST_MARK,
    NO_NAME_ENDINGS,
    WORD,
    capitalised,
    first_name,
    is_inside,
    ordinary_words,
)
from temporal_supervisor.supervision.base.common_words import COMMON, FUNCTION_WORDS
from temporal_supervisor.supervision.base.sentences import sentence_spans
from temporal_supervisor.supervision.base.text import blanks_for
from temporal_supervisor.supervision.grounding.units import scale_of, unit_of
from temporal_supervisor.supervision.grounding.wording.code_fences import without_code
from temporal_supervisor.supervision.grounding.wording.plain_words import words_of

_MOST_NAMES = 200  # of a text: beyond, they are looked up no more
_LANGUAGE_CHARS = 20_000  # of a text, by which its language is told

# "https://example.org", "www.example.org", "office@example.org", "[t1]", "[a](b)", "sales.csv".
_ADDRESS_OR_MARK = re.compile(
    r"\bhttps?://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]{1,64}@[\w.-]{1,100}"
    r"|\[[^\[\]\n]{1,80}\](?:\([^()\n]{0,300}\))?"
    r"|(?<!\w)\w{1,60}\.(?:csv|md|pdf|xlsx|txt|json|html)\b"
)
_QUOTED = re.compile(r"[\"“„«»][^\"“”„«»\n]{1,300}[\"”“»«]")
# "## Results", "| a |", "> quoted"; not "Results".
_SKIPPED_LINE = re.compile(r"\s*(?:#{1,6}\s|\||>)")
_ROW = re.compile(r"\s*\|")
_CELL = re.compile(r"[^|\n]+")

_GERMAN_NOUN_ENDINGS = (
    *("ung", "ungen", "heit", "keit", "keiten", "schaft", "tion", "tionen", "ismus", "tät"),
    *("nis", "tum", "chen", "n", "s", "er", "en", "form", "weise", "basis"),
)
# The end of what is before a place: "wohnt in ", "kommt aus ".
_GERMAN_PLACE = re.compile(r"\b(?:in|aus|nach|bei)\s\Z", re.IGNORECASE)
_NUMBERED = re.compile(r"[\s-]?\d")  # ISO 9001
# "the WHO said"; not "WHOM".
_CODE = re.compile(r"(?<!\w)[A-Z]{3}(?!\w)")
_DEMONYMS = (
    *("ia", "ian", "ians", "ish", "ese", "ean", "an", "ans", "ic", "i"),
    *("isch", "ische", "ischen", "er"),
)
# "Nordlicht Energie GmbH", "Acme Ltd".
_COMPANY = re.compile(
    r"(?<![\w&-])((?:[^\W\d_a-zß-öø-ÿ][\w&-]{0,30}+\s){1,3})"
    r"(?:GmbH|AG|KG|SE|Inc|Ltd|Corp|LLC|plc|S\.A\.)(?!\w)"
)
# A word with a capital, and up to five more: "United States", "Gross Domestic Product".
_CAPITALISED = re.compile(r"(?<!\w)[^\W\d_a-z]\w*(?:[ -][^\W\d_a-z]\w*){1,5}")

_HEADS = (
    "industry|sector|company|firm|carrier|supplier|manufacturer|brand|party|church|university|bank"
    "|airline|league|club|epidemic|pandemic|disease|virus|war|famine|earthquake|strike|crisis"
)
# "the car industry", "a small shipping company"; the words between are looked up.
_HEAD = re.compile(
    rf"\b(?:the|a|an|by|of)\s+((?:[^\W\d_]+[\s-]){{1,3}})(?:{_HEADS})\b",
    re.IGNORECASE,
)
# "The highest was Iceland.", "the largest city is New York,"; the name behind is looked up.
_BEST = re.compile(
    r"\b(?:most|highest|largest|lowest|biggest|smallest|greatest|fastest|strongest|best|worst|least"
    r"|longest|oldest)\b[^.:;,\n]{0,60}\b(?:is|was|were|are)"
    r"\s++([^\W\d_][\w-]{0,30}+(?:\s[^\W\d_][\w-]{0,30}+){0,3})(?=\s?(?:[.,;(\n]|\Z))",
    re.IGNORECASE,
)
# "because of the strike", "wegen des Streiks"; the cause is looked up.
_CAUSE = re.compile(
    r"\b(?:because of|due to|owing to|caused by|as a result of|thanks to|driven by|attributed to"
    r"|result of|because|reason (?:for [^.\n]{1,60} )?(?:is|was)"
    r"|wegen|aufgrund|infolge|verursacht durch|weil)\s+"
    r"(?=([^.;:()\n]{3,160}))",
    re.IGNORECASE,
)
# The end of a cause: "the strike, which", "the strike and the war".
_CAUSE_ENDS = re.compile(r",|\s(?:and|but|which|while|und|aber)\s", re.IGNORECASE)
_CAUSE_WORDS = 8
_ADJECTIVE_ENDINGS = ("est", "ing", "al", "ed", "ous", "ive")


class KnownWords:
    """The words of all sources, as names are looked up in them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [*texts]
        counts: Counter[str] = Counter()
        for text in self._texts:
            counts.update(_language_counts(text))
        self.language = counts.most_common(1)[0][0] if counts else ""
        self._compounds = self.language not in ("", "en")

    @cached_property
    def _words(self) -> set[str]:
        return {word for text in self._texts for word in words_of(text.replace("_", " "))}

    @cached_property
    def _beginnings(self) -> set[str]:
        """The first 4 to 7 letters of all words."""
        beginnings = set[str]()
        for word in self._words:
            beginnings.update(word[:size] for size in range(4, min(len(word), 7) + 1))
        return beginnings

    @cached_property
    def _initials(self) -> set[str]:
        return {letters for text in self._texts for letters in _initials(text.replace("_", " "))}

    @cached_property
    def _codes(self) -> set[str]:
        """The short forms of countries and companies, such as ITA."""
        return {code for text in self._texts for code in _CODE.findall(text)}

    def has(self, word: str) -> bool:
        """True if a source has a word, a part or form of it, or the words that it abbreviates."""
        written = word.strip("'’")
        if written.lower() in COMMON or all(map(self._has_stem, words_of(written))):
            return True
        return written.lower() in self._initials or written[:3].upper() in self._codes

    def _has_stem(self, stem: str) -> bool:
        """True if a source has a word, or one that begins or ends alike."""
        if stem in self._words or stem in COMMON or len(stem) < 2:
            return True
        if len(stem) < 5:
            return False
        if stem[: max(5, len(stem) * 7 // 10)] in self._beginnings:
            return True
        is_of_a_country = stem.endswith(_DEMONYMS)
        if is_of_a_country and stem[:4] in self._beginnings:
            return True
        return self._is_compound(stem)

    def _is_compound(self, stem: str) -> bool:
        """True if a word begins or ends with a word of a source, such as Windkraft with wind."""
        if not self._compounds or len(stem) < 8:
            return False
        places = range(4, len(stem) - 2)
        return any(stem[:at] in self._words or stem[at:] in self._words for at in places)


def language_of(text: str) -> str:
    """Returns the language of a text, by its commonest words: en, de, fr, es, or nothing."""
    counts = _language_counts(text)
    return counts.most_common(1)[0][0] if counts else ""


def _language_counts(text: str) -> Counter[str]:
    words = Counter(re.findall(r"[^\W\d_]+", text[:_LANGUAGE_CHARS].lower()))
    counts: Counter[str] = Counter()
    for language, function_words in FUNCTION_WORDS.items():
        count = sum(words[word] for word in function_words & words.keys())
        if count:
            counts[language] = count
    return counts


def _initials(text: str) -> Iterator[str]:
    """Yields the first letters of names of several words: "us" of United States.

    Those of their beginnings, too: "am" and "amw" and "amws" of a name of four words.
    """
    for match in _CAPITALISED.finditer(text):
        letters = "".join(part[0] for part in re.split(r"[ -]", match[0])).lower()
        for size in range(2, len(letters) + 1):
            yield letters[:size]


def unknown_names(text: str, known: KnownWords) -> list[str]:
    """Returns the names and causes of a text that no source has, each once, in their order."""
    plain = _QUOTED.sub(_blanks, _ADDRESS_OR_MARK.sub(_blanks, without_code(text)))
    language = language_of(plain) or known.language
    foreign = not language or (bool(known.language) and language != known.language)
    ordinary = ordinary_words(plain)

    found = dict[str, None]()
    for start, stop in sentence_spans(plain):
        sentence = plain[start:stop]
        for name in _names(sentence, language, foreign, ordinary):
            unknown = [word for word in WORD.findall(name) if not known.has(word)]
            if unknown and not _is_spelled_out(name, known):
                found.setdefault(name.strip(" .,;:"))
        if not foreign:
            found |= dict.fromkeys(_things(sentence, known))
        if len(found) >= _MOST_NAMES:
            break
    return [*found]


def _blanks(match: re.Match[str]) -> str:
    return blanks_for(match[0])


def _is_spelled_out(name: str, known: KnownWords) -> bool:
    """True if a source has the initials of a name: gdp of Gross Domestic Product."""
    parts = name.split()
    return len(parts) > 2 and known.has("".join(part[0] for part in parts))


def _names(sentence: str, language: str, foreign: bool, ordinary: Collection[str]) -> Iterator[str]:
    """Yields the possible names in a sentence, by their capitals."""
    for company in _COMPANY.findall(sentence):
        yield company.strip()
    if _ROW.match(sentence):
        yield from _names_in_row(sentence, language, foreign)
        return
    if _SKIPPED_LINE.match(sentence):
        return

    list_mark = LIST_MARK.match(sentence)
    at = list_mark.end() if list_mark else 0
    for name, start in capitalised(sentence, _is_unit):
        words = name.split()
        rest = sentence[start + len(name) :]
        if len(words) == 1 and _is_acronym(name):
            if not _NUMBERED.match(rest):
                yield name
        elif foreign:  # other names may be translated
            yield from filter(_is_acronym, words)
        elif language == "de":
            yield from _german_name(name, sentence[:start])
        elif is_inside(sentence, at, start):
            yield name
        else:
            yield from first_name(words, rest, ordinary)


def _is_acronym(word: str) -> bool:
    return word.isupper() and len(word) > 1


def _german_name(name: str, before: str) -> Iterator[str]:
    """Yields the name, if any, among nouns with capitals.

    A name is two of them in a row, or one behind a preposition without an article.
    """
    words = [word for word in name.split() if word.lower() not in COMMON]
    if not words:
        return
    if len(words) > 1 and len(words) == len(name.split()):
        yield name
        return
    is_noun = words[-1].lower().endswith(_GERMAN_NOUN_ENDINGS)
    if not is_noun and _GERMAN_PLACE.search(before):
        yield words[-1]


def _names_in_row(row: str, language: str, foreign: bool) -> Iterator[str]:
    """Yields the names in the cells of a row that has a figure: heads of columns are no names."""
    if foreign or not re.search(r"\d", row):
        return
    least = 2 if language == "de" else 1  # any German noun has a capital
    for cell in _CELL.findall(row):
        words = cell.strip(" *_").split()
        if not least <= len(words) <= 4:
            continue
        if not all(word[0].isupper() and word.isalpha() for word in words):
            continue
        is_plain_noun = len(words) == 1 and words[0].lower().endswith(NO_NAME_ENDINGS)
        if not is_plain_noun:
            yield " ".join(words)


def _is_unit(word: str) -> bool:
    return unit_of(word) is not None or scale_of(word) != 1 or word.upper() == "TEUR"


def _things(sentence: str, known: KnownWords) -> Iterator[str]:
    """Yields things and causes that a sentence names by their place in it."""
    for match in _HEAD.finditer(sentence):
        last = re.split(r"[\s-]", match[1].strip())[-1]
        is_adjective = last.lower().endswith(_ADJECTIVE_ENDINGS)
        if not is_adjective and not known.has(last):
            yield match[0].strip()

    for best in _BEST.findall(sentence):
        words = _uncommon_words(best)
        if words and not any(map(known.has, words)):
            yield best.strip()

    for behind in _CAUSE.findall(sentence):
        cause = _CAUSE_ENDS.split(behind)[0]
        words = [word for word in _uncommon_words(cause) if len(word) > 2][:_CAUSE_WORDS]
        unknown = [word for word in words if not known.has(word)]
        if unknown and 2 * len(unknown) > len(words):
            yield cause.strip()


def _uncommon_words(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if word.lower() not in COMMON]
