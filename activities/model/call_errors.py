"""The single classification of everything that can go wrong in a model call.

It recognises the errors of the SDK and of its HTTP client by class name and public field, so it
imports neither. An error's code decides first, then its type, then the HTTP status.
"""

import contextlib
import os
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from activities.model.port import BadAnswer, ModelFailure
from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import RETRIED, ErrorKind
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.base.trust import NO_CREDENTIALS, Credentials

# What the kinds of failed calls mean, or what helps.
_MEANINGS: Mapping[ErrorKind, str] = {
    ErrorKind.RATE_LIMITED: "the provider asks for fewer calls (429)",
    ErrorKind.OVERLOADED: "the provider is overloaded (529)",
    ErrorKind.PROVIDER_ERROR: "the provider failed (5xx, 408, 409)",
    ErrorKind.PROVIDER_UNREACHABLE: "no connection",
    ErrorKind.STREAM_BROKEN: "the answer broke off",
    ErrorKind.IDLE_TIMEOUT: (
        "no sign of life for too long; SUPERVISOR_MODEL_IDLE_SECONDS gives it more time"
    ),
    ErrorKind.BAD_RESPONSE: (
        "no valid answer: HTML, a redirect (check ANTHROPIC_BASE_URL), no content, unreadable JSON"
    ),
    ErrorKind.PROVIDER_BILLING: "no credit, or a spend limit is reached",
    ErrorKind.PROVIDER_REJECTED: "the provider rejects the request for what is in it",
    ErrorKind.PROVIDER_AUTHENTICATION: "check ANTHROPIC_API_KEY and what the key may do",
    ErrorKind.MODEL_NOT_SERVED: "check the name of the model '{model}' and ANTHROPIC_BASE_URL",
    ErrorKind.CONTEXT_OVERFLOW: (
        "the prompt does not fit into the window of '{model}', and nothing more can be left out: "
        "use a model with a larger one (models.supervisor, models.workers or a role's own), or "
        "shorten the goal, the subtask or the team's prompts. If the window is smaller than the "
        "price list says, or not in it, set SUPERVISOR_MODEL_WINDOW"
    ),
}
_CAUSES = 8  # of an error, one behind the other
_LACKING = (
    "it does not take a part of this request: leave that out by SUPERVISOR_MODEL_WITHOUT, "
    "SUPERVISOR_MODEL_STRUCTURED=text or a smaller SUPERVISOR_MODEL_MAX_TOKENS"
)

# An old endpoint, or one behind a gateway, does not know all parts of a request. The API has no
# error codes for this. So the message decides: it names a part (`_PART`) and refuses it
# (`_NOT_TAKEN`), as all of these do:
#     "max_tokens: 64000 > 8192, which is the maximum ..."
#     "effort: Extra inputs are not permitted"
#     "tools.0: unknown type web_search_20250305"
#     "output_config is not supported by this model"
# Not so "temperature: Extra inputs are not permitted", which names no such part, nor
# "output_config.schema: unsupported keyword 'pattern'", which refuses a schema, not the part.
_PART = re.compile(
    r"max_tokens: \d+ >"
    r"|\bweb_(search|fetch)_20"
    r"|\b(effort|eager_input_streaming|cache_control|thinking)\b"
    r"|\A(?!.*schema).*(output_config|output_format|structured output)",
    re.IGNORECASE,
)
_NOT_TAKEN = re.compile(
    r"max_tokens: \d+ >"
    r"|extra input|unknown|unexpected|unrecogni[sz]ed|unsupported"
    r"|n[o']t (be )?(permitted|allowed|support)",
    re.IGNORECASE,
)

# The kind of an error by the first of three words that is listed: its code (`billing_error`), its
# type (`rate_limit_error`), its status (529). So a spend limit that comes as a `rate_limit_error`
# with 429 is a matter of billing.
# Two words are not listed: `ramp_limit_exceeded`, which is a rate limit like others, and
# `invalid_request_error`, which gateways put on any status, so that the status decides.
_WORDS: Mapping[ErrorKind, str] = {
    # Spend limits arrive as 429: waiting does not lift them, an operator does.
    ErrorKind.PROVIDER_BILLING: """
        enforced_spend_limit_reached contract_spend_limit_reached
        linked_organization_spend_limit_reached organization_on_hold billing_error 402""",
    # Some of these belong to the account and not to the request, though they come as 400.
    ErrorKind.PROVIDER_AUTHENTICATION: """
        cmek_key_disabled cmek_key_network_blocked workspace_policy_violation
        organization_not_enrolled_in_beta authentication_error permission_error 401 403""",
    ErrorKind.CONTEXT_OVERFLOW: "request_too_large 413",
    ErrorKind.RATE_LIMITED: "rate_limit_error 429",
    ErrorKind.OVERLOADED: "overloaded_error 529",
    ErrorKind.PROVIDER_ERROR: "api_error timeout_error conflict_error 408 409 499",
    ErrorKind.MODEL_NOT_SERVED: "not_found_error 404 405",
}
_BY_WORD = {word: kind for kind, words in _WORDS.items() for word in words.split()}

# A prompt that does not fit has no code of its own. The API writes
#     "prompt is too long: 210000 tokens > 200000 maximum"
# and compatible servers
#     "the request exceeds the available context size"
#     "This model's maximum context length is 8192 tokens"
_OVERFLOW = re.compile(
    r"prompt is too long"
    r"|exceed(s|ed)? (the )?(model'?s? )?(available )?(context|token) (limit|length|size|window)"
    r"|maximum (context|prompt) length",
    re.IGNORECASE,
)

