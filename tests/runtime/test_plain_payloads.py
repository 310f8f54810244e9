"""The SDK's visits to payloads, which cost a fifth of a replay: left out where they do nothing, and nowhere else."""

import dataclasses
from collections.abc import Sequence

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.converter import PayloadCodec
from temporalio.worker import Worker
from temporalio.worker._command_aware_visitor import CommandAwarePayloadVisitor

from runtime.sdk_patches import leave_plain_payloads


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
