"""The data converter of all clients, Workers and replayers, which limits payload sizes."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.sdk.v1 import EnhancedStackTrace
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverter,
    PayloadCodec,
    PayloadConverter,
)
from temporalio.exceptions import ApplicationError, FailureError

from temporal_supervisor.supervision.base import limits
from temporal_supervisor.supervision.base.errors import ErrorKind
from temporal_supervisor.supervision.base.text import one_line
from temporal_supervisor.supervision.contract.base import Undecodable

if TYPE_CHECKING:  # few processes encrypt
    from temporal_supervisor.runtime.encryption import Keys

# Read before anything is checked: a whole request with each letter as \uXXXX fits.
_RAW_INPUT_BYTES = 512 * 1024
_CONVERTERS = tuple(PydanticPayloadConverter().converters.values())
_SEALED = b"binary/encrypted"
_UNREADABLE = b"binary/unreadable"


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Converts pydantic models as plain JSON, up to the hard cap.

    Above it, ApplicationError `PayloadTooLarge` is raised before anything is sent, because servers
    react to an oversized payload with anything from endless retries to ending the run.
    """

    def __init__(self) -> None:
        # The SDK makes one for each workflow task: they share what has been learned of types.
        CompositePayloadConverter.__init__(self, *_CONVERTERS)

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Returns the encoded values."""
        payloads = super().to_payloads(values)
        for payload, value in zip(payloads, values, strict=True):
            size = len(payload.data)
            if size <= limits.PAYLOAD_HARD_BYTES or isinstance(value, EnhancedStackTrace):
                continue
            problem = f"a payload of {size} bytes ({type(value).__name__})"
            raise ApplicationError(
                f"{problem} is over the cap of {limits.PAYLOAD_HARD_BYTES}",
                type=ErrorKind.PAYLOAD_TOO_LARGE,
                non_retryable=True,
            )
        return payloads

    def from_payloads(
        self,
        payloads: Sequence[Payload],
        type_hints: list[type] | None = None,
    ) -> list[Any]:
        """Returns the decoded values.

        A payload without a type hint that can't be decoded becomes an Undecodable. Such payloads
        are inputs of runs, which any client may send, and an error would block the workflow task.
        Values of a known type raise: results, inputs of activities, arguments of updates and
        queries.
        """
        if not type_hints:
            return [self._untyped(payload) for payload in payloads]
        for payload in payloads:
            problem = _problem_of(payload)
            if problem:
                raise ValueError(problem)
        return super().from_payloads(payloads, type_hints)

    def _untyped(self, payload: Payload) -> Any:
        problem = _problem_of(payload)
        if problem:
            return Undecodable(problem)
        try:
            return super().from_payloads([payload])[0]
        except ValidationError as error:
            # of JSON: "Invalid JSON: recursion limit exceeded at line 1 column 202"
            first = error.errors(include_url=False, include_input=False)[0]
            return Undecodable(first["msg"])
        except Exception as error:  # the SDK's converters raise whatever their libraries do
            return Undecodable(one_line(str(error), limits.SENTENCE_BYTES) or type(error).__name__)


def _problem_of(payload: Payload) -> str | None:
    """Returns the reason why a payload is not decoded; None if it is."""
    if len(payload.data) > _RAW_INPUT_BYTES:
        return f"it has more than {_RAW_INPUT_BYTES} bytes"
    encoding = payload.metadata.get("encoding")
    if encoding == _SEALED:
        return "it is encrypted, and this process has no keys: set SUPERVISOR_KEYS_FILE"
    if encoding == _UNREADABLE:  # anybody may send it, with any bytes
        return one_line(payload.data.decode(errors="replace"), limits.SENTENCE_BYTES)
    return None


class SealedPayloads(PayloadCodec):
    """Encrypts payloads, so that only processes with the keys can read them.

    Payloads in plain text are read too. One that can't be read becomes a payload with the reason,
    because an error here would block a workflow for ever.
    """

    def __init__(self, keys: "Keys") -> None:
        self._keys = keys

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Returns the encrypted payloads."""
        sealed = []
        for payload in payloads:
            data = self._keys.seal(payload.SerializeToString())
            sealed.append(Payload(metadata={"encoding": _SEALED}, data=data))
        return sealed

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Returns the decrypted payloads."""
        return [self._opened(payload) for payload in payloads]

    def _opened(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _SEALED:
            return payload
        try:
            return Payload.FromString(self._keys.open(payload.data))
        except Exception as error:  # of the keys and of protobuf's decoder
            return Payload(metadata={"encoding": _UNREADABLE}, data=str(error).encode())


class ShortFailures(DefaultFailureConverter):
    """Omits stack traces and causes of anticipated failures, nine tenths of their size."""

    def to_failure(
        self,
        exception: BaseException,
        payload_converter: PayloadConverter,
        failure: Failure,
    ) -> None:
        """Converts an exception to a failure."""
        super().to_failure(exception, payload_converter, failure)
        if ErrorKind(failure.application_failure_info.type) is not ErrorKind.UNEXPECTED:
            failure.stack_trace = ""
            failure.ClearField("cause")


class SealedFailures(ShortFailures):
    """Encrypts the messages of failures."""

    def __init__(self) -> None:
        super().__init__(encode_common_attributes=True)


data_converter = dataclasses.replace(
    pydantic_data_converter,
    payload_converter_class=BoundedPayloadConverter,
    failure_converter_class=ShortFailures,
)


def converter_with(keys: "Keys | None") -> DataConverter:
    """Returns the data converter of a process with these keys."""
    if keys is None:
        return data_converter
    return dataclasses.replace(
        data_converter,
        payload_codec=SealedPayloads(keys),
        failure_converter_class=SealedFailures,
    )


async def readable(failure: Failure, converter: DataConverter) -> Failure:
    """Returns a failure from a history with its message decrypted."""
    copied = Failure()
    copied.CopyFrom(failure)
    error = await converter.decode_failure(copied)
    decrypted = error.failure if isinstance(error, FailureError) else None
    return decrypted or failure
