"""The data converter of every client, worker and replayer, and the one place where payload size is enforced."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.exceptions import ApplicationError

from supervision import limits
from supervision.errors import ErrorKind


class BoundedPayloadConverter(PydanticPayloadConverter):
    """Plain JSON of pydantic models; ApplicationError `PayloadTooLarge` above the hard cap.

    Servers answer an oversized payload in ways from endless retries to ending the run, depending on their
    version. Raised here, it fails the activity or the run with a name, before anything is sent.
    """

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """Returns the encoded values."""
        payloads = super().to_payloads(values)
        for payload, value in zip(payloads, values, strict=True):
            if len(payload.data) > limits.PAYLOAD_HARD_BYTES:
                raise ApplicationError(
                    f"a payload of {len(payload.data)} bytes ({type(value).__name__}) is over the cap of "
                    f"{limits.PAYLOAD_HARD_BYTES}",
                    type=ErrorKind.PAYLOAD_TOO_LARGE,
                    non_retryable=True,
                )
        return payloads


data_converter = dataclasses.replace(pydantic_data_converter, payload_converter_class=BoundedPayloadConverter)
