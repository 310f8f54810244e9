"""Runs that anybody started with whatever they liked in them: one bad row hides no other."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Memo, Payload, Payloads, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.client import Client

from tests.console.conftest import Cli

ODD = {
    "unknown encoding": Payload(metadata={"encoding": b"binary/evil"}, data=b"x"),
    "no encoding": Payload(data=b"\xff"),
    "no JSON": Payload(metadata={"encoding": b"json/plain"}, data=b"{"),
    "deep": Payload(metadata={"encoding": b"json/plain"}, data=b"[" * 1500 + b"]" * 1500),
    "escapes": Payload(metadata={"encoding": b"json/plain"}, data=b'"\\u001b]0;evil\\u0007\\u202e"'),
}


@pytest.fixture
async def rows(alone: Cli) -> AsyncIterator[list[str]]:
    """The ids of open runs with such memos, beside ordinary ones; nobody serves their queue."""
    client = await Client.connect(alone.environ["TEMPORAL_ADDRESS"])
    ids = [f"odd-{uuid4().hex[:8]}" for _ in ODD]
    for run_id, odd in zip(ids, ODD.values(), strict=True):
        await client.workflow_service.start_workflow_execution(
            StartWorkflowExecutionRequest(
                namespace="default",
                request_id=run_id,
                workflow_id=run_id,
                workflow_type=WorkflowType(name="SupervisorWorkflow"),
                task_queue=TaskQueue(name="nobody-polls"),
                input=Payloads(payloads=[odd]),
                memo=Memo(fields={"phase": odd, "team": odd, "partial": odd}),
            )
        )
    yield ids
    for run_id in ids:
        await client.get_workflow_handle(run_id).terminate()


async def test_commands_survive_any_row(alone: Cli, rows: list[str]) -> None:
    of_one = [(command, run_id) for command in ("status", "result") for run_id in rows]
    listed, doctor, *others = await asyncio.gather(*(alone(*words) for words in [("list",), ("doctor",), *of_one]))
    for words, done in zip(["list", "doctor", *of_one], [listed, doctor, *others], strict=True):
        assert "unexpected" not in done.err, (words, done.err)
        assert "\x1b" not in done.out + done.err, words
    assert listed.code == 0
    assert [run_id for run_id in rows if run_id not in listed.out] == []
    assert "open run" in doctor.out
