"""The one classification of everything that can go wrong in a model call.

It knows the errors of the SDK and of its HTTP client by class name and public field, so it imports neither.
Order of judgement: the error's code, its type, the HTTP status, then the header `x-should-retry`.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from activities.model.port import FailureKind, ModelFailure
from activities.model.retry_after import retry_after_seconds
from supervision import limits
from supervision.text import one_line

_RETRYABLE: frozenset[FailureKind] = frozenset(
    {
        "RateLimited",
        "Overloaded",
        "ProviderError",
        "ProviderUnreachable",
        "StreamBroken",
        "IdleTimeout",
        "BadResponse",
    }
)

_SAYS: dict[FailureKind, str] = {
    "RateLimited": "{endpoint} asks for fewer calls",
    "Overloaded": "{endpoint} is overloaded",
    "ProviderError": "{endpoint} failed",
    "ProviderUnreachable": "cannot reach {endpoint}",
    "StreamBroken": "the answer of {endpoint} broke off",
    "IdleTimeout": "{endpoint} sent no content for too long",
    "BadResponse": "{endpoint} gave no valid Messages API answer",
    "ProviderAuthentication": "{endpoint} refused the credential: check ANTHROPIC_API_KEY and what the key may do",
    "ProviderBilling": "{endpoint} stopped serving this account: credit or spend limit",
    "ProviderRejected": "{endpoint} rejects this request",
    "CircuitOpen": "{endpoint} is in an outage and left alone",
}

_NOT_FOUND = "{endpoint} does not know the model '{model}': check its name and ANTHROPIC_BASE_URL"

# Spend limits arrive as 429 with a code: waiting does not lift them, an operator does.
_BY_CODE: dict[str, FailureKind] = {
    "enforced_spend_limit_reached": "ProviderBilling",
    "contract_spend_limit_reached": "ProviderBilling",
    "linked_organization_spend_limit_reached": "ProviderBilling",
    "linked_organization_billing_unavailable": "ProviderBilling",
    "user_profile_not_billable": "ProviderBilling",
    "user_profile_billing_not_authorized": "ProviderBilling",
    "organization_on_hold": "ProviderBilling",
}

# `invalid_request_error` is absent: gateways put it on any status, so the status decides there.
_BY_TYPE: dict[str, FailureKind] = {
    "authentication_error": "ProviderAuthentication",
    "permission_error": "ProviderAuthentication",
    "billing_error": "ProviderBilling",
    "rate_limit_error": "RateLimited",
    "overloaded_error": "Overloaded",
    "api_error": "ProviderError",
    "timeout_error": "ProviderError",
    "conflict_error": "ProviderError",
    "not_found_error": "ProviderRejected",
    "request_too_large": "ProviderRejected",
}

_BY_STATUS: dict[int, FailureKind] = {
    401: "ProviderAuthentication",
    402: "ProviderBilling",
    403: "ProviderAuthentication",
    408: "ProviderError",
    409: "ProviderError",
    429: "RateLimited",
    499: "ProviderError",
    529: "Overloaded",
}

# Errors of the transport; the first class of an error's ancestry that is listed decides.
_BY_TRANSPORT: dict[str, FailureKind] = {
    "ReadTimeout": "IdleTimeout",
    "WriteTimeout": "IdleTimeout",
    "LocalProtocolError": "ProviderRejected",  # a header that HTTP cannot carry
    "UnsupportedProtocol": "ProviderRejected",  # ANTHROPIC_BASE_URL is no http(s) address
    "InvalidURL": "ProviderRejected",
    "UnicodeEncodeError": "ProviderRejected",
    "DecodingError": "BadResponse",
    "TooManyRedirects": "BadResponse",
}


def classify(
    error: BaseException, *, model: str = "", endpoint: str = "the provider", secrets: Sequence[str] = ()
) -> ModelFailure:
    """What `error` means for the project. `endpoint` is host:port; `secrets` never appear in the message.

    The message holds the provider's own explanation where it gave one, never a body, a URL or a traceback.
    """
    if isinstance(error, ModelFailure):
        return error
    names = _names(error)
    if "APIStatusError" in names:
        return _status_failure(error, model, endpoint, secrets)
    return failure(_transport_kind(error, names), endpoint=endpoint, detail=_reason(error))


def failure(kind: FailureKind, *, endpoint: str = "the provider", detail: str = "") -> ModelFailure:
    """A failure without an HTTP error status, in the words of its kind."""
    text = _SAYS[kind].format(endpoint=endpoint)
    return ModelFailure(kind, _message(text, detail), retryable=kind in _RETRYABLE)


def no_credential() -> ModelFailure:
    """Neither a key nor an endpoint is configured."""
    text = "no model is configured: set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for an endpoint without keys"
    return ModelFailure("ProviderAuthentication", text, retryable=False)


def _status_failure(error: Any, model: str, endpoint: str, secrets: Sequence[str]) -> ModelFailure:
    status: int = error.status_code
    headers: Mapping[str, str] = error.response.headers
    kind = _by_answer(error.error_code, error.type, status)
    retryable = kind in _RETRYABLE
    wish = headers.get("x-should-retry")
    if wish == "false":
        retryable = False
    elif wish == "true" and kind == "ProviderRejected":
        kind, retryable = "ProviderError", True
    text = (_NOT_FOUND if status == 404 else _SAYS[kind]).format(endpoint=endpoint, model=model)
    # What a provider says of a key may quote it: that kind gets our words only.
    said = "" if kind == "ProviderAuthentication" else _redacted(_said(error), secrets)
    label = " ".join(str(part) for part in (status, error.error_code or error.type) if part)
    return ModelFailure(
        kind,
        _message(f"{text} ({label})", said),
        retryable=retryable,
        retry_after=retry_after_seconds(headers) if retryable else None,
        status=status,
        request_id=error.request_id,
    )


def _by_answer(code: object, type_: object, status: int) -> FailureKind:
    if isinstance(code, str) and code in _BY_CODE:
        return _BY_CODE[code]
    if isinstance(type_, str) and type_ in _BY_TYPE:
        return _BY_TYPE[type_]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status < 300 and type_ == "invalid_request_error":  # inside a stream
        return "ProviderRejected"
    if 300 <= status < 400:
        return "BadResponse"
    return "ProviderRejected" if 400 <= status < 500 else "ProviderError"


def _transport_kind(error: BaseException, names: list[str]) -> FailureKind:
    if isinstance(error, TimeoutError):  # the idle watchdog
        return "IdleTimeout"
    if isinstance(error, AssertionError):  # the SDK's word for a stream without a message
        return "StreamBroken"
    if "APIConnectionError" in names:  # before the headers
        return _listed(_names(error.__cause__), "ProviderUnreachable")
    if "HTTPError" in names or "StreamError" in names:  # after them: the SDK lets the transport's errors through
        return _listed(names, "StreamBroken")
    return _listed(names, "BadResponse")  # unreadable JSON, events in no order, blocks without their fields


def _listed(names: list[str], otherwise: FailureKind) -> FailureKind:
    return next((_BY_TRANSPORT[name] for name in names if name in _BY_TRANSPORT), otherwise)


def _names(error: BaseException | None) -> list[str]:
    return [cls.__name__ for cls in type(error).__mro__] if error is not None else []


def _reason(error: BaseException) -> str:
    """The system's words for a socket error below `error`, else the class of its cause; never its text."""
    if type(error) is TimeoutError:
        return ""
    below: BaseException | None = error
    while below is not None:
        # Name look-ups number their errors differently, some below zero: os.strerror knows only the others.
        if isinstance(below, ConnectionError) and below.errno:
            return os.strerror(below.errno)
        below = below.__cause__ or below.__context__
    return type(error.__cause__ or error).__name__


def _said(error: Any) -> str:
    if isinstance(error.api_message, str):
        return error.api_message
    body = error.body if isinstance(error.body, dict) else {}
    plain = body.get("error") or body.get("message")  # the form of some compatible servers
    return plain if isinstance(plain, str) else ""


def _redacted(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text


def _message(text: str, detail: str) -> str:
    return one_line(f"{text}: {detail}" if detail else text, limits.ERROR_BYTES)
