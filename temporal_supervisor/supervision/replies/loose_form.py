"""Reading of a form that a model has filled in, with slight faults corrected.

A fault is corrected if only one thing can be meant. Where no API constrains the reply, models write
null into optional fields, a single text for a list, and `"95%"` for 0.95. Each would cost a call,
or the work that the form contains.
"""

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError

from temporal_supervisor.supervision.replies.filled_form import is_placeholder

M = TypeVar("M", bound=BaseModel)

_ROUNDS = 4  # what was put right may itself hold what is wrong
_NOTHING = (
    "",
    "none",
    "n/a",
    "-",
    "nothing",
    "null",
    "nil",
    "[]",
    "{}",
    "keine",
    "aucun",
    "aucune",
    "ninguna",
    "无",
)
_ONE_NUMBER = re.compile(
    r"[^\d-]*(-?\d{1,15}(?:[.,]\d{1,2})?)\s*+(%?)\D*"
)  # not 6,000, which may be 6 or 6000
_EXPECTED = re.compile(r"'([^']+)'")
_LEFT_OUT = object()


def says_nothing(value: object) -> bool:
    """True for null, for words such as `none`, and for a copied placeholder."""
    if isinstance(value, str):
        return value.strip(" .\n").casefold() in _NOTHING or is_placeholder(value)
    return value is None


def read_form(form: type[M], value: Any) -> M:
    """Returns the form in a value, which is not changed.

    Raises the ValidationError of the value as it was.
    """
    if isinstance(value, list):
        value = _around(form, value)
    if (
        isinstance(value, dict)
        and form.model_fields
        and not form.model_fields.keys() & value.keys()
    ):
        inside = [part for part in value.values() if isinstance(part, dict)]
        value = inside[0] if len(inside) == 1 else value  # {"name": "finish", "arguments": {...}}
    try:
        return form.model_validate(value)
    except ValidationError as error:
        complaints = error
    try:
        root = {"": deepcopy(value)}
    except RecursionError:
        raise complaints from None
    for _ in range(_ROUNDS):
        try:
            return form.model_validate(root[""])
        except ValidationError as error:
            # From the end: what leaves a list moves no place before it.
            wrong = reversed(error.errors(include_url=False, include_input=False))
            if not [item for item in wrong if _put_right(root, item)]:
                break
    raise complaints


def _around(form: type[BaseModel], items: list[Any]) -> Any:
    """Returns the object to which a bare list belongs; else the list itself.

    That is an object with a single list, or with a single list that the items fit.
    """
    lists = [
        name for name, field in form.model_fields.items() if get_origin(field.annotation) is list
    ]
    if len(lists) == 1:
        return {lists[0]: items}
    fitting = [name for name in lists if _fits(form, {name: items})]
    return {fitting[0]: items} if len(fitting) == 1 else items


def _fits(form: type[BaseModel], value: Any) -> bool:
    try:
        form.model_validate(value)
    except ValidationError:
        return False
    return True


def _put_right(root: Any, error: Mapping[str, Any]) -> bool:
    """Corrects the value at an error's place; returns False if it cannot be corrected."""
    place: tuple[int | str, ...] = ("", *error["loc"])
    parent, last = root, place[-1]
    try:
        for part in place[:-1]:
            parent = parent[part]
        written = parent[last]
        mended = _mended(written, error["type"], str(error.get("ctx", {}).get("expected", "")))
    except (LookupError, TypeError, ValueError, RecursionError):
        return False
    if mended is not _LEFT_OUT:
        parent[last] = mended
    elif len(place) > 1:
        del parent[last]
    return mended is not written


def _mended(written: Any, kind: str, expected: str) -> Any:
    """Returns the intended value, or `written` itself if the intention is unclear."""
    if kind == "list_type":
        return _list(written)
    if says_nothing(written):
        return _LEFT_OUT
    if kind == "string_type":
        lines = isinstance(written, list) and all(isinstance(item, str) for item in written)
        return "\n".join(written) if lines else json.dumps(written, ensure_ascii=False)
    if kind.startswith(("float_", "int_")):
        if isinstance(written, float):
            return round(written)
        number = _ONE_NUMBER.fullmatch(written) if isinstance(written, str) else None
        # None for `high` and the like
        return number and float(number[1].replace(",", ".")) / (100 if number[2] else 1)
    if kind == "literal_error":  # the choice that a text begins with, as `Done.` and `partially` do
        said = written.strip(' *"').casefold() if isinstance(written, str) else ""
        return next(
            (each for each in _EXPECTED.findall(expected) if said.startswith(each)), _LEFT_OUT
        )
    if kind == "model_type" and isinstance(written, str):
        if written.lstrip().startswith("{"):
            return json.loads(written)
        return (
            written if " " in written.strip() else _LEFT_OUT
        )  # a sentence may be what was to be said
    return written


def _list(written: Any) -> Any:
    """Returns a text as a list: of JSON, of lines, of words between commas, or of one item."""
    if says_nothing(written):
        return []
    if not isinstance(written, str):
        return [written] if isinstance(written, dict) else written
    if written.lstrip().startswith("["):
        return json.loads(written)
    lines = [line.strip(" -*•\t") for line in written.splitlines() if line.strip()]
    words = [word.strip() for word in written.split(",")]
    return lines if len(lines) > 1 or any(" " in word for word in words) else words
