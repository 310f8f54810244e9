"""Values for a JSON schema: wanted ones that fit, else defaults, else values from a text."""

import re
from typing import Any

from temporal_supervisor.standin.lookup.word_forms import clip, key_lines, key_stems, shared_stems
from temporal_supervisor.supervision.base.json_object import JsonObject

_DEPTH = 12  # a schema may contain itself; one that needs more than this can't be filled
# "1,234", "-0.5"; not "v1", "12m".
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
_YEARS = range(1500, 2200)
_TEXT_CHARS = 300
_ANSWER_FIELD = "value"  # of a form for one answer
# Lines that tell a result, as `results_in_words` writes them.
_COUNTED = re.compile(r"Count: (?P<value>[\d,]+) ")
_BEST = "(?:Highest|Lowest|Latest|Earliest|Most|Fewest)"
# "Highest wins: Bob (12 wins)".
_EXTREME = re.compile(rf"{_BEST} [^:]{{1,99}}: [^(]{{1,99}}\((?P<rows>[^()]{{1,2000}})\)")
_NAME_OF, _VALUE_OF = "(?P<name>[^(;]{1,99}?)", r"(?P<value>[\d.,-]{1,40})"
# "Most wins: Bob, 12;".
_RANKED = re.compile(rf"{_BEST} [^:]{{1,99}}: {_NAME_OF}, {_VALUE_OF}(?=[.;])")
# A label at the beginning of a line, and its value.
_STATED = r"^[\s*_|>-]*{name}[\s*_]*[:=|]\s*(?P<value>\S.*)$"


