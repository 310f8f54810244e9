"""JSON as models write it: slight faults with a single possible meaning are corrected.

Strict JSON is read by the standard library. Anything else is read again in one pass, which accepts
comments, other quotes, Python's constants, surplus commas, and doubled or lost brackets. It never
guesses at a value: a text or a number that may have been cut is an error. The rules are listed in
`supervision.replies.rules`.
"""

import json
import re
from typing import Any

from temporal_supervisor.supervision.base.json_object import JsonObject

# Of one text by the tolerant reader: ten times the longest plan. Strict JSON is read at any length.
READ_CHARS = 200_000
_DEPTH = 60  # of JSON in JSON: forms have ten
_STARTS_TRIED = 20  # brackets at which JSON may begin: each is read once

_QUOTES = {'"': '"', "'": "'", "“": '”"', "„": '“”"', "‘": "’'", "«": "»"}
"""What may close a text, by what opens it."""
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}

_START = re.compile(r"""\{(?=\s*(?:["'“„‘}]|\{\s*["'“„‘]|//|/\*|\Z))|\[(?=\s*\{\s*["'“„‘])""")
"""A bracket that may begin an object, or a list of them."""
_SPACE = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])")
_WORD = re.compile(r"[A-Za-z]++(?![\w.])")
_FOUR_DIGITS = re.compile(r"[0-9a-fA-F]{4}")
_AFTER_TEXT = re.compile(r"\s{0,40}+(?:[,:}\])]|\Z)")
"""What follows the end of a text whose quote may also stand within it, as an apostrophe does."""
_GOES_ON = re.compile(r"\s*+,\s*+(?=\")")
ALL_JSON = re.compile(r"\A(?:```(?:json)?|<tool_call>)?\s*+\{")
"""How a text begins that is JSON and nothing else."""
_SCHEMA_KEYS = ("$defs", "$schema")


def first_json(text: str) -> JsonObject:
    """Returns the first JSON object in `text`.

    Raises ValueError if there is none, if it is broken or cut, or if it is in a list of objects.
    """
    value = first_value(text)
    if not isinstance(value, dict):
        raise ValueError("the JSON is a list, not one object")
    return value


def first_value(text: str) -> JsonObject | list[Any]:
    """Returns the first JSON object in `text`, or the list of objects that begins before it.

    Raises ValueError without either. A JSON schema is skipped, because models repeat the one that
    they were given.
    """
    at = _start_of(text, 0)
    if at is None:
        raise ValueError("the text holds no JSON object")
    for _ in range(_STARTS_TRIED):
        value, end = value_at(text, at)
        if not _is_schema(value):
            return value
        if goes_on := _GOES_ON.match(
            text, end
        ):  # the schema's object was closed too early: `{...}, "subtasks": [`
            text, end = "{" + text[goes_on.end() :], 0
        at = _start_of(text, end)
        if at is None:
            break
    raise ValueError("the text repeats the JSON schema and holds no object that fits it")


def _start_of(text: str, after: int) -> int | None:
    start = _START.search(text, after)
    return start.start() if start else None


def value_at(text: str, at: int) -> tuple[JsonObject | list[Any], int]:
    """Returns the JSON object or list that begins at `at`, and its end. Raises ValueError."""
    try:
        # Not strict: models break lines within texts.
        read: tuple[JsonObject | list[Any], int] = json.JSONDecoder(strict=False).raw_decode(
            text, at
        )
        return read
    except json.JSONDecodeError as error:
        strict = error
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None
    try:
        return LooseReader(text[: at + READ_CHARS], at).whole()
    except ValueError:
        near = strict.doc[max(0, strict.pos - 20) :][:40]
        raise ValueError(f"the JSON is not valid, or cut off: {strict.msg} at {near!r}") from None


