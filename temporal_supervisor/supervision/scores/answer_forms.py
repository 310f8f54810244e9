"""The form of an answer: a JSON schema made from the kind of the true answer."""

from typing import Any

from temporal_supervisor.supervision.scores.question_sets import Truth

Schema = dict[str, Any]

_OR_NULL = "null if the files do not answer the question."
_NUMBER = f"The answer as one number, alone, with its sign; {_OR_NULL}"
_SCALE = (
    "What the number is counted in: percent for 26.8 %, million for 12.6 million, as the question "
    "or the files have it; empty if the number is written in full."
)
_TEXT = f"The answer alone, as short as it can be: a name, a date, a word; no sentence. {_OR_NULL}"
_LIST = "Each part of the answer by itself, short; empty if the files do not answer the question."
_FIELD = "Each value that the files name, as short as it can be; empty if they name none."


def answer_form(truth: Truth) -> Schema | None:
    """Returns the schema of the answer; None for kinds that are judged by text or role."""
    match truth.kind:
        case "number":
            scales = ["", "percent", "thousand", "million", "billion"]
            scale = {"type": "string", "enum": scales, "description": _SCALE}
            return _object({"value": _nullable("number", _NUMBER), "scale": scale})
        case "numbers":
            return _object({name: _nullable("number", _NUMBER) for name in _names(truth)})
        case "text" | "none":
            return _object({"value": _nullable("string", _TEXT)})
        case "list":
            return _object({"values": _list_of({"type": "string"}, _LIST)})
        case "rows" if isinstance(truth.value, dict):
            return _object({name: _list_of({"type": "string"}, _FIELD) for name in _names(truth)})
        case "rows":
            row = _object({name: {"type": "string"} for name in _names(truth)})
            return _object({"rows": _list_of(row, "A row for each thing that is asked for.")})
        case _:
            return None


def _names(truth: Truth) -> list[str]:
    """Returns the names of the fields in order."""
    if isinstance(truth.value, dict):
        return list(truth.value)
    rows = truth.value if isinstance(truth.value, list) else []
    return list(dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row))


def _object(properties: Schema) -> Schema:
    required = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _nullable(kind: str, description: str) -> Schema:
    return {"anyOf": [{"type": kind}, {"type": "null"}], "description": description}


def _list_of(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}
