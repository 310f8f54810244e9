"""Values that fit a JSON schema: the wanted ones where they fit, the least that is valid elsewhere."""

from collections.abc import Callable
from typing import Any

from standin.server.api_request import Json

Guess = Callable[[str, Json], Any]
"""(property name, its schema) -> a value, or None for no idea."""

_DEPTH = 12  # a schema may contain itself; one that needs more than this can't be filled
_GUESSED_DEPTH = 4  # below it, lists stay empty
_FORMATS = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "email": "nobody@example.com",
    "uri": "https://example.com/",
}


class Filler:
    """Fills one schema; `$ref` is looked up in its own root."""

    def __init__(self, root: Json, guess: Guess) -> None:
        self._root = root
        self._guess = guess

    def fill(self, wanted: Any) -> Any:
        """Returns a value for the whole schema, made of `wanted` where the schema has a place for it."""
        return self._fit(self._root, wanted, "", 0)

    def fit(self, part: Json, wanted: Any) -> Any:
        """Returns a value for a part of the schema."""
        return self._fit(part, wanted, "", 1)

    def properties(self, schema: Json | None = None) -> Json:
        """Returns the properties of an object schema, references resolved."""
        properties = self.resolve(schema or self._root).get("properties") or {}
        return {name: self.resolve(part) for name, part in properties.items()}

    def resolve(self, schema: Any) -> Json:
        """Returns the schema behind references; of alternatives the first that is not null."""
        for _ in range(_DEPTH):
            if not isinstance(schema, dict):
                return {}
            if "$ref" in schema:
                schema = self._target(schema["$ref"])
            elif branches := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
                schema = next((branch for branch in branches if branch.get("type") != "null"), branches[0])
            else:
                return schema
        return schema if isinstance(schema, dict) else {}

    def _target(self, reference: str) -> Any:
        node: Any = self._root
        for part in filter(None, reference.lstrip("#/").split("/")):
            node = node.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(node, dict) else {}
        return node

    def _fit(self, schema: Any, wanted: Any, name: str, depth: int) -> Any:
        if wanted is None and _nullable(schema):
            return None
        plain = self.resolve(schema)
        if options := plain.get("enum") or ([plain["const"]] if "const" in plain else None):
            return next((v for v in (wanted, self._guess(name, plain)) if v in options), options[0])
        kind = _kind(plain)
        if kind == "object":
            return self._object(plain, wanted if isinstance(wanted, dict) else {}, depth)
        if wanted is None and (kind != "array" or depth <= _GUESSED_DEPTH):
            wanted = self._guess(name, plain)
        if kind == "array":
            return self._array(plain, wanted, name, depth)
        return _scalar(kind, plain, wanted)

    def _object(self, schema: Json, wanted: Json, depth: int) -> Json:
        properties: Json = schema.get("properties") or {}
        required = schema.get("required") or ([] if depth else list(properties))
        return {
            name: self._fit(part, wanted.get(name), name, depth + 1)
            for name, part in properties.items()
            if depth <= _DEPTH and (name in required or wanted.get(name) is not None)
        }

    def _array(self, schema: Json, wanted: Any, name: str, depth: int) -> list[Any]:
        items = list(wanted) if isinstance(wanted, list | tuple) else []
        items += [None] * (schema.get("minItems", 0) - len(items))
        most = schema.get("maxItems", len(items))
        return [self._fit(schema.get("items", {}), item, name, depth + 1) for item in items[:most]]


def _scalar(kind: str, schema: Json, value: Any) -> Any:
    if kind == "boolean":
        return value if isinstance(value, bool) else True
    if kind == "null":
        return None
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -float("inf")) + 1)
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        figure = min(max(value if usable else max(low, 1), low), schema.get("maximum", float("inf")))
        return int(figure) if kind == "integer" else figure
    text = _FORMATS.get(schema.get("format", "")) or (value if isinstance(value, str) else "")
    return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), "-")


def _nullable(schema: Any) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else ""
    branches = (schema.get("anyOf") or schema.get("oneOf") or []) if isinstance(schema, dict) else []
    return kind == "null" or (isinstance(kind, list) and "null" in kind) or any(map(_nullable, branches))


def _kind(schema: Json) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return str(kind or ("object" if "properties" in schema else "array" if "items" in schema else "string"))
