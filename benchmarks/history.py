"""What a workflow leaves in history: events, bytes, and its largest payload."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.client import Client


@dataclass(frozen=True)
class History:
    """Sizes of one history in events and bytes; `largest_payload` in bytes, None where it was not looked at."""

    events: int
    bytes: int
    largest_payload: int | None


async def read_history(client: Client, workflow_id: str) -> History:
    """Returns the history of the last run of that workflow."""
    handle = client.get_workflow_handle(workflow_id)
    info = (await handle.describe()).raw_description.workflow_execution_info
    largest = 0
    async for event in handle.fetch_history_events():
        largest = max([largest, *payload_sizes(event)])
    return History(info.history_length, info.history_size_bytes, largest)


def payload_sizes(message: Message) -> Iterator[int]:
    """Yields the sizes of all payloads inside a message, at any depth."""
    if isinstance(message, Payload):
        yield len(message.data)
        return
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in _parts(value):
                yield from payload_sizes(part)


def _parts(value: Any) -> list[Message]:
    """Returns the messages of a field: one, many, or the values of a map (whose keys say nothing)."""
    if isinstance(value, Message):
        return [value]
    parts = value.values() if hasattr(value, "values") else value
    return [part for part in parts if isinstance(part, Message)]
