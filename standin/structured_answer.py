"""A structured answer: the user's schema filled from the findings' own figures and sentences."""

import json
import re
from typing import Any

from standin import prompt
from standin.compose import key_lines, strip
from standin.guess import Guesses
from standin.request import Json, Request
from standin.schema_fill import Filler
from standin.words import clip, key_stems, overlap

_AS_TEXT = re.compile(r"JSON text that fits this JSON schema: (\{.*\})", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_YEARS = range(1500, 2200)
_ITEMS = 3
_TEXT_CHARS = 300


def structured_answer(request: Request, schema: Json) -> Any:
    """A value for `schema`, or JSON text where the schema asks for that."""
    as_text = _AS_TEXT.search(str(schema.get("description", "")))
    wanted = json.JSONDecoder().raw_decode(as_text.group(1))[0] if as_text else schema
    value = Filler(wanted, _FromFindings(request)).fill(None)
    return json.dumps(value, ensure_ascii=False) if as_text else value


class _FromFindings:
    """Figures and sentences of the findings, by the name and description of what is wanted."""

    def __init__(self, request: Request) -> None:
        shown = [prompt.block(request.prompt, "draft") or "", *(f.text for f in prompt.findings(request.prompt))]
        self._text = "\n\n".join(strip(text) for text in shown)
        self._goal = prompt.block(request.prompt, "goal") or ""
        self._guess = Guesses(request, lambda: "")

    def __call__(self, name: str, schema: Json) -> Any:
        about = f"{name.replace('_', ' ')} {schema.get('description', '')}"
        kind = schema.get("type")
        if "enum" in schema:
            said = [
                one
                for one in schema["enum"]
                if isinstance(one, str) and re.search(rf"\b{re.escape(one)}\b", self._text)
            ]
            return said[0] if said else self._guess(name, schema)
        if kind in ("integer", "number"):
            return self._figure(about, str(kind))
        if kind == "array":
            return self._items(about, schema.get("items") or {})
        return self._sentence(about) if kind == "string" else self._guess(name, schema)

    def _figure(self, about: str, kind: str) -> float | int | None:
        """Of the line that shares most words with the name, the last number that is no year."""
        wanted = key_stems(about)
        lines = [line for line in self._text.splitlines() if _NUMBER.search(line)]
        best = max(lines, key=lambda line: overlap(wanted, line), default="")
        numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(best)]
        plain = [number for number in numbers if number not in _YEARS] or numbers
        return None if not plain else int(plain[-1]) if kind == "integer" else plain[-1]

    def _sentence(self, about: str) -> str:
        lines = key_lines(self._text, about, 1) or key_lines(self._text, self._goal, 1) or [self._text]
        return clip(lines[0], _TEXT_CHARS)

    def _items(self, about: str, items: Json) -> list[Any]:
        if items.get("type") == "string" and "enum" not in items:
            return [clip(line, _TEXT_CHARS) for line in key_lines(self._text, f"{about} {self._goal}", _ITEMS)]
        return [None]  # one of whatever it is