class LooseReader:
    """Reads one value of a text in one pass. Raises ValueError if it is ambiguous."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._at = at

    @property
    def position(self) -> int:
        """The position up to which the text is read."""
        return self._at

    def whole(self) -> tuple[Any, int]:
        """Reads a value and returns it with its end."""
        value = self.value(0)
        return value, self._at

    def value(self, depth: int = 0) -> Any:
        """Reads the value that begins here and returns it."""
        if depth > _DEPTH:
            raise ValueError("nested too deeply")
        self.skip_blanks()
        sign = self._sign()
        if sign == "{":
            return self._object(depth)
        if sign == "[":
            return self._list(depth)
        if sign in _QUOTES:
            return self._string()
        return self._plain()

    def skip_blanks(self) -> None:
        """Skips white space and comments."""
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at

    def accept(self, sign: str) -> bool:
        """Skips a sign if it is next; returns False otherwise."""
        self.skip_blanks()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def _sign(self) -> str:
        return self._text[self._at : self._at + 1]

    def _object(self, depth: int) -> JsonObject:
        doubled = self._text.startswith("{{", self._at)  # as templates write a brace
        self._at += 2 if doubled else 1
        found: JsonObject = {}
        while not self.accept("}"):
            if self._sign() not in _QUOTES:
                raise ValueError("a name in quotes is due")
            name = self._string()
            if not self.accept(":"):
                raise ValueError("a colon is due")
            found[name] = self.value(depth + 1)
            if self.accept(","):
                continue
            self._close("}")
            break
        if doubled:
            self.accept("}")
        return found

    def _list(self, depth: int) -> list[Any]:
        self._at += 1
        found: list[Any] = []
        while not self.accept("]"):
            found.append(self.value(depth + 1))
            if self.accept(","):
                continue
            self._close("]")
            break
        return found

    def _close(self, bracket: str) -> None:
        """Skips the bracket that ends an object or a list, unless it was lost.

        It was lost if the text ends here, or if the next bracket is of another kind and so ends the
        enclosing value.
        """
        if not self.accept(bracket) and self._sign() not in ("", "}", "]", ")"):
            raise ValueError("a comma or a bracket is due")

    def _string(self) -> str:
        opened = self._sign()
        for tripled in ('"""', "'''"):
            if self._text.startswith(tripled, self._at):
                return self._tripled(tripled)
        closing, written = _QUOTES[opened], list[str]()
        # Within a text a double quote is always written with a backslash, other quotes rarely are.
        may_stand_within = opened != '"'
        self._at += 1
        while sign := self._sign():
            self._at += 1
            if sign == "\\":
                written.append(self._escaped())
            elif sign in closing and (
                not may_stand_within or _AFTER_TEXT.match(self._text, self._at)
            ):
                return _joined("".join(written))
            else:
                written.append(sign)
        raise ValueError("a text is cut")

    def _tripled(self, quotes: str) -> str:
        end = self._text.find(quotes, self._at + 3)
        if end < 0:
            raise ValueError("a text is cut")
        written = self._text[self._at + 3 : end]
        self._at = end + 3
        return written

    def _escaped(self) -> str:
        sign = self._sign()
        self._at += 1
        if not sign:
            raise ValueError("a text is cut")
        if sign != "u":
            return _ESCAPES.get(sign, sign if not sign.isalnum() else f"\\{sign}")
        digits = _FOUR_DIGITS.match(self._text, self._at)
        if digits is None:
            raise ValueError("a text is cut")
        self._at = digits.end()
        return chr(int(digits[0], 16))

    def _plain(self) -> Any:
        for pattern in (_NUMBER, _WORD):
            if match := pattern.match(self._text, self._at):
                self._at = match.end()
                if self._at == len(self._text):
                    raise ValueError("a number or a word may be cut")
                return self._plain_value(match[0])
        raise ValueError("no value begins here")

    def _plain_value(self, written: str) -> Any:
        if written in _WORDS:
            return _WORDS[written]
        if written[0].isalpha():
            raise ValueError("an unknown word")
        if written.lstrip("-").isdigit():
            return int(written)
        return float(written)


def _joined(text: str) -> str:
    """Returns a text with surrogate pairs joined, as JSON escapes characters above U+FFFF."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_schema(value: Any) -> bool:
    """True for the JSON schema of an object, which none of our forms resembles."""
    if not isinstance(value, dict):
        return False
    if any(key in value for key in _SCHEMA_KEYS):
        return True
    return value.get("type") == "object" and isinstance(value.get("properties"), dict)
