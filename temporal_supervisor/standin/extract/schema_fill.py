"""Values that fit a JSON schema: the wanted ones where they fit, else its defaults or what a text says."""

import re
from typing import Any

from temporal_supervisor.standin.lookup.word_forms import clip, key_lines, key_stems, shared
from temporal_supervisor.standin.server.api_request import Json

_DEPTH = 12  # a schema may contain itself; one that needs more than this can't be filled
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_YEARS = range(1500, 2200)
_TEXT_CHARS = 300
_ANSWER_FIELD = "value"  # of a form for one answer
_STATED = r"^[\s*_|>-]*{name}[\s*_]*[:=|]\s*(?P<value>\S.*)$"  # a label at the beginning of a line, and its value


class Filler:
    """Fills one schema; `$ref` is looked up in its own root. Required values that were not given come from `text`."""

    def __init__(self, root: Json, text: str = "") -> None:
        self._root = root
        self._text = text

    def fill(self, wanted: Any = None) -> Any:
        """Returns a value for the whole schema, made of `wanted` where the schema has a place for it."""
        return self.fit(self._root, wanted)

    def properties(self, schema: Json | None = None) -> Json:
        """Returns the properties of an object schema, references resolved."""
        properties = self.resolve(schema or self._root).get("properties") or {}
        return {name: self.resolve(part) for name, part in properties.items()}

    def resolve(self, schema: Any) -> Json:
        """Returns the schema behind references; of alternatives the first that is not null."""
        for _ in range(_DEPTH):
            if "$ref" in schema:
                schema = self._root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
            elif branches := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                schema = next((branch for branch in branches if branch.get("type") != "null"), branches[0])
        return dict(schema)

    def fit(self, schema: Json, wanted: Any, name: str = "", depth: int = 0) -> Any:
        """Returns a value for a part of the schema, the property `name`."""
        wanted = schema.get("default") if wanted is None else wanted
        plain = self.resolve(schema)
        kind = _kind(plain)
        wanted = self._stated(name, kind) if wanted is None else wanted
        if wanted is None and _nullable(schema):
            return None
        if "const" in plain:
            return plain["const"]
        if options := plain.get("enum"):
            stated = (one for one in options if re.search(rf"\b{re.escape(str(one))}\b", self._text))
            return wanted if wanted in options else next(stated, options[0])
        if kind == "object":
            return self._object(plain, wanted if isinstance(wanted, dict) else {}, depth)
        if kind == "array":
            items = list(wanted) if isinstance(wanted, list) else []
            items += [None] * (plain.get("minItems", 0) - len(items))
            return [self.fit(plain.get("items", {}), one, name, depth + 1) for one in items[: plain.get("maxItems")]]
        if kind in ("integer", "number"):
            return _bounded(kind, plain, wanted if isinstance(wanted, int | float) else self._figure(name))
        if kind == "boolean":
            return wanted is True
        about = f"{name.replace('_', ' ')} {plain.get('description', '')}"
        text = wanted if isinstance(wanted, str) else clip("".join(key_lines(self._text, about, 1)), _TEXT_CHARS)
        return text[: plain.get("maxLength")].ljust(plain.get("minLength", 0), "-")

    def _object(self, schema: Json, wanted: Json, depth: int) -> Json:
        properties: Json = schema.get("properties") or {}
        required = schema.get("required") or ([] if depth else list(properties))
        return {
            name: self.fit(part, wanted.get(name), name, depth + 1)
            for name, part in properties.items()
            if depth <= _DEPTH and (name in required or wanted.get(name) is not None)
        }

    def _stated(self, name: str, kind: str) -> str | float | None:
        """Returns the value that the text states under a name, as in `Town: Aarau`.

        None if it states nothing that fits.
        """
        if name == _ANSWER_FIELD and (sole := self._sole()):
            number = _NUMBER.fullmatch(sole) if kind in ("integer", "number") else None
            return sole if kind == "string" else number and float(number[0].replace(",", ""))
        words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name)))
        found = re.search(_STATED.format(name=words), self._text, re.IGNORECASE | re.MULTILINE) if name else None
        if found is None:
            return None
        said = clip(found["value"].strip(" *|"), _TEXT_CHARS)
        if kind == "string":
            return said or None
        number = _NUMBER.match(said) if kind in ("integer", "number") else None
        return float(number[0].replace(",", "")) if number else None

    def _sole(self) -> str:
        """Returns the value of an extract of one value, as in `Total amount: 581`."""
        lines = [line for line in self._text.splitlines() if line.strip()]
        bullets = [line for line in lines if line.startswith("- ")]
        lines = bullets or lines
        if len(lines) != 1:
            return ""
        _, _, told = lines[0].partition(": ")
        return told.split(" (")[0].split(" [")[0].strip(" .")

    def _figure(self, name: str) -> float | None:
        """Of the lines that share most words with the name, the largest of their last numbers that are no years."""
        lines = [line for line in self._text.splitlines() if _NUMBER.search(line)]
        best = max(((len(shared(key_stems(name), line)), _last(line)) for line in lines), default=(0, None))
        return best[1]


def _last(line: str) -> float:
    """Returns the last number of a line that is no year."""
    numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(line)]
    return ([one for one in numbers if one not in _YEARS] or numbers)[-1]


def _bounded(kind: str, schema: Json, value: float | None) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -float("inf")) + 1)
    figure = min(max(max(low, 1) if value is None else value, low), schema.get("maximum", float("inf")))
    return int(figure) if kind == "integer" else figure


def _nullable(schema: Json) -> bool:
    kind = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf") or []
    return kind == "null" or (isinstance(kind, list) and "null" in kind) or any(map(_nullable, branches))


def _kind(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if kind:
        return str(kind)
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"
