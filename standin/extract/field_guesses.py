"""Values for the fields of a schema that the stand-in does not know, from the prompt's findings or texts."""

import json
import re
from typing import Any

from standin.extract import prompt_parts
from standin.extract.findings_text import key_lines, strip
from standin.extract.schema_fill import Filler
from standin.extract.text.words import clip, key_stems, shared
from standin.server.api_request import ApiRequest, Json
from supervision import prompt_marks as marks

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_YEARS = range(1500, 2200)
_ITEMS = 3
_TEXT_CHARS = 300


def structured_answer(request: ApiRequest, schema: Json) -> Any:
    """Returns a value for `schema`, or JSON text where the schema asks for that."""
    _, as_text, described = str(schema.get("description", "")).partition(marks.JSON_AS_TEXT)
    wanted = json.JSONDecoder().raw_decode(described)[0] if as_text else schema
    value = Filler(wanted, FieldGuesses(request)).fill(None)
    return json.dumps(value, ensure_ascii=False) if as_text else value


class FieldGuesses:
    """Figures and sentences by the name and description of a field."""

    def __init__(self, request: ApiRequest) -> None:
        texts = [finding.text for finding in prompt_parts.findings(request.prompt)]
        draft = prompt_parts.block(request.prompt, marks.DRAFT)
        self._text = "\n\n".join(map(strip, [*([draft] if draft else []), *texts])) or request.user_text
        self._goal = prompt_parts.block(request.prompt, marks.GOAL) or ""

    def __call__(self, name: str, schema: Json) -> Any:
        """Returns a value, or None for no idea."""
        about = f"{name.replace('_', ' ')} {schema.get('description', '')}"
        options = schema.get("enum")
        if options:
            return next((o for o in options if re.search(rf"\b{re.escape(str(o))}\b", self._text)), None)
        kind = schema.get("type")
        if kind in ("integer", "number"):
            return self._figure(about)
        if kind == "array":
            plain = (schema.get("items") or {}).get("type") == "string"
            lines = key_lines(self._text, f"{about} {self._goal}", _ITEMS) if plain else []
            return [clip(line, _TEXT_CHARS) for line in lines] or [None]
        return self._sentence(about) if kind == "string" else None

    def _figure(self, about: str) -> float | None:
        """Of the line that shares most words with the name, the last number that is no year."""
        wanted = key_stems(about)
        lines = [line for line in self._text.splitlines() if _NUMBER.search(line)]
        best = max(lines, key=lambda line: len(shared(wanted, line)), default="")
        numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(best)]
        plain = [number for number in numbers if number not in _YEARS] or numbers
        return plain[-1] if plain else None

    def _sentence(self, about: str) -> str:
        lines = key_lines(self._text, about, 1) or key_lines(self._text, self._goal, 1) or [self._text]
        return clip(lines[0], _TEXT_CHARS)
