"""Payloads that nothing encodes are not visited.

For each activation of a workflow the SDK goes through all payloads that it brings three times, and three times through
those of its commands, to decode and encode them and to keep them elsewhere. Without a codec and external storage that
changes nothing and is a fifth of what a replay costs. See docs/decisions/0022.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import temporalio.bridge.worker as bridge
from temporalio.converter import DataConverter
from temporalio.converter._extstore import StorageOperationMetrics

_Visit = Callable[..., Awaitable[StorageOperationMetrics]]
_VISITS: dict[str, _Visit] = {
    "decode_activation": bridge.decode_activation,
    "encode_completion": bridge.encode_completion,
}


def leave_plain_payloads() -> None:
    """Has the Workers of this process visit payloads only where a codec or external storage is set."""
    for name, visit in _VISITS.items():
        setattr(bridge, name, _where_needed(visit))


def _where_needed(visit: _Visit) -> _Visit:
    async def visited(message: Any, converter: DataConverter, **options: Any) -> StorageOperationMetrics:
        if converter.payload_codec is None and converter.external_storage is None:
            return StorageOperationMetrics()
        return await visit(message, converter, **options)

    return visited
