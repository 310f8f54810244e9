"""Report 1: a local activity and a query in one workflow task make a history that does not replay."""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

logging.basicConfig(level=logging.CRITICAL)
RUNS, ROUNDS = 20, 8


@activity.defn
async def nothing() -> None:
    """Ends at once."""


@workflow.defn
class Rounds:
    """In each round a timer begins, a local activity runs, and its end cancels the timer."""

    def __init__(self) -> None:
        self.asked = self.done = 0

    @workflow.signal
    def go(self) -> None:
        """Asks for a round."""
        self.asked += 1

    @workflow.query
    def rounds(self) -> int:
        """How many rounds are done."""
        return self.done

    @workflow.run
    async def run(self) -> int:
        """Returns after ROUNDS rounds."""
        while self.done < ROUNDS:
            await workflow.wait_condition(lambda: self.asked > self.done)
            timer = asyncio.create_task(asyncio.sleep(30))
            await asyncio.sleep(0)
            await workflow.execute_local_activity(nothing, start_to_close_timeout=timedelta(seconds=60))
            timer.cancel()
            self.done += 1
        return self.done


def free_port() -> int:
    """Returns a port of this machine that nothing listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


async def connected(address: str) -> Client:
    """Returns a client once the server answers."""
    while True:
        try:
            client = await Client.connect(address)
            await client.count_workflows()
        except Exception:
            await asyncio.sleep(0.2)
        else:
            return client


def server(program: str, port: int) -> subprocess.Popen[bytes]:
    """Starts a dev server, in memory."""
    options = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "never"]
    return subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def broken(kind: type, handles: Iterable[WorkflowHandle[Any, Any]]) -> list[str]:
    """Returns what the SDK says of each history that does not replay."""
    replayer = Replayer(workflows=[kind], workflow_runner=UnsandboxedWorkflowRunner())
    problems = []
    for handle in handles:
        result = await replayer.replay_workflow(await handle.fetch_history(), raise_on_replay_failure=False)
        if result.replay_failure:
            problems.append(str(result.replay_failure))
    return problems


async def main(program: str) -> None:
    """Prints how many of the histories do not replay."""
    port = free_port()
    process = server(program, port)
    try:
        client = await connected(f"127.0.0.1:{port}")
        runner = UnsandboxedWorkflowRunner()
        async with Worker(client, task_queue="q", workflows=[Rounds], activities=[nothing], workflow_runner=runner):
            handles = [await client.start_workflow(Rounds.run, id=f"rounds-{n}", task_queue="q") for n in range(RUNS)]
            for _ in range(ROUNDS):
                await asyncio.gather(
                    *(handle.signal(Rounds.go) for handle in handles),
                    *(handle.query(Rounds.rounds) for handle in handles),
                    *(handle.query(Rounds.rounds) for handle in handles),
                    return_exceptions=True,  # some runs stand still already
                )
        problems = await broken(Rounds, handles)
        sys.stdout.write(f"{len(problems)} of {RUNS} histories do not replay\n{problems[:1]}\n")
    finally:
        process.kill()


asyncio.run(main(sys.argv[1]))
