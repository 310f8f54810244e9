"""How long a provider asks to wait."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from supervision import limits


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms`, else `retry-after` (seconds or an HTTP date), at most RETRY_AFTER_MAX.

    None when there is no wish, or one that is unreadable or already past.
    """
    wish = _number(headers.get("retry-after-ms"), 0.001)
    if wish is None:
        after = headers.get("retry-after")
        wish = _number(after, 1.0)
        if wish is None:
            wish = _until(after)
    if wish is None or wish <= 0:
        return None
    return min(wish, limits.RETRY_AFTER_MAX.total_seconds())


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text or "") * unit
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _until(text: str | None) -> float | None:
    try:
        moment = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:  # "-0000" and a missing zone both mean UTC
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()
