"""JSON schemas of users and teams: checked, sent to the provider, and enforced.

Schemas and answers are foreign: references may expand without end, and patterns may search without
end. So all code that reads a schema (`schema_rules`) runs in a child process, with limits on time
and memory.
"""

import json
import re
from contextlib import suppress
from datetime import timedelta
from typing import Any

from cachetools import LRUCache

from activities.bounded.child_processes import BoundExceeded, ChildProcesses
from activities.bounded.fair_pool import FairPool
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind, SupervisionError
from temporal_supervisor.supervision.base.json_object import JsonObject
from temporal_supervisor.supervision.base.prompt_marks import JSON_AS_TEXT
from temporal_supervisor.supervision.base.text import size

_TIME = timedelta(seconds=3)  # of one check; honest ones take milliseconds
_MEMORY_BYTES = 128 << 20
_MODULE = "activities.replies.schema_rules"
# "-12.5", "0"; not "012", "1e3".
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?")
_FORMS = 256  # of so many schemas a process remembers how they are sent
# A pool of its own: an answer that waits for its check waits for no file. Two: a slow check does
# not block the next.
_checkers = ChildProcesses(_MODULE, FairPool(places=2, resting=2).line(2), _MEMORY_BYTES)
_sent: LRUCache[str, str] = LRUCache(_FORMS)


async def check_schema(schema: JsonObject, run_id: str, name: str = "answer_schema") -> None:
    """Raises SupervisionError `InvalidRequest` for a schema that is invalid or too large."""
    complaint: str | None
    try:
        total = size(json.dumps(schema, ensure_ascii=False))
        if total > limits.ANSWER_SCHEMA_BYTES:
            most = limits.ANSWER_SCHEMA_BYTES
            complaint = f"it has {total} bytes, at most {most} are allowed"
        else:
            complaint = await _checkers.call(run_id, _TIME, "complaint", schema)
            if complaint is None:
                await as_sent(schema, run_id)  # it has to be possible within the same bounds
    except RecursionError:
        complaint = "it is nested too deeply"
    except BoundExceeded as error:
        complaint = f"{error} to check: use fewer references and less nesting"
    if complaint:
        raise SupervisionError(ErrorKind.INVALID_REQUEST, f"{name}: {complaint}")


async def as_sent(schema: JsonObject, run_id: str) -> JsonObject | None:
    """Returns the schema with its references resolved.

    None if the provider's client would lose some of its structure. Raises BoundExceeded; for a
    checked schema that means that the machine is busy.
    """
    written = json.dumps(schema)
    if written not in _sent:
        _sent[written] = json.dumps(await _checkers.call(run_id, _TIME, "as_sent", schema))
    form: JsonObject | None = json.loads(_sent[written])
    return form


async def sendable(schema: JsonObject, run_id: str) -> JsonObject:
    """Returns the schema in a form that the provider's client accepts.

    References are resolved. If the client does not support the schema, it becomes a text field that
    is described by the schema.
    """
    words = f"{JSON_AS_TEXT}{json.dumps(schema, ensure_ascii=False)}"
    return await as_sent(schema, run_id) or {"type": "string", "description": words}


async def value_of(
    schema: JsonObject,
    answered: Any,
    run_id: str,
    *,
    repeated: bool = False,
) -> Any:
    """Returns the value in a reply; JSON that a model wrote as text is parsed.

    That includes single numbers: "363" becomes 363 where no text is allowed. In a `repeated` reply
    a text that is none of a field's choices, or null, becomes the empty choice if there is one.
    """
    sent = await as_sent(schema, run_id)
    if isinstance(answered, str) and (sent is None or sent.get("type") in ("object", "array")):
        with suppress(ValueError, RecursionError):
            answered = json.loads(answered)
    if sent is None or not isinstance(answered, dict):
        return answered
    parts = sent.get("properties", {})
    values = {}
    for name, value in answered.items():
        values[name] = _as_allowed(parts.get(name, {}), value, repeated)
    return values


def _as_allowed(part: Any, value: Any, repeated: bool) -> Any:
    """Returns a text as the number or the empty choice that its field allows, if it does.

    Any other value is returned as it is.
    """
    if not isinstance(part, dict):
        return value
    choices = part.get("enum", [])
    if repeated and "" in choices and value not in choices and isinstance(value, str | None):
        return ""
    if not isinstance(value, str):
        return value
    kinds = []
    for branch in part.get("anyOf", [part]):
        kinds.append(branch.get("type") if isinstance(branch, dict) else None)
    is_number = all(kind in ("number", "integer", "null") for kind in kinds) and kinds != ["null"]
    return json.loads(value) if is_number and _PLAIN_NUMBER.fullmatch(value) else value


async def problems(
    schema: JsonObject,
    value: Any,
    run_id: str,
    name: str = "answer_json",
) -> list[str]:
    """Returns the faults of the field `name` by `schema`, each as a sentence for its author."""
    try:
        total = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError):
        return [f"{name} holds what JSON can't say: NaN, an infinity, or half of a surrogate pair"]
    if total > limits.ANSWER_JSON_BYTES:
        most = f"at most {limits.ANSWER_JSON_BYTES} are allowed"
        return [f"{name} has {total} bytes, {most}: make it shorter"]
    try:
        found: list[str] = await _checkers.call(run_id, _TIME, "problems", schema, value, name)
    except BoundExceeded as error:
        return [f"{name} can't be checked, {error}: make its texts and lists shorter"]
    return found


async def row_problems(
    schema: JsonObject,
    rows: list[Any],
    name: str,
    run_id: str,
) -> tuple[dict[int, str], str]:
    """Returns the faults of rows of the list `name` by index, and a fault of the other rows."""
    try:
        misfits, whole = await _checkers.call(run_id, _TIME, "row_problems", schema, rows, name)
    except BoundExceeded as error:
        return {}, f"they can't be checked, {error}"
    return dict(misfits), whole
