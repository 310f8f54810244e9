"""Runs that anybody started with whatever they liked in them: one bad row hides no other."""

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


@pytest.fixture(params=ODD, scope="module")
async def row(request: pytest.FixtureRequest, alone: Cli) -> AsyncIterator[str]:
    """The id of an open run with such a memo, beside an ordinary one; nobody serves its queue."""
    client = await Client.connect(alone.environ["TEMPORAL_ADDRESS"])
    odd = ODD[request.param]
    run_id = f"odd-{uuid4().hex[:8]}"
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
    yield run_id
    await client.get_workflow_handle(run_id).terminate()


@pytest.mark.parametrize("words", [("list",), ("status", "{run}"), ("result", "{run}"), ("doctor",)], ids=" ".join)
async def test_commands_survive_any_row(alone: Cli, row: str, words: tuple[str, ...]) -> None:
    done = await alone(*(word.format(run=row) for word in words))
    assert "unexpected" not in done.err, done.err
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err
    assert done.code == (0 if words[0] == "list" else done.code)
    if words[0] == "list":
        assert row in done.out
    if words[0] == "doctor":
        assert "open run" in done.out
