"""Values that fit a JSON schema: what was wanted where it fits, the least that is valid elsewhere."""

import re
from collections.abc import Callable
from typing import Any

from standin.request import Json

Guess = Callable[[str, Json], Any]
"""(property name, its schema) -> a value, or None for no idea."""

_DEPTH = 12  # a schema may contain itself; whatever needs more than this can't be filled
_FORMATS = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "nobody@example.com",
    "uri": "https://example.com/",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


class Filler:
    """Fills one schema; `$ref` is looked up in its own root."""

    def __init__(self, root: Json, guess: Guess) -> None:
        self._root = root
        self._guess = guess

    def fill(self, wanted: Any) -> Any:
        """A value for the whole schema, made of `wanted` where the schema has a place for it."""
        return self._fit(self._root, wanted, "", 0)

    def fit(self, part: Json, wanted: Any) -> Any:
        """A value for a part of the schema."""
        return self._fit(part, wanted, "", 1)

    def properties(self, schema: Json | None = None) -> Json:
        """The properties of an object schema, references resolved."""
        return {
            name: self.resolve(sub)
            for name, sub in (self.resolve(schema or self._root).get("properties") or {}).items()
        }

    def resolve(self, schema: Any) -> Json:
        """The schema behind references and single-branch `allOf`; of alternatives the first that is not null."""
        for _ in range(_DEPTH):
            if not isinstance(schema, dict):
                return {}
            if "$ref" in schema:
                schema = self._target(schema["$ref"])
            elif branches := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                schema = next((b for b in branches if b.get("type") != "null"), branches[0])
            else:
                return schema
        return schema if isinstance(schema, dict) else {}

    def _target(self, reference: str) -> Any:
        node: Any = self._root
        for part in reference.lstrip("#/").split("/") if reference != "#" else []:
            node = node.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, dict) else {}
        return node

    def _fit(self, schema: Any, wanted: Any, name: str, depth: int) -> Any:
        if wanted is None and _nullable(schema):
            return None
        plain = self.resolve(schema)
        if "const" in plain:
            return plain["const"]
        if "enum" in plain:
            return self._one_of(plain, wanted, name)
        kind = _kind(plain)
        if kind == "object":
            return self._object(plain, wanted if isinstance(wanted, dict) else {}, depth)
        if kind == "array":
            return self._array(plain, wanted, name, depth)
        return self._scalar(kind, plain, wanted, name)

    def _one_of(self, schema: Json, wanted: Any, name: str) -> Any:
        options = schema["enum"]
        for value in (wanted, self._guess(name, schema)):
            if value in options:
                return value
        return options[0]

    def _object(self, schema: Json, wanted: Json, depth: int) -> Json:
        properties: Json = schema.get("properties") or {}
        required = schema.get("required") or ([] if depth else list(properties))
        if depth > _DEPTH:
            return {}
        return {
            name: self._fit(sub, wanted.get(name), name, depth + 1)
            for name, sub in properties.items()
            if name in required or wanted.get(name) is not None
        }

    def _array(self, schema: Json, wanted: Any, name: str, depth: int) -> list[Any]:
        items = schema.get("items", {})
        wanted = self._guess(name, schema) if wanted is None else wanted
        chosen = list(wanted) if isinstance(wanted, list | tuple) else []
        chosen += [None] * (limit_hint(schema, "minItems", 0) - len(chosen))
        return [self._fit(items, one, name, depth + 1) for one in chosen[: limit_hint(schema, "maxItems", len(chosen))]]

    def _scalar(self, kind: str, schema: Json, wanted: Any, name: str) -> Any:
        value = wanted if wanted is not None else self._guess(name, schema)
        if kind == "boolean":
            return value if isinstance(value, bool) else True
        if kind in ("integer", "number"):
            return self._number(kind, schema, value)
        if kind == "null":
            return None
        text = value if isinstance(value, str) else _FORMATS.get(schema.get("format", ""), "")
        text = _FORMATS.get(schema.get("format", ""), text) if wanted is None else text
        return text[: limit_hint(schema, "maxLength", len(text))].ljust(limit_hint(schema, "minLength", 0), "-")

    @staticmethod
    def _number(kind: str, schema: Json, value: Any) -> int | float:
        low = limit_hint(schema, "minimum", limit_hint(schema, "exclusiveMinimum", -1) + 1 or None)
        high = limit_hint(schema, "maximum", None)
        number = (
            value if isinstance(value, int | float) and not isinstance(value, bool) else (low if low is not None else 1)
        )
        number = max(number, low) if low is not None else number
        number = min(number, high) if high is not None else number
        return int(number) if kind == "integer" else number


def limit_hint(schema: Json, name: str, default: Any) -> Any:
    """A limit of the schema, or the one that the client's SDK moved into the description as `name: value`."""
    if name in schema:
        return schema[name]
    found = re.search(rf"\b{name}['\"]?\s*[:=]\s*(-?\d+(?:\.\d+)?)", str(schema.get("description", "")))
    if found is None:
        return default
    return float(found.group(1)) if "." in found.group(1) else int(found.group(1))


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    branches = schema.get("anyOf") or schema.get("oneOf") or []
    return kind == "null" or (isinstance(kind, list) and "null" in kind) or any(_nullable(b) for b in branches)


def _kind(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return str(kind or ("object" if "properties" in schema else "array" if "items" in schema else "string"))
