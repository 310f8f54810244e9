"""The last look at a reply before anybody stores it: it can be read again, and holds no credential."""

import json
from typing import Any

from activities.model.call_errors import failure
from activities.model.credentials import Credentials
from activities.model.port import ModelFailure, ModelMessage
from activities.model.stream_bounds import too_large
from supervision import limits
from supervision.errors import ErrorKind
from supervision.text import size


def checked(message: ModelMessage, endpoint: str, credentials: Credentials) -> ModelMessage:
    """Returns `message`; ModelFailure `BadResponse` when it may not be stored.

    A journal that holds what nobody can read would stop its run for good: each attempt would find it.
    """
    names = (message.model, message.message_id, message.stop_reason, message.request_id or "")
    if any(size(name) > limits.MODEL_NAME_BYTES for name in names):
        raise _bad(endpoint, "its id, model or stop reason is too long")
    if _depth_exceeds([message.content, message.stop_details], limits.MODEL_REPLY_DEPTH):
        raise _bad(endpoint, "the answer is nested too deeply")
    plain = message.model_dump()
    try:
        json.dumps(plain, allow_nan=False)  # nor has JSON infinite numbers, or readers take any number of digits
        data = message.model_dump_json()
        unchanged = ModelMessage.model_validate_json(data) == message
    except ValueError:
        unchanged = False
    if not unchanged:
        raise _bad(endpoint, "the answer would not come back from the store as it was")
    if size(data) > limits.MODEL_REPLY_BYTES:
        raise too_large(endpoint, "the answer", limits.MODEL_REPLY_BYTES)
    if credentials.are_in([message.text(), plain]):
        raise _bad(endpoint, "the answer holds the credential that the call was made with")
    return message


def _bad(endpoint: str, detail: str) -> ModelFailure:
    return failure(ErrorKind.BAD_RESPONSE, endpoint=endpoint, detail=detail)


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [part for parent in level for part in _parts(parent)]
        if not level:
            return False
    return True


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
