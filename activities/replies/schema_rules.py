"""The rules of the user's JSON schema for answers, for `answer_schema`, in a child process.

The provider's client supports a part of JSON Schema. A schema within that part is sent as it is;
for another one the model writes JSON as text. Either way the complete schema is enforced here.
"""

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.text import one_line

Target = Callable[[str], Any]
"""Returns what a reference of a schema means. Raises Unresolvable."""

_PARTS = 2000  # of a schema that is sent, with references resolved: they double it with each line
_PLAIN = ("string", "integer", "number", "boolean", "null")
_BRANCHES = {"anyOf", "oneOf", "allOf"}
_REFERENCES = ("$ref", "$dynamicRef")
_WORDS = {  # keywords that restrict nothing by themselves
    "type", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
}  # fmt: skip
_OBJECT_RULES = {"properties", "required", "additionalProperties"}
_ARRAY_RULES = {"items", "minItems", "maxItems", "uniqueItems"}
_SHOWN = 5  # complaints about one answer


def complaint(schema: JsonObject) -> str | None:
    """Returns the reason why a schema is rejected; None if it is accepted.

    It may be invalid, refer outside itself, or be infinitely recursive.
    """
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = "/".join(str(part) for part in error.absolute_path)
        place = f"at {where}: " if where else ""
        message = one_line(error.message, 300)
        return f"it is not a JSON schema (draft 2020-12): {place}{message}"
    target = _targets(schema)
    for reference in _references(DRAFT202012.create_resource(schema)):
        refers = f"it refers to '{one_line(reference, 200)}'"
        if not reference.startswith("#"):
            return f"{refers}: only references inside the schema are allowed"
        try:
            target(reference)
        except Unresolvable:
            return f"{refers}, which it does not hold"
    try:
        _validator(schema).is_valid(None)
    except RecursionError:
        return "it refers to itself without end"
    return None


def problems(schema: JsonObject, value: Any, name: str = "answer_json") -> list[str]:
    """Returns the faults of the field `name` by `schema`, each as a sentence for its author."""
    try:
        errors = list(islice(_validator(schema).iter_errors(value), _SHOWN))
    except RecursionError:
        return [f"{name} can't be checked: the schema refers to itself without end"]
    return [_sentence(error, name) for error in errors]


def row_problems(
    schema: JsonObject,
    rows: list[Any],
    name: str,
) -> tuple[list[tuple[int, str]], str]:
    """Returns the faults of rows of the list `name` with their indexes, and a fault of the others.

    Without a `name` the value itself is the list.
    """
    misfits: dict[int, str] = {}
    for error in _validator(schema).iter_errors({name: rows} if name else rows):
        path = list(error.absolute_path)[bool(name) :]
        if path:
            misfits.setdefault(int(path[0]), _sentence(error, "answer_json"))
    others = [row for place, row in enumerate(rows) if place not in misfits]
    whole = next(_validator(schema).iter_errors({name: others} if name else others), None)
    return list(misfits.items()), _sentence(whole, "answer_json") if whole else ""


def _sentence(error: ValidationError, name: str) -> str:
    cause = best_match([error]) or error  # of alternatives the one that nearly fits
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in cause.absolute_path)
    return f"{name}{one_line(where, 200)}: {one_line(cause.message, 300)}"


def as_sent(schema: JsonObject) -> JsonObject | None:
    """Returns the schema with its references resolved.

    None if the provider's client would lose some of its structure. Limits such as `minimum` stay:
    the client moves them into descriptions.
    """
    try:
        return _inlined(schema, _targets(schema), (), count())
    except (ValueError, RecursionError, Unresolvable):
        return None


def _inlined(
    part: Any,
    target: Target,
    inside: tuple[str, ...],
    parts: Iterator[int],
) -> JsonObject:
    """Returns a part of a schema with its references resolved.

    `inside` are the references being resolved: one that occurs again is infinite. Raises ValueError
    for unsupported parts.
    """
    if not isinstance(part, dict) or next(parts) >= _PARTS:
        raise ValueError
    reference = part.get("$ref")
    if isinstance(reference, str):
        if reference in inside or part.keys() & {*_BRANCHES, "type", "properties"}:
            raise ValueError
        return _inlined(target(reference), target, (*inside, reference), parts)
    definitions = [name for name in part if name.startswith("$") or name == "definitions"]
    own = {name: value for name, value in part.items() if name not in definitions}

    def inner(one: Any) -> JsonObject:
        return _inlined(one, target, inside, parts)

    kind = own.get("type")
    rules = own.keys() - _WORDS
    if rules and rules <= {"enum", "const"}:
        if any(isinstance(value, dict | list) for value in own.get("enum", [own.get("const")])):
            raise ValueError
        return own
    if isinstance(kind, list):
        return {"anyOf": [inner({**own, "type": name}) for name in kind]}
    if kind is None and rules in ({"anyOf"}, {"oneOf"}):
        branches = own.pop(rules.pop())
        return {"anyOf": [inner(branch) for branch in branches], **own}
    return _typed(own, rules, inner)


def _typed(own: JsonObject, rules: set[str], inner: Callable[[Any], JsonObject]) -> JsonObject:
    kind = own.get("type")
    if kind == "object" and rules <= _OBJECT_RULES:
        named = own.get("properties", {})
        # Without names, or with a rule for others, it takes properties that the client would
        # forbid.
        is_closed = bool(named) or own.get("additionalProperties") is False
        if is_closed and set(own.get("required", [])) <= set(named):
            properties = {name: inner(one) for name, one in named.items()}
            return {**own, "properties": properties, "additionalProperties": False}
    if kind == "array" and "items" in rules and rules <= _ARRAY_RULES:
        return {**own, "items": inner(own["items"])}
    if kind in _PLAIN and not rules & {*_BRANCHES, "enum", "const"}:
        return own
    raise ValueError


def _references(schema: Resource[Any]) -> Iterator[str]:
    """Yields all references in a schema; names and data that look like references are skipped."""
    if isinstance(schema.contents, dict):
        yield from (str(schema.contents[key]) for key in _REFERENCES if key in schema.contents)
    for part in schema.subresources():
        yield from _references(part)


def _targets(schema: JsonObject) -> Target:
    """Returns a function that resolves references.

    Anchors are looked up once, not again for each reference.
    """
    whole = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema))
    resolver = whole.crawl().resolver()
    return lambda reference: resolver.lookup(reference).contents


def _validator(schema: JsonObject) -> Draft202012Validator:
    # A registry of its own: the default one would fetch what it does not know. A date is one: it
    # counts as closed.
    return Draft202012Validator(schema, registry=Registry(), format_checker=FormatChecker(["date"]))
