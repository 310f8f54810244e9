"""The rules of the user's JSON schema for answers, as `answer_schema` runs them in a child process.

Providers accept a part of JSON Schema only. A schema within that part is sent as it is; another one asks for JSON text
instead. Either way the whole schema is enforced here.
"""

from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry

from supervision import limits
from supervision.text import one_line

Json = dict[str, Any]

_PLAIN = ("string", "integer", "number", "boolean", "null")
_BRANCHES = ("anyOf", "oneOf")
_REFERENCES = ("$ref", "$dynamicRef")
_NAMES_ONLY = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DATA = ("enum", "const", "default", "examples")
_COMMENTS = {"type", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
_OBJECT_WORDS = {*_COMMENTS, "properties", "required", "additionalProperties", "unevaluatedProperties"}
_ARRAY_WORDS = {*_COMMENTS, "items", "minItems", "maxItems", "uniqueItems"}
_SHOWN = 5  # complaints about one answer


class _Beyond(Exception):
    """A part of a schema that providers do not take."""


def complaint(schema: Json) -> str | None:
    """Returns why the schema is refused: none, too large with references resolved, or referring outside itself."""
    if _unfolded(schema, schema, {}) > limits.ANSWER_SCHEMA_PARTS:
        return f"it has more than {limits.ANSWER_SCHEMA_PARTS} parts with its references resolved"
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path)
        message = one_line(error.message, 300)
        return f"it is no JSON schema (draft 2020-12): {f'at {where}: ' if where else ''}{message}"
    for reference in _references(schema):
        if not reference.startswith("#"):
            return f"it refers to '{one_line(reference, 200)}': only references inside the schema are allowed"
        try:
            _target(schema, reference)
        except _Beyond:
            return f"it refers to '{one_line(reference, 200)}', which it does not hold"
    try:
        _validator(schema).is_valid(None)
    except RecursionError:
        return "it refers to itself without end"
    return None


def problems(schema: Json, value: Any) -> list[str]:
    """Returns what keeps `value` from fitting `schema`, each in one sentence that its author can act on."""
    try:
        errors = list(islice(_validator(schema).iter_errors(value), _SHOWN))
    except RecursionError:
        return ["answer_json can't be checked: the schema refers to itself without end"]
    sentences = []
    for error in errors:
        cause = best_match([error]) or error  # of alternatives the one that nearly fits
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in cause.absolute_path)
        sentences.append(f"answer_json{one_line(where, 200)}: {one_line(cause.message, 300)}")
    return sentences


def as_taken(schema: Json) -> Json | None:
    """Returns the schema in the part that providers take, references resolved; None when it is beyond that part."""
    if _unfolded(schema, schema, {}) > limits.ANSWER_SCHEMA_PARTS:
        return None
    try:
        return _reduced(schema, schema, ())
    except _Beyond:
        return None


def _unfolded(part: Any, root: Json, known: dict[str, int]) -> int:
    """Returns how many objects and lists there are with references resolved, those inside themselves once.

    Each reference is counted once and then `known`, so that counting is fast where unfolding is not.
    """
    if not isinstance(part, dict | list):
        return 0
    total = 1 + sum(_unfolded(inner, root, known) for inner in (part.values() if isinstance(part, dict) else part))
    for reference in (part.get(name) for name in _REFERENCES) if isinstance(part, dict) else ():
        if isinstance(reference, str):
            if reference not in known:
                known[reference] = 0  # while it is being counted: a reference to itself adds nothing
                known[reference] = _unfolded(_held(root, reference), root, known)
            total += known[reference]
    return total


def _held(root: Json, reference: str) -> Any:
    try:
        return _target(root, reference)
    except _Beyond:  # data may look like a reference
        return None


def _reduced(schema: Any, root: Json, inside: tuple[str, ...]) -> Json:
    """`inside` are the references being resolved: one that comes again has no end."""
    if not isinstance(schema, dict):
        raise _Beyond
    if "$ref" in schema:
        if schema["$ref"] in inside or set(schema) & {*_BRANCHES, "allOf", "type", "properties"}:
            raise _Beyond
        return _reduced(_target(root, schema["$ref"]), root, (*inside, schema["$ref"]))
    rest = {key: value for key, value in schema.items() if not key.startswith("$") and key != "definitions"}
    if "const" in rest or "enum" in rest:
        values = rest.get("enum", [rest.get("const")])
        if not all(value is None or isinstance(value, str | int | float | bool) for value in values):
            raise _Beyond
        return {key: value for key, value in rest.items() if key in ("const", "enum", "title", "description")}
    if branch := next((name for name in _BRANCHES if name in rest), None):
        if set(rest) - {branch, *_COMMENTS - {"type"}}:
            raise _Beyond  # siblings of alternatives narrow each of them
        return {"anyOf": [_reduced(one, root, inside) for one in rest[branch]], **_words(rest)}
    if isinstance(kinds := rest.get("type"), list):
        return {"anyOf": [_reduced({**rest, "type": kind}, root, inside) for kind in kinds]}
    return _typed(rest, root, inside)


def _typed(schema: Json, root: Json, inside: tuple[str, ...]) -> Json:
    """Returns a schema of one type. Limits stay: the provider's client moves them into descriptions."""
    kind = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
    if kind == "object":
        named = schema.get("properties", {})
        free = schema.get("additionalProperties") is not False and not named
        if free or set(schema) - _OBJECT_WORDS or set(schema.get("required", [])) - set(named):
            raise _Beyond  # names that nobody knows beforehand, or rules across properties
        parts = {name: _reduced(part, root, inside) for name, part in named.items()}
        bounds = {key: schema[key] for key in ("required",) if key in schema}
        return {"type": "object", "properties": parts, **bounds, "additionalProperties": False, **_words(schema)}
    if kind == "array":
        if "items" not in schema or set(schema) - _ARRAY_WORDS:
            raise _Beyond
        bounds = {key: schema[key] for key in ("minItems", "maxItems", "uniqueItems") if key in schema}
        return {"type": "array", "items": _reduced(schema["items"], root, inside), **bounds, **_words(schema)}
    if kind not in _PLAIN or "allOf" in schema:
        raise _Beyond
    return {**schema, "type": kind}


def _words(schema: Json) -> Json:
    return {key: schema[key] for key in ("title", "description") if key in schema}


def _references(schema: Any, data: bool = False) -> list[str]:
    """Returns all references of a schema; property names and data may look like one and are none."""
    if isinstance(schema, list):
        return [reference for part in schema for reference in _references(part)]
    if not isinstance(schema, dict):
        return []
    references = [] if data else [str(schema[key]) for key in _REFERENCES if key in schema]
    for key, part in schema.items():
        if data or key not in _DATA:
            references += _references(part, data=not data and key in _NAMES_ONLY)
    return references


def _target(root: Json, reference: str) -> Any:
    node: Any = root
    if reference != "#" and not reference.startswith("#/"):
        raise _Beyond
    for part in reference[2:].split("/") if reference != "#" else []:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            raise _Beyond
        node = node[name]
    return node


def _validator(schema: Json) -> Draft202012Validator:
    # A registry of its own: the default one would fetch what it does not know.
    return Draft202012Validator(schema, registry=Registry())
