"""A Worker that leaves workflow tasks to wait is told of, one that has nothing to do is not."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from runtime.queues.task_watch import taking_tasks
from supervision import limits
from tests.serving import own_server

QUEUE = "watched"
UNTAKEN, PERIOD = timedelta(seconds=1), timedelta(milliseconds=100)


@workflow.defn
class Nothing:
    """Does nothing."""

    @workflow.run
    async def run(self) -> None:
        """Ends."""


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    monkeypatch.setattr(limits, "TASKS_UNTAKEN", UNTAKEN)
    monkeypatch.setattr(limits, "TASK_WATCH_PERIOD", PERIOD)
    async with own_server() as client:
        yield client


def worker(client: Client, identity: str | None = None) -> Worker:
    runner = UnsandboxedWorkflowRunner()
    return Worker(client, task_queue=QUEUE, workflows=[Nothing], workflow_runner=runner, identity=identity)


async def begin(client: Client, workflow_id: str) -> None:
    await client.start_workflow(Nothing.run, id=workflow_id, task_queue=QUEUE)


async def test_a_process_that_asks_for_no_tasks_while_they_wait_is_told_of(client: Client) -> None:
    told = asyncio.Event()
    reasons: list[str] = []

    def end(reason: str) -> None:
        reasons.append(reason)
        told.set()

    async with taking_tasks(client, QUEUE, end):
        await begin(client, "left")
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(20):
            await told.wait()
        assert asyncio.get_running_loop().time() - began >= UNTAKEN.total_seconds()
    assert reasons == ["workflow tasks wait, and this process has asked for none for 1 s"]


async def test_one_that_waits_for_tasks_or_does_them_is_not(client: Client) -> None:
    told: list[str] = []
    async with worker(client), taking_tasks(client, QUEUE, told.append):
        for number in range(3):  # each wait is longer than tasks may wait
            await asyncio.sleep(2 * UNTAKEN.total_seconds())
            await client.execute_workflow(Nothing.run, id=f"done-{number}", task_queue=QUEUE)
    assert told == []


async def test_what_others_serve_is_not_left(client: Client) -> None:
    told: list[str] = []
    async with taking_tasks(client, QUEUE, told.append), worker(client, "another"):
        await client.execute_workflow(Nothing.run, id="elsewhere", task_queue=QUEUE)
        await asyncio.sleep(2 * UNTAKEN.total_seconds())
    assert told == []


async def test_a_process_without_workflows_and_one_without_a_server_are_left_alone(client: Client) -> None:
    told: list[str] = []
    async with own_server() as gone, taking_tasks(client, None, told.append):
        await begin(client, "nobody")
        await begin(gone, "nobody")
    async with taking_tasks(gone, QUEUE, told.append):
        await asyncio.sleep(2 * UNTAKEN.total_seconds())
    assert told == []