class Filler:
    """Fills one schema, in whose root `$ref` is looked up.

    Missing required values come from `text`.
    """

    def __init__(self, root: JsonObject, text: str = "") -> None:
        self._root = root
        self._text = text

    def fill(self, wanted: Any = None) -> Any:
        """Returns a value for the whole schema, with the fitting parts of `wanted`."""
        return self.fit(self._root, wanted)

    def properties(self, schema: JsonObject | None = None) -> JsonObject:
        """Returns the properties of an object schema, references resolved."""
        properties = self.resolve(schema or self._root).get("properties") or {}
        return {name: self.resolve(part) for name, part in properties.items()}

    def resolve(self, schema: Any) -> JsonObject:
        """Returns the schema behind references; of alternatives the first that is not null."""
        for _ in range(_DEPTH):
            if "$ref" in schema:
                name = schema["$ref"].rpartition("/")[2]
                schema = self._root.get("$defs", {}).get(name, {})
                continue
            branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
            if not branches:
                break
            whole = [branch for branch in branches if branch.get("type") != "null"]
            schema = whole[0] if whole else branches[0]
        return dict(schema)

    def fit(self, schema: JsonObject, wanted: Any, name: str = "", depth: int = 0) -> Any:
        """Returns a value for a part of the schema, for the property `name`."""
        plain = self.resolve(schema)
        kind = _kind(plain)
        if wanted is None:
            wanted = schema.get("default")
        if wanted is None:
            wanted = self._stated(name, kind)
        if wanted is None and _nullable(schema):
            return None
        if "const" in plain:
            return plain["const"]
        if plain.get("enum"):
            return wanted if wanted in plain["enum"] else self._named_option(plain["enum"])
        if kind == "object":
            return self._object(plain, wanted if isinstance(wanted, dict) else {}, depth)
        if kind == "array":
            given = wanted if isinstance(wanted, list) else []
            return self._array(plain, given, name, depth)
        if kind in ("integer", "number"):
            figure = wanted if isinstance(wanted, int | float) else self._figure(name)
            return _bounded(kind, plain, figure)
        if kind == "boolean":
            return wanted is True
        text = wanted if isinstance(wanted, str) else self._line_about(plain, name)
        return text[: plain.get("maxLength")].ljust(plain.get("minLength", 0), "-")

    def _named_option(self, options: list[Any]) -> Any:
        """Returns the first option that the text names, or the first of all."""
        for option in options:
            if re.search(rf"\b{re.escape(str(option))}\b", self._text):
                return option
        return options[0]

    def _array(self, schema: JsonObject, wanted: list[Any], name: str, depth: int) -> list[Any]:
        missing = schema.get("minItems", 0) - len(wanted)
        items = [*wanted, *[None] * missing][: schema.get("maxItems")]
        return [self.fit(schema.get("items", {}), item, name, depth + 1) for item in items]

    def _line_about(self, schema: JsonObject, name: str) -> str:
        """Returns the line of the text that fits a property best."""
        about = f"{name.replace('_', ' ')} {schema.get('description', '')}"
        return clip("".join(key_lines(self._text, about, 1)), _TEXT_CHARS)

    def _object(self, schema: JsonObject, wanted: JsonObject, depth: int) -> JsonObject:
        if depth > _DEPTH:
            return {}
        properties: JsonObject = schema.get("properties") or {}
        required = schema.get("required") or ([] if depth else list(properties))
        filled: JsonObject = {}
        for name, part in properties.items():
            given = wanted.get(name)
            if name in required or given is not None:
                filled[name] = self.fit(part, given, name, depth + 1)
        return filled

    def _stated(self, name: str, kind: str) -> str | float | None:
        """Returns the value after a name in the text: `Aarau` in `Town: Aarau`.

        None if there is no fitting value.
        """
        if not name:
            return None
        sole = self._sole(kind) if name == _ANSWER_FIELD else ""
        said = sole or self._labelled(name)
        if kind == "string":
            return said or None
        if kind not in ("integer", "number"):
            return None
        number = _NUMBER.fullmatch(said) if sole else _NUMBER.match(said)
        return float(number[0].replace(",", "")) if number else None

    def _labelled(self, name: str) -> str:
        """Returns the text after a label with that name at the beginning of a line."""
        words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", name)))
        label = re.compile(_STATED.format(name=words), re.IGNORECASE | re.MULTILINE)
        found = label.search(self._text)
        return clip(found["value"].strip(" *|"), _TEXT_CHARS) if found else ""

    def _sole(self, kind: str) -> str:
        """Returns the value of an extract of one value, as in `Total amount: 581`.

        Of `Highest wages: 900 (Name: Ann, Town: Aarau)` it is the name where a text is wanted.
        """
        lines = [line for line in self._text.splitlines() if line.strip()]
        bullets = [line for line in lines if line.startswith("- ")]
        lines = bullets or lines
        if len(lines) != 1:
            return ""
        if counted := _COUNTED.search(lines[0]):
            return counted["value"]
        if ranked := _RANKED.search(lines[0]):
            return ranked["name" if kind == "string" else "value"]
        if kind == "string" and (extreme := _EXTREME.search(lines[0])):
            return _first_names(extreme["rows"])

        _, _, told = lines[0].partition(": ")
        return told.split(" (")[0].split(" [")[0].strip(" .")

    def _figure(self, name: str) -> float | None:
        """Returns the figure in the lines that share most words with the name.

        It is the largest of their last numbers, without years.
        """
        stems = key_stems(name)
        figures: list[tuple[int, float]] = []
        for line in self._text.splitlines():
            if _NUMBER.search(line):
                figures.append((len(shared_stems(stems, line)), _last(line)))
        return max(figures)[1] if figures else None


def _first_names(rows: str) -> str:
    """Returns the first value of each row: `Ann and Ben` for `Name: Ann, Age: 9; Name: Ben`."""
    firsts = [row.partition(", ")[0] for row in rows.split("; ")]
    return " and ".join(first.partition(": ")[2] for first in firsts)


def _last(line: str) -> float:
    """Returns the last number of a line, without years."""
    numbers = [float(number.replace(",", "")) for number in _NUMBER.findall(line)]
    others = [number for number in numbers if number not in _YEARS]
    return (others or numbers)[-1]


def _bounded(kind: str, schema: JsonObject, value: float | None) -> float:
    """Returns a number within a schema's bounds; without a value a small positive one."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", -float("inf")) + 1)
    high = schema.get("maximum", float("inf"))
    if value is None:
        value = max(low, 1)
    figure = min(max(value, low), high)
    return int(figure) if kind == "integer" else figure


def _nullable(schema: JsonObject) -> bool:
    """True if a schema allows null."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    branches = schema.get("anyOf") or schema.get("oneOf") or []
    return "null" in kinds or any(map(_nullable, branches))


def _kind(schema: JsonObject) -> str:
    """Returns the type in a schema; of several the first that is not null."""
    kind = schema.get("type")
    if isinstance(kind, list):
        others = [one for one in kind if one != "null"]
        kind = others[0] if others else "null"
    if kind:
        return str(kind)
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"