# Errors of the transport once the headers are there: the first class of an error's ancestry that is
# listed decides. Without one it is a bad response: unreadable JSON, events in no order, blocks
# without their fields.
_AFTER_HEADERS = {
    "TimeoutError": ErrorKind.IDLE_TIMEOUT,  # the idle watchdog
    "ReadTimeout": ErrorKind.IDLE_TIMEOUT,
    "AssertionError": ErrorKind.STREAM_BROKEN,  # how the SDK reports a stream without a message
    "HTTPError": ErrorKind.STREAM_BROKEN,  # the SDK lets the transport's errors through
    "StreamError": ErrorKind.STREAM_BROKEN,
}


_SHOULD_RETRY: Mapping[str, bool] = {"true": True, "false": False}
"""The values of the header `x-should-retry`, by which a provider allows or forbids another try."""


def classify(
    error: BaseException,
    *,
    model: str = "",
    endpoint: str = "the provider",
    credentials: Credentials = NO_CREDENTIALS,
) -> ModelFailure:
    """Returns `error` as a ModelFailure; its message has no body, URL, credential or traceback."""
    if isinstance(error, ModelFailure):
        return error
    names = [cls.__name__ for cls in type(error).__mro__]
    if "APIStatusError" in names:
        return _status_failure(error, model, endpoint, credentials)
    if isinstance(error, BadAnswer):
        kind, detail = error.kind, str(error)
    elif "APIConnectionError" in names:
        kind, detail = ErrorKind.PROVIDER_UNREACHABLE, _cause(error)
    else:
        listed = (_AFTER_HEADERS[name] for name in names if name in _AFTER_HEADERS)
        kind, detail = next(listed, ErrorKind.BAD_RESPONSE), _reason(error)
    return ModelFailure(kind, _message(endpoint, _MEANINGS[kind], detail))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of `retry-after`, at most RETRY_AFTER_MAX; None if it is not usable.

    Dates are ignored, and so is more than RETRY_AFTER_BELIEVED: one such header would stop all runs
    of the model.
    """
    with contextlib.suppress(KeyError, ValueError):
        seconds = float(headers["retry-after"])
        if 0 < seconds <= limits.RETRY_AFTER_BELIEVED.total_seconds():
            return min(seconds, limits.RETRY_AFTER_MAX.total_seconds())
    return None


def _status_failure(
    error: Any,
    model: str,
    endpoint: str,
    credentials: Credentials,
) -> ModelFailure:
    """Returns the failure in an error answer, such as `host answered 529 overloaded_error: ...`."""
    status: int = error.status_code
    kind = _kind_of_answer(error.error_code, error.type, status)
    words = _explanation(error)
    if kind == ErrorKind.PROVIDER_REJECTED and _OVERFLOW.search(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    advice = _MEANINGS[kind].format(model=model)
    is_lacking = status in (400, 422) and _NOT_TAKEN.search(words) and _PART.search(words)
    if is_lacking and kind == ErrorKind.PROVIDER_REJECTED:
        # Every call to this model would be refused alike.
        kind, advice = ErrorKind.MODEL_NOT_SERVED, _LACKING

    # A provider's message about a key may quote it: that kind gets our words only.
    is_about_a_key = kind == ErrorKind.PROVIDER_AUTHENTICATION
    detail = "" if is_about_a_key else credentials.withheld(words)
    headers = error.response.headers
    should_retry = _SHOULD_RETRY.get(headers.get("x-should-retry", "").strip().lower())
    may_wait = kind in RETRIED or should_retry
    label_parts = [str(part) for part in (status, error.error_code or error.type) if part]
    label = " ".join(credentials.withheld(part) for part in label_parts)
    return ModelFailure(
        kind,
        _message(f"{endpoint} answered {label}", advice, detail),
        retry_after_seconds(headers) if may_wait else None,
        should_retry=should_retry,
        request_id=credentials.withheld(error.request_id) if error.request_id else None,
    )


def _kind_of_answer(code: object, error_type: object, status: int) -> ErrorKind:
    """Returns the kind of an error answer by its code, its type or its status."""
    if 300 <= status < 400:  # not followed: whatever its body says, it is no answer
        return ErrorKind.BAD_RESPONSE
    for word in (code, error_type, str(status)):
        if isinstance(word, str) and word in _BY_WORD:
            return _BY_WORD[word]
    if status < 300 and error_type == "invalid_request_error":  # inside a stream
        return ErrorKind.PROVIDER_REJECTED
    return ErrorKind.PROVIDER_REJECTED if 400 <= status < 500 else ErrorKind.PROVIDER_ERROR


def _reason(error: BaseException) -> str:
    """Returns the class name of an error's cause, never its text."""
    return "" if type(error) is TimeoutError else type(error.__cause__ or error).__name__


def _cause(error: BaseException) -> str:
    """Returns the cause of a lost connection in the system's fixed words, else its class name."""
    below: BaseException | None = error
    for _ in range(_CAUSES):
        below = below and (below.__cause__ or below.__context__)
        if isinstance(below, socket.gaierror):
            return "the name of its host can't be resolved"
        if isinstance(below, ssl.SSLError):
            return f"TLS: {type(below).__name__}"
        if isinstance(below, OSError) and below.errno:
            return os.strerror(below.errno).lower()
    return _reason(error)


def _explanation(error: Any) -> str:
    if isinstance(error.api_message, str):
        return error.api_message
    body = error.body if isinstance(error.body, dict) else {}
    plain = body.get("error") or body.get("message")  # the form of some compatible servers
    return plain if isinstance(plain, str) else ""


def _message(*parts: str) -> str:
    return one_line(": ".join(filter(None, parts)), limits.ERROR_BYTES)
