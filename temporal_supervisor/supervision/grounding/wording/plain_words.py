"""The words of a text in a plain form, by which texts, names and cells are compared."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
# Endings of plurals, behind three letters: "boxes" and "box" become one word.
_ENDING = re.compile(r"(?<=...)(?:es|en|s|n|e)\Z")
_COMBINING = re.compile(r"[\u0300-\u036f]")  # the accent of "é", once it is apart from its letter


def words_of(text: str) -> list[str]:
    """Returns the words of a text without case, accents and the endings of plurals."""
    plain = text.casefold()
    if not plain.isascii():
        plain = _COMBINING.sub("", unicodedata.normalize("NFKD", plain))
    words = _WORD.findall(plain.replace("'s ", " ").replace("’s ", " "))
    stems = {word: _ENDING.sub("", word) for word in set(words)}
    return [stems[word] for word in words]
