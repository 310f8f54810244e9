"""What failures carry to the server, and the SDK's visits to payloads, left out where they do nothing."""

import dataclasses
from collections.abc import Sequence

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.client import Client
from temporalio.converter import PayloadCodec
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker
from temporalio.worker._command_aware_visitor import CommandAwarePayloadVisitor

from runtime.payloads import data_converter
from runtime.sdk_patches import leave_plain_payloads
from supervision.base.errors import ErrorKind


def raised(error: Exception) -> Exception:
    """The error as code raises it that met another one: with a stack trace and a cause."""
    try:
        try:
            raise KeyError("what was met")
        except KeyError as met:
            raise error from met
    except Exception as made:
        return made


def sent(error: Exception) -> Failure:
    failure = Failure()
    data_converter.failure_converter.to_failure(error, data_converter.payload_converter, failure)
    return failure


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - {ErrorKind.UNEXPECTED}))
def test_a_failure_of_an_anticipated_kind_is_its_words_alone(kind: ErrorKind) -> None:
    error = ApplicationError(
        "in words", {"spent": 7}, type=kind, non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )
    failure = sent(raised(error))
    assert (failure.stack_trace, failure.HasField("cause")) == ("", False)
    back = data_converter.failure_converter.from_failure(failure, data_converter.payload_converter)
    assert isinstance(back, ApplicationError)
    assert (back.message, back.type, back.details[0]) == ("in words", kind, {"spent": 7})
    assert (back.non_retryable, back.category) == (True, ApplicationErrorCategory.BENIGN)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        ApplicationError("odd", type="NoKindOfOurs"),
        ApplicationError("odd", type=ErrorKind.UNEXPECTED),
    ],
    ids=["plain", "another type", "unexpected"],
)
def test_an_unexpected_one_keeps_where_it_comes_from(error: Exception) -> None:
    failure = sent(raised(error))
    assert "test_payloads.py" in failure.stack_trace
    assert failure.message == "odd"
    assert failure.cause.message == "'what was met'"
    assert "test_payloads.py" in failure.cause.stack_trace


@workflow.defn
class Greeting:
    """Answers with its input."""

    @workflow.run
    async def run(self, name: str) -> str:
        return f"Hello, {name}"


class Reversed(PayloadCodec):
    """Writes all bytes backwards."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=payload.metadata, data=payload.data[::-1]) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return await self.encode(payloads)


async def visits(client: Client, run_id: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns how often payloads were visited for one greeting."""
    seen: list[object] = []
    visit = CommandAwarePayloadVisitor.visit

    async def counted(self: CommandAwarePayloadVisitor, *visited: object) -> None:
        seen.append(visited)
        await visit(self, *visited)  # type: ignore[arg-type]

    leave_plain_payloads()
    with monkeypatch.context() as patched:
        patched.setattr(CommandAwarePayloadVisitor, "visit", counted)
        async with Worker(client, task_queue=run_id, workflows=[Greeting]):
            assert await client.execute_workflow(Greeting.run, "you", id=run_id, task_queue=run_id) == "Hello, you"
    return len(seen)


async def test_plain_payloads_are_not_visited(client: Client, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await visits(client, run_id, monkeypatch) == 0


async def test_with_a_codec_they_are(client: Client, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = client.config()
    config["data_converter"] = dataclasses.replace(config["data_converter"], payload_codec=Reversed())
    assert await visits(Client(**config), run_id, monkeypatch) > 0
    history = await client.get_workflow_handle(run_id).fetch_history()
    result = history.events[-1].workflow_execution_completed_event_attributes.result.payloads[0]
    assert result.data == b'"Hello, you"'[::-1]
