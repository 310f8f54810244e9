"""How deep JSON is nested: parsers give up at some depth, so values are bounded well below it."""

from typing import Any


def depth_exceeds(value: Any, limit: int) -> bool:
    """True if lists and objects lie in each other more than `limit` levels deep. Needs no stack."""
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
