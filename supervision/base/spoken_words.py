"""The words of a text, and the names among them: what two texts have in common, without any dictionary."""

import re

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts that put no blanks between words
_BEGINS_AFTER = frozenset('.!?:;|*#>-–—•_"“„«”»。！？：')


def words_of(text: str) -> set[str]:
    """Returns the words and numbers of a text in lower case; of scripts without blanks every two letters."""
    found = set[str]()
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            found |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        else:
            found.add(word.replace("’", "'"))
    return found


def names_of(text: str) -> list[str]:
    """Returns the capitalised words of a text that begin no sentence, item or cell, each once, in their order.

    These are names, and in some languages nouns. A word that also begins a sentence counts where it stands inside one.
    """
    found = dict[str, None]()
    for match in _WORD.finditer(text):
        word = match[0]
        if not word[0].isupper() or re.match(r"I\b", word):
            continue
        before = text[max(0, match.start() - 4) : match.start()]
        stripped = before.rstrip(" \t(")
        if stripped and "\n" not in stripped[-1:] and stripped[-1] not in _BEGINS_AFTER:
            found[word] = None
    return [*found]
