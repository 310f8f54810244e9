"""Reading a form that a model has filled in: what is slightly wrong and can mean one thing only is put right.

Where no API constrains the reply, models write null into fields that may be left out, one text for a list, `"95%"` for
0.95. Each would cost a call, or the work that the form carries.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)
_Mend = Callable[[Any, str], Any]

_ROUNDS = 4  # what was put right may itself hold what is wrong
_NOTHING = (
    *("", "none", "n/a", "-", "nothing", "null", "nil", "[]", "{}"),
    *("keine", "aucun", "aucune", "ninguna", "无", "没有"),
)
_NUMBER = re.compile(r"\d{1,15}(?:[.,]\d{1,15}){0,5}")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
_EXPECTED = re.compile(r"'([^']+)'")
_LEFT_OUT = object()


def says_nothing(value: object) -> bool:
    """True for null, and for the words that models write in its place."""
    return value is None or (isinstance(value, str) and value.strip(" .\n").casefold() in _NOTHING)


def read_form(form: type[M], value: Any) -> M:
    """Returns the form in a value, which stays as it is. Raises ValidationError with what was wrong at first."""
    if isinstance(value, dict) and form.model_fields and not form.model_fields.keys() & value.keys():
        inside = [part for part in value.values() if isinstance(part, dict)]
        value = inside[0] if len(inside) == 1 else value  # {"name": "finish", "arguments": {...}}
    try:
        return form.model_validate(value)
    except ValidationError as error:
        complaints = error
    root, own = {"": value}, dict[int, Any]()
    for _ in range(_ROUNDS):
        try:
            return form.model_validate(root[""])
        except ValidationError as error:
            # From the end: what leaves a list moves no place before it.
            wrong = reversed(error.errors(include_url=False, include_input=False))
            if not [item for item in wrong if _put_right(root, ("", *item["loc"]), item, own)]:
                break
    raise complaints


def _put_right(root: Any, place: tuple[int | str, ...], error: Mapping[str, Any], own: dict[int, Any]) -> bool:
    """Puts right what stands at a place, in copies, which are `own` by their ids; False if it cannot be."""
    mend = next((each for kind, each in _MENDS.items() if error["type"].startswith(kind)), None)
    parent: Any = root
    try:
        for above in place[:-1]:
            if id(parent[above]) not in own:
                parent[above] = parent[above].copy()
                own[id(parent[above])] = parent[above]
            parent = parent[above]
        written = parent[place[-1]]
        mended = mend(written, str(error.get("ctx", {}).get("expected", ""))) if mend else written
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        return False
    if mended is _LEFT_OUT and len(place) > 1:
        del parent[place[-1]]
    elif mended is not _LEFT_OUT:
        parent[place[-1]] = mended
    return mended is not written


def _list(written: Any, _: str) -> Any:
    """Returns nothing, JSON, lines, words with commas between them, or one item as a list."""
    if says_nothing(written):
        return []
    if isinstance(written, str):
        if written.lstrip().startswith("["):
            return json.loads(written)
        lines = [line.strip(" -*•\t") for line in written.splitlines() if line.strip()]
        if len(lines) > 1:
            return lines
        words = [word.strip() for word in written.split(",")]
        return [written] if any(" " in word for word in words) else words
    return [written] if isinstance(written, dict) else written


def _text(written: Any, _: str) -> Any:
    if isinstance(written, list) and all(isinstance(item, str) for item in written):
        return "\n".join(written)
    return _LEFT_OUT if written is None else json.dumps(written, ensure_ascii=False)


def _number(written: Any, _: str) -> Any:
    """Returns the one number of a text, 9/10 as a share; null, and then nothing, for `high` and the like."""
    if isinstance(written, float):
        return round(written)
    found = _NUMBER.findall(written) if isinstance(written, str) else []
    if not 1 <= len(found) <= 1 + ("/" in str(written)):
        return _LEFT_OUT if written is None else None
    first, *second = (
        float(re.sub("[.,]", "", item) if _THOUSANDS.fullmatch(item) else item.replace(",", ".")) for item in found
    )
    value = first / second[0] if second else first / 100 if "%" in written else first
    return -value if written.lstrip().startswith("-") else value


def _choice(written: Any, expected: str) -> Any:
    """Returns the choice that a text begins with, as `Done.` and `partially` do; nothing for another."""
    said = written.strip(' *"').casefold() if isinstance(written, str) else ""
    return next((each for each in _EXPECTED.findall(expected) if said.startswith(each)), _LEFT_OUT)


def _yes_or_no(written: Any, _: str) -> Any:
    return _LEFT_OUT if says_nothing(written) else written


def _object(written: Any, _: str) -> Any:
    if isinstance(written, str) and written.lstrip().startswith("{"):
        return json.loads(written)
    is_word = isinstance(written, str) and " " not in written.strip()  # a sentence may be what was to be said
    return _LEFT_OUT if written is None or is_word else written


_MENDS: dict[str, _Mend] = {
    "list_type": _list,
    "string_type": _text,
    "float_": _number,
    "int_": _number,
    "bool_": _yes_or_no,
    "literal_error": _choice,
    "model_type": _object,
}
