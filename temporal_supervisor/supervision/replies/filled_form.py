"""A JSON schema written as the object that it describes, filled in with placeholders.

Small models copy a schema that they are shown, or fill in its keywords, but they follow a form. A
placeholder is in angle brackets, so that code (`is_placeholder`) and readers of a trace can tell it
from data.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_DEPTH = 8  # of a form: a schema that refers to itself ends here
_WORDS_CHARS = 600  # of the description of a field: more is a rule, which belongs into the prompt
_PLACEHOLDER = re.compile(r"\s*<[^<>]{1,600}>\s*")

# A schema with other rules, such as patterns and bounds, says more than a form can.
_SHOWN = {
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "items",
}
_SHOWN |= {"properties", "required", "title", "type"}

Schema = Mapping[str, Any]


def is_placeholder(text: str) -> bool:
    """True if a text is nothing but a placeholder of a form."""
    return _PLACEHOLDER.fullmatch(text) is not None


def filled_form(schema: Schema) -> str | None:
    """Returns the form on one line; None for a schema that it cannot show.

    `{"total": <number>}` is an example: the form is JSON, except that placeholders for numbers and
    choices have no quotes.
    """
    try:
        return _form_of(schema, schema, "", _DEPTH)
    except (LookupError, TypeError, ValueError, AttributeError):  # of a foreign schema
        return None


def _form_of(part: Schema, root: Schema, said: str, depth: int) -> str:
    """Returns the form of `part` of the schema `root`; `said` is its field's description."""
    if depth == 0:
        raise ValueError("the schema is nested too deeply")
    if others := part.keys() - _SHOWN:
        raise ValueError(f"no form can show {others}")
    said = str(part.get("description") or said)
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        return _form_of(root["$defs"][name], root, said, depth - 1)
    if choices := part.get("anyOf"):
        return _form_of_first(choices, root, said, depth)
    if "const" in part:
        return json.dumps(part["const"], ensure_ascii=False)
    if "enum" in part:
        return json.dumps(" or ".join(map(str, part["enum"])), ensure_ascii=False)
    return _of_kind(part, root, said, depth)


def _form_of_first(choices: list[Schema], root: Schema, said: str, depth: int) -> str:
    """Returns the form of the first choice that is not null, and names null next to it."""
    kinds = [choice for choice in choices if choice.get("type") != "null"]
    words = f"{said} (or null)" if said and len(kinds) < len(choices) else said
    return _form_of(kinds[0], root, words, depth - 1)


def _of_kind(part: Schema, root: Schema, said: str, depth: int) -> str:
    kind = part["type"]
    if kind == "object":
        fields = part.get("properties", {}).items()
        inner = [
            f"{json.dumps(name)}: {_form_of(field, root, '', depth - 1)}" for name, field in fields
        ]
        return f"{{{', '.join(inner)}}}"
    if kind == "array":
        items = part.get("items")
        return f"[{_form_of(items, root, said, depth - 1)}]" if items else "[]"
    if kind == "boolean":
        return "<true or false>"
    if kind in ("number", "integer"):
        return _placeholder(said or "number")
    if kind == "string":
        return json.dumps(_placeholder(said or "text"), ensure_ascii=False)
    raise ValueError(f"a schema of the type {kind!r} has no form")


def _placeholder(words: str) -> str:
    line = " ".join(words.split()).replace("<", "(").replace(">", ")")
    return f"<{line[:_WORDS_CHARS].rstrip(' .')}>"
