"""Long lists in payloads, compressed: of a thousand findings the names of the fields alone would fill a payload."""

import zlib
from base64 import b64decode, b64encode
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializerFunctionWrapHandler, WrapSerializer
from pydantic_core import from_json, to_json

from supervision.contract.base import Model
from supervision.contract.plan import Plan

_SHOWN_BYTES = 16 * 1024  # up to here a value stays as people read it in the Web UI: some forty findings
_UNPACKED_BYTES = 1024 * 1024  # a thousand findings with the longest names take 0.8 MiB


class DependencyRef(Model):
    """A finding to build on; `complete` is False if its worker agent was stopped before it was done.

    `partial`: its author calls it that. `stale`: it uses a finding that was changed after it. `record_ref` leads
    to its FindingRecord, in the same folder as its text, `output_ref` to its JSON object.
    """

    subtask_id: str
    role: str
    text_ref: str
    bytes: int = 0
    weight: float = 0.5
    complete: bool = True
    partial: bool = False
    stale: bool = False
    record_ref: str = ""
    output_ref: str = ""


def _pack(value: Any, dump: SerializerFunctionWrapHandler) -> Any:
    """Returns a long value compressed, a shorter one as people read it in the Web UI."""
    shown = dump(value)
    written = to_json(shown)
    if not _SHOWN_BYTES < len(written) <= _UNPACKED_BYTES:  # what is too long is refused as it stands
        return shown
    return {"zlib": b64encode(zlib.compress(written)).decode()}


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict) or "zlib" not in value:
        return value
    reader = zlib.decompressobj()
    try:
        written = reader.decompress(b64decode(value["zlib"], validate=True), _UNPACKED_BYTES)
    except (zlib.error, TypeError) as error:  # what is no base64 raises a ValueError by itself
        raise ValueError("this is not compressed JSON") from error
    if not reader.eof:
        raise ValueError(f"unpacked it takes more than {_UNPACKED_BYTES} bytes")
    return from_json(written)


FindingRefs = Annotated[list[DependencyRef], BeforeValidator(_unpack), WrapSerializer(_pack)]
PackedPlan = Annotated[Plan | None, BeforeValidator(_unpack), WrapSerializer(_pack)]
